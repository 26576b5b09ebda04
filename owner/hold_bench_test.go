package owner

import (
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/ringlimit/ringlimit/limit"
)

// BenchmarkHold is the longest holds of a partition's lock: to build a full segment
// anew, to split it, and to drop as many counters as one step of the sweep looks at.
// They are as long in a partition of a million counters as in this one. The peer is a
// plain copy of the segment's arrays.
func BenchmarkHold(b *testing.B) {
	tab := holding(Config{Partitions: 1})
	rule := mustRule(b, limit.Spec{Algorithm: limit.FixedWindow, Limit: 10, Window: time.Second})
	p := &tab.partitions[0]
	create(b, tab, 0, segmentCounters, rule)
	s := p.segment(0)
	if s.slots.used != segmentCounters {
		b.Fatalf("a segment of %d counters; want a full one", s.slots.used)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	plain := median(func() { runtime.KeepAlive(slices.Clone(s.slots.at)); runtime.KeepAlive(slices.Clone(s.names.text)) })
	rebuild := median(func() { tab.rebuild(p, s, 1, 27, beyondBound); p.directory().put(s) })
	split := median(func() { tab.split(p, p.segment(0), beyondBound); p.directory().put(s) })
	var from uint64
	drop := median(func() {
		if p.used == 0 {
			from = 0
			create(b, tab, 0, segmentCounters, rule)
		}
	}, func() { _, from, _ = tab.sweepStep(p, start+int64(time.Second), from) })
	for b.Loop() {
	}
	b.ReportMetric(rebuild/1e3, "rebuild-µs")
	b.ReportMetric(split/1e3, "split-µs")
	b.ReportMetric(drop/1e3, "drop-step-µs")
	b.ReportMetric(split/plain, "split-plain-copy/ratio")
}

// median is the processor time of the last of the steps, in the median of many
// rounds.
func median(steps ...func()) float64 {
	took := make([]int64, 301)
	for i := range took {
		for _, prepare := range steps[:len(steps)-1] {
			prepare()
		}
		begin := threadCPU()
		steps[len(steps)-1]()
		took[i] = threadCPU() - begin
	}
	slices.Sort(took)
	return float64(took[len(took)/2])
}
