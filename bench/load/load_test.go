package load

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestParseSpread(t *testing.T) {
	for text, want := range map[string]Spread{
		"one":         {One, 1},
		"uniform-10k": {Uniform, 10_000},
		"zipf-1M":     {Zipf, 1_000_000},
		"uniform-7":   {Uniform, 7},
	} {
		got, err := ParseSpread(text)
		if got != want || err != nil || got.String() != text {
			t.Errorf("%s: %+v, %v, %q", text, got, err, got)
		}
	}
	for _, text := range []string{"", "one-3", "uniform", "uniform-0", "zipf-11M", "zipf-99999999999M", "flat-10", "uniform-k"} {
		if got, err := ParseSpread(text); err == nil {
			t.Errorf("%q is %+v, want an error", text, got)
		}
	}
}

// Every rival gets the same keys, each a name of the spread.
func TestKeys(t *testing.T) {
	for _, s := range []Spread{{One, 1}, {Uniform, 100}, {Zipf, 100}} {
		a, b, seen := NewKeys(s), NewKeys(s), map[string]int{}
		for i := range 20_000 {
			if a.at(i) != b.at(i) {
				t.Fatalf("%v: two sequences", s)
			}
			seen[a.at(i)]++
		}
		for name := range seen {
			if i := strings.TrimPrefix(name, "customer-"); len(i) != 8 {
				t.Errorf("%v: a key %q", s, name)
			}
		}
		first := seen[Name(0)]
		switch {
		case s.Kind == One && first != 20_000,
			s.Kind == Uniform && (len(seen) != 100 || first < 120 || first > 300),
			s.Kind == Zipf && (first < 3000 || first < 5*seen[Name(20)]):
			t.Errorf("%v: %d keys, the first %d times, number 20 %d times", s, len(seen), first, seen[Name(20)])
		}
	}
}

// What is counted is what was answered within the slice.
func TestRunCountsTheSlice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		marks := 0
		o, err := Run(t.Context(), Spec{
			Callers: 4, Batch: 3, Keys: NewKeys(Spread{Uniform, 10}), Timed: 1,
			Warm: 105 * time.Millisecond, Slice: 1000 * time.Millisecond,
		}, func(int) Ask {
			return func(_ context.Context, keys []string) (int, error) {
				time.Sleep(10 * time.Millisecond)
				return len(keys), nil
			}
		}, func() { marks++ })
		if err != nil || marks != 2 || o.Checks != 4*3*100 || o.Took != time.Second {
			t.Errorf("%d checks in %v, %d marks, %v; want 1200 in 1 s", o.Checks, o.Took, marks, err)
		}
		if p := o.Waits.ValueAtQuantile(50); o.Waits.TotalCount() != 400 || p < 9_900_000 || p > 10_100_000 {
			t.Errorf("%d waits, p50 %d ns; want 400 of 10 ms", o.Waits.TotalCount(), p)
		}
	})
}

// One question in so many of a caller is timed.
func TestRunTimesSome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, err := Run(t.Context(), Spec{Callers: 1, Batch: 1, Keys: NewKeys(Spread{One, 1}), Timed: 8, Slice: 801 * time.Millisecond},
			func(int) Ask {
				return func(context.Context, []string) (int, error) { time.Sleep(time.Millisecond); return 1, nil }
			}, func() {})
		if err != nil || o.Checks < 799 || o.Waits.TotalCount() < 99 || o.Waits.TotalCount() > 101 {
			t.Errorf("%d checks, %d timed, %v; want 800 and 100", o.Checks, o.Waits.TotalCount(), err)
		}
	})
}

// A wrong verdict or an error at any time spoils the whole.
func TestRunRefusesToCountNonsense(t *testing.T) {
	broken := errors.New("broken")
	for name, tt := range map[string]struct {
		refused  bool
		admitted int
		err      error
		want     string
	}{
		"an error":             {false, 1, broken, "broken"},
		"refused, not to be":   {false, 0, nil, "0 of 1 checks were admitted, where 1 had to be"},
		"admitted, not to be":  {true, 1, nil, "1 of 1 checks were admitted, where 0 had to be"},
		"refused as it has to": {true, 0, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var asked atomic.Int64
				_, err := Run(t.Context(), Spec{
					Callers: 2, Batch: 1, Keys: NewKeys(Spread{One, 1}), Timed: 1, Refused: tt.refused,
					Warm: 100 * time.Millisecond, Slice: time.Second,
				}, func(int) Ask {
					return func(context.Context, []string) (int, error) {
						time.Sleep(time.Millisecond)
						if asked.Add(1) != 20 { // one wrong answer, while it warms up
							if tt.refused {
								return 0, nil
							}
							return 1, nil
						}
						return tt.admitted, tt.err
					}
				}, func() {})
				if got := errText(err); got != tt.want {
					t.Errorf("%q, want %q", got, tt.want)
				}
			})
		})
	}
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// Fill asks for every key once.
func TestFill(t *testing.T) {
	var all atomic.Int64
	seen := make([]atomic.Int32, 1000)
	err := Fill(t.Context(), 7, 16, 1000, func(int) Ask {
		return func(_ context.Context, keys []string) (int, error) {
			for _, k := range keys {
				i := 0
				for _, c := range k[len("customer-"):] {
					i = 10*i + int(c-'0')
				}
				seen[i].Add(1)
			}
			all.Add(int64(len(keys)))
			return len(keys), nil
		}
	})
	if err != nil || all.Load() != 1000 {
		t.Errorf("%d keys, %v", all.Load(), err)
	}
	for i := range seen {
		if n := seen[i].Load(); n != 1 {
			t.Fatalf("key %d was asked for %d times", i, n)
		}
	}
}

func TestFillRefuses(t *testing.T) {
	err := Fill(t.Context(), 2, 1, 10, func(int) Ask {
		return func(context.Context, []string) (int, error) { return 0, nil }
	})
	if err == nil {
		t.Error("counters that were not made are full")
	}
}
