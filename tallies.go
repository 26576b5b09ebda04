package ringlimit

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// tallies is a counter by labels. Every check is noted here, by all cores at once: a
// prometheus.Counter is one word that they would take from each other, a tally is one
// for each stripe. Who counts keeps to a stripe of its own as far as there are enough.
type tallies struct {
	desc   *prometheus.Desc
	series sync.Map // of checkLabels to *tally
	turn   atomic.Uint32
}

// checkLabels are the values of the labels, in the order of the description.
type checkLabels struct{ rule, verdict, source string }

// stripes is how many words a tally has. More take memory, half a kilobyte now, for
// each rule that is used.
const stripes = 8

// cacheLine is the size of what cores take from each other, in bytes.
const cacheLine = 64

// tally is one series. It comes to be with the first that it counts.
type tally struct {
	by    [stripes]paddedCount
	since time.Time
}

type paddedCount struct {
	atomic.Uint64
	_ [cacheLine - 8]byte
}

func newTallies(name, help string) *tallies {
	return &tallies{desc: prometheus.NewDesc(name, help, []string{"rule", "verdict", "source"}, nil)}
}

// stripe is for who is about to count, and to keep it: they are given out in turn.
func (t *tallies) stripe() int { return int(t.turn.Add(1) % stripes) }

// of finds or makes the series of these labels.
func (t *tallies) of(labels checkLabels) *tally {
	known, ok := t.series.Load(labels)
	if !ok {
		known, _ = t.series.LoadOrStore(labels, &tally{since: time.Now()})
	}
	return known.(*tally)
}

// inc is safe for concurrent use, also of one stripe.
func (t *tally) inc(stripe int) { t.by[stripe%stripes].Add(1) }

func (t *tally) sum() (sum uint64) {
	for i := range t.by {
		sum += t.by[i].Load()
	}
	return sum
}

// Describe implements prometheus.Collector.
func (t *tallies) Describe(to chan<- *prometheus.Desc) { to <- t.desc }

// Collect implements prometheus.Collector. A stripe only grows, so what is counted
// meanwhile is in this sum or in the next, and no sum is below the one before.
func (t *tallies) Collect(to chan<- prometheus.Metric) {
	t.series.Range(func(key, value any) bool {
		labels, series := key.(checkLabels), value.(*tally)
		to <- prometheus.MustNewConstMetricWithCreatedTimestamp(t.desc, prometheus.CounterValue,
			float64(series.sum()), series.since, labels.rule, labels.verdict, labels.source)
		return true
	})
}
