package ringlimit

import (
	"math/bits"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// durations is a histogram of times: those up to shortest, and up to each double of
// it. Every forwarded check is noted here, at two additions; prometheus.Histogram
// takes as long as three, searches for the bucket and has all callers retry their sum.
type durations struct {
	desc   *prometheus.Desc
	counts [doublings + 2]atomic.Uint64 // the last one: longer than all bounds
	sum    atomic.Int64                 // nanoseconds
}

const (
	shortest  = 25 * time.Microsecond
	doublings = 12 // to 0.1 s
)

func newDurations(name, help string) *durations {
	return &durations{desc: prometheus.NewDesc(name, help, nil, nil)}
}

// observe is safe for concurrent use.
func (d *durations) observe(took time.Duration) {
	took = max(took, 0)
	d.counts[bucketOf(took)].Add(1)
	d.sum.Add(int64(took))
}

// bucketOf is the first whose bound is not below took.
func bucketOf(took time.Duration) int {
	return min(bits.Len64(uint64(max(took-1, 0)/shortest)), doublings+1)
}

// Describe implements prometheus.Collector.
func (d *durations) Describe(to chan<- *prometheus.Desc) { to <- d.desc }

// Collect implements prometheus.Collector. What is noted meanwhile may be in the
// buckets and not yet in the sum.
func (d *durations) Collect(to chan<- prometheus.Metric) {
	sum, count, buckets := d.sum.Load(), uint64(0), make(map[float64]uint64, doublings+1)
	for i := range d.counts {
		count += d.counts[i].Load()
		if i <= doublings {
			buckets[(shortest << i).Seconds()] = count
		}
	}
	to <- prometheus.MustNewConstHistogram(d.desc, count, time.Duration(sum).Seconds(), buckets)
}
