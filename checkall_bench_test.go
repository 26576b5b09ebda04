package ringlimit

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/ringlimit/ringlimit/front"
	"github.com/ringlimit/ringlimit/internal/floor"
	"github.com/ringlimit/ringlimit/limit"
)

// BenchmarkCheckAll is batches of requests with different keys, asked of one of three
// nodes in this process over loopback, against the same requests asked one by one, side
// by side. cpu-x compares processor time a check, rate-x checks a second: more is better
// for CheckAll. Two in three checks are another node's.
func BenchmarkCheckAll(b *testing.B) {
	m := newMesh(b, 3, 0)
	for _, tier := range []string{"default", "uncopied"} {
		for _, size := range []int{64, 1000} {
			batches := benchRequests(tier, size)
			for _, callers := range []int{1, 8} {
				b.Run(fmt.Sprintf("%s/of=%d/callers=%d", tier, size, callers), func(b *testing.B) { m.benchBatches(b, callers, batches) })
			}
		}
	}
}

// benchRequests is eight batches.
func benchRequests(tier string, size int) [][]Request {
	batches, keys := make([][]Request, 8), benchKeys(8*size)
	for i := range batches {
		for _, key := range keys[i*size:][:size] {
			batches[i] = append(batches[i], Request{Key: key, Route: "POST /v1/charges", Tier: tier})
		}
	}
	return batches
}

func (m *mesh) benchBatches(b *testing.B, callers int, batches [][]Request) {
	size := len(batches[0])
	together := func(_, i int) error { return m.checkAll(batches[i%len(batches)]) }
	oneByOne := func(_, i int) error { return m.checkEach(batches[i%len(batches)]) }
	rounds := b.N/size/turns + 1
	var all, each floor.Run
	for range turns {
		all.Add(measure(b, callers, rounds, together))
		each.Add(measure(b, callers, rounds, oneByOne))
	}
	warm := measure(b, callers, b.N/size+1, together) // turns empty the pools
	all.N, each.N, warm.N = all.N*size, each.N*size, warm.N*size
	b.ReportMetric(all.Rate(), "checks/s")
	b.ReportMetric(all.CPU(), "cpu-ns/check")
	b.ReportMetric(each.CPU(), "each-cpu-ns/check")
	b.ReportMetric(warm.AllocsPer(), "allocs/check")
	b.ReportMetric(each.CPU()/all.CPU(), "cpu-x")
	b.ReportMetric(all.Rate()/each.Rate(), "rate-x")
}

// checkAll counts what no owner has decided, and is an error if one has refused.
func (m *mesh) checkAll(reqs []Request) (err error) {
	m.nodes[0].CheckAll(context.Background(), reqs, func(_ int, v *Verdict, wrong error) {
		switch {
		case wrong != nil:
			err = wrong
		case v.Source == limit.SourceFallback:
			m.lost.Add(1)
		case !v.Allowed:
			err = errNotForwarded
		}
	})
	return err
}

// checkEach is checkAll by Check.
func (m *mesh) checkEach(reqs []Request) error {
	var failed atomic.Pointer[error]
	key := func(i int) (string, bool) { return reqs[i].Key, true }
	front.SideBySide(len(reqs), key, func(i int) {
		if _, err := m.check(0, reqs[i]); err != nil {
			failed.Store(&err)
		}
	})
	if err := failed.Load(); err != nil {
		return *err
	}
	return nil
}
