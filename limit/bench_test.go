package limit

import (
	"testing"
	"time"

	"golang.org/x/time/rate"
)

// BenchmarkTake measures a Take of each algorithm next to x/time/rate's AllowN
// under the same traffic: 100 a second, asked 143 times a second, so that three
// in ten are refused. The two take turns, so that a noisy machine hits both; the
// ratio is ours to theirs.
func BenchmarkTake(b *testing.B) {
	specs := []Spec{
		{Algorithm: TokenBucket, Limit: 100, Window: time.Second},
		{Algorithm: LeakyBucket, Limit: 100, Window: time.Second, Burst: 99},
		{Algorithm: FixedWindow, Limit: 100, Window: time.Second},
		{Algorithm: SlidingWindowLog, Limit: 100, Window: time.Second},
		{Algorithm: SlidingWindowCounter, Limit: 100, Window: time.Second},
	}
	for _, spec := range specs {
		b.Run(spec.Algorithm.String(), func(b *testing.B) { benchmarkTake(b, spec) })
	}
}

const benchStep = 7 * time.Millisecond

func benchmarkTake(b *testing.B, spec Spec) {
	r, err := NewRule(spec)
	if err != nil {
		b.Fatal(err)
	}
	start := time.Unix(1_700_000_000, 0)
	peer := rate.NewLimiter(100, 100)
	ours := bencher{rule: r, now: start.UnixNano()}
	ours.run(1000) // the log is as long as it gets
	b.ReportAllocs()
	var mine, theirs time.Duration
	b.ResetTimer()
	for done := 0; done < b.N; {
		n := min(1000, b.N-done)
		t0 := time.Now()
		ours.run(n)
		t1 := time.Now()
		start = allow(peer, start, n)
		theirs += time.Since(t1)
		mine += t1.Sub(t0)
		done += n
	}
	b.ReportMetric(float64(mine.Nanoseconds())/float64(b.N), "ns/op")
	b.ReportMetric(float64(mine)/float64(theirs), "AllowN/ratio")
}

type bencher struct {
	rule     *Rule
	state    State
	now      int64
	admitted int
}

func (x *bencher) run(n int) {
	s := x.state
	for range n {
		var v Verdict
		x.rule.Apply(Take, &s, &v, x.now, 1)
		if v.Allowed {
			x.admitted++
		}
		x.now += int64(benchStep)
	}
	x.state = s
}

func allow(l *rate.Limiter, now time.Time, n int) time.Time {
	admitted := 0
	for range n {
		if l.AllowN(now, 1) {
			admitted++
		}
		now = now.Add(benchStep)
	}
	return now
}
