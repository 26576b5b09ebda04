package ringlimit

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"pgregory.net/rapid"
)

// The same times give the same metric as prometheus.Histogram makes of them.
func TestLawDurationsAreAHistogram(t *testing.T) {
	times := rapid.OneOf(
		rapid.Int64Range(0, int64(time.Second)),
		rapid.Custom(func(t *rapid.T) int64 { // a bound, or beside it
			return int64(shortest)<<rapid.IntRange(0, doublings+1).Draw(t, "bound") + rapid.Int64Range(-1, 1).Draw(t, "off")
		}),
	)
	rapid.Check(t, func(t *rapid.T) {
		ours := newDurations("d", "h")
		theirs := prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "d", Help: "h", Buckets: prometheus.ExponentialBuckets(shortest.Seconds(), 2, doublings+1),
		})
		for _, took := range rapid.SliceOf(times).Draw(t, "times") {
			ours.observe(time.Duration(took))
			theirs.Observe(time.Duration(took).Seconds())
		}
		if got, want := bucketsOf(t, ours), bucketsOf(t, theirs); !equalBuckets(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
	})
}

// bucketsOf is the cumulated counts, and at the end how many there are and their sum
// in microseconds.
func bucketsOf(t *rapid.T, c prometheus.Collector) (counts []uint64) {
	t.Helper()
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(c)
	families, err := r.Gather()
	if err != nil || len(families) != 1 {
		t.Fatalf("%v, %v", families, err)
	}
	h := families[0].GetMetric()[0].GetHistogram()
	for _, b := range h.GetBucket() {
		counts = append(counts, b.GetCumulativeCount(), uint64(b.GetUpperBound()*1e9+0.5))
	}
	return append(counts, h.GetSampleCount(), uint64(h.GetSampleSum()*1e6+0.5))
}

func equalBuckets(a, b []uint64) bool {
	if len(a) != len(b) {
		return false
	}
	last := len(a) - 1
	for i := range a[:last] {
		if a[i] != b[i] {
			return false
		}
	}
	return max(a[last], b[last])-min(a[last], b[last]) <= 1 // theirs adds fractions
}

// A clock that runs back is no reason to count less.
func TestDurationsTakeNoNegativeTimes(t *testing.T) {
	d := newDurations("d", "h")
	d.observe(-time.Hour)
	if n := testutil.CollectAndCount(d); n != 1 || d.counts[0].Load() != 1 || d.sum.Load() != 0 {
		t.Errorf("%d metrics, %d times, sum %d", n, d.counts[0].Load(), d.sum.Load())
	}
}
