package judge

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ringlimit/ringlimit/chaos/scenario"
	"github.com/ringlimit/ringlimit/limit"
)

func TestAdmits(t *testing.T) {
	const hour = time.Hour
	at := func(d time.Duration) time.Time { return time.Unix(1_800_000_000, 0).Truncate(hour).Add(d) }
	for _, tt := range []struct {
		algorithm string
		burst     int64
		from, to  time.Duration
		want      int64
	}{
		{"sliding_window_log", 0, 0, hour - 1, 100},
		{"sliding_window_log", 0, 0, hour, 200},
		{"fixed_window", 0, 0, hour - 1, 100},
		{"fixed_window", 0, hour / 2, hour, 200},
		{"sliding_window_counter", 0, hour / 2, hour, 200},
		{"token_bucket", 0, 0, hour/100 - 1, 100},
		{"token_bucket", 0, 0, hour / 100, 101},
		{"token_bucket", 20, 0, hour / 2, 70},
		{"leaky_bucket", 0, 0, 0, 1},
		{"leaky_bucket", 99, 0, hour / 100, 101},
	} {
		c := scenario.Class{Algorithm: tt.algorithm, Limit: 100, Window: hour, Burst: tt.burst}
		if got := Admits(&c, at(tt.from), at(tt.to)); got != tt.want {
			t.Errorf("%s, burst %d, from %v to %v: admits %d, want %d", tt.algorithm, tt.burst, tt.from, tt.to, got, tt.want)
		}
	}
}

// The algorithms themselves never admit more than the judge allows, or it would
// convict the innocent.
func TestAdmitsBoundsTheAlgorithms(t *testing.T) {
	for a := limit.TokenBucket; a <= limit.SlidingWindowCounter; a++ {
		t.Run(a.String(), func(t *testing.T) { rapid.Check(t, func(t *rapid.T) { admitsBounds(t, a) }) })
	}
}

func admitsBounds(t *rapid.T, a limit.Algorithm) {
	c := scenario.Class{
		Algorithm: a.String(),
		Limit:     rapid.Int64Range(1, 50).Draw(t, "limit"),
		Window:    time.Duration(rapid.Int64Range(1, 5000).Draw(t, "window")) * time.Millisecond,
	}
	if a == limit.TokenBucket || a == limit.LeakyBucket {
		c.Burst = rapid.Int64Range(0, 20).Draw(t, "burst")
	}
	rule, err := limit.NewRule(limit.Spec{Algorithm: a, Limit: c.Limit, Window: c.Window, Burst: c.Burst})
	if err != nil {
		t.Fatal(err)
	}
	began := time.Unix(1_800_000_000, rapid.Int64Range(0, int64(time.Hour)).Draw(t, "began"))
	now, admitted := began, int64(0)
	var state limit.State
	for _, step := range rapid.SliceOfN(rapid.Int64Range(0, int64(c.Window)/4), 1, 100).Draw(t, "steps") {
		now = now.Add(time.Duration(step))
		var v limit.Verdict
		if state, v = rule.Take(state, now.UnixNano(), 1); v.Allowed {
			admitted++
		}
	}
	if most := Admits(&c, began, now); admitted > most {
		t.Fatalf("%d admitted in %v, the judge allows %d", admitted, now.Sub(began), most)
	}
}
