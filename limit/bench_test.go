package limit

import (
	"testing"
	"time"

	"golang.org/x/time/rate"
)

// A Take allocates nothing, once a log has its length.
func TestTakeAllocatesNothing(t *testing.T) {
	for _, spec := range benchSpecs() {
		x := bencher{rule: mustRule(t, spec), now: start}
		x.run(1000)
		if n := testing.AllocsPerRun(1000, func() { x.run(1) }); n != 0 {
			t.Errorf("%v: %v allocations", spec.Algorithm, n)
		}
	}
}

// BenchmarkTake measures a Take of each algorithm next to x/time/rate's AllowN
// under the same traffic: 100 a second, asked 143 times a second, so that three
// in ten are refused. The two take turns, so that a noisy machine hits both; the
// ratio is ours to theirs.
func BenchmarkTake(b *testing.B) {
	for _, spec := range benchSpecs() {
		b.Run(spec.Algorithm.String(), func(b *testing.B) { benchmarkTake(b, spec) })
	}
}

func benchSpecs() []Spec {
	return []Spec{
		{Algorithm: TokenBucket, Limit: 100, Window: time.Second},
		{Algorithm: LeakyBucket, Limit: 100, Window: time.Second, Burst: 99},
		{Algorithm: FixedWindow, Limit: 100, Window: time.Second},
		{Algorithm: SlidingWindowLog, Limit: 100, Window: time.Second},
		{Algorithm: SlidingWindowCounter, Limit: 100, Window: time.Second},
	}
}

const benchStep = 7 * time.Millisecond

func benchmarkTake(b *testing.B, spec Spec) {
	begin := time.Unix(0, start)
	peer := rate.NewLimiter(100, 100)
	ours := bencher{rule: mustRule(b, spec), now: start}
	ours.run(1000) // the log is as long as it gets
	b.ReportAllocs()
	var mine, theirs time.Duration
	b.ResetTimer()
	for done := 0; done < b.N; {
		n := min(1000, b.N-done)
		t0 := time.Now()
		ours.run(n)
		t1 := time.Now()
		begin = allow(peer, begin, n)
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
	charge := Charge{Mode: Take, Cost: 1}
	s := x.state
	for range n {
		var v Verdict
		x.rule.Apply(&charge, &s, &v, x.now)
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
