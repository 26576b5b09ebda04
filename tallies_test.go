package ringlimit

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ringlimit/ringlimit/internal/floor"
)

// Whoever counts at the same time, alone or in batches, counts all of it.
func TestChecksAreCountedExactly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := start(t, newMemory().config(t, 0, parseRules(t, benchRules)))
		defer stop(t, n)
		const callers, rounds, batch = 16, 50, 3
		var running sync.WaitGroup
		for c := range callers {
			running.Go(func() {
				req := Request{Key: fmt.Sprint(c % 4)}
				for range rounds {
					if _, err := n.Check(t.Context(), req); err != nil {
						t.Error(err)
					}
					n.CheckAll(t.Context(), []Request{req, req, req}, func(_ int, _ *Verdict, err error) {
						if err != nil {
							t.Error(err)
						}
					})
				}
			})
		}
		running.Wait()
		var total float64
		for _, counted := range checksOf(t, n) {
			total += counted
		}
		if want := float64(callers * rounds * (1 + batch)); total != want {
			t.Errorf("counted %v, want %v", total, want)
		}
	})
}

// Those who count are spread over all stripes.
func TestStripesAreGivenOutInTurn(t *testing.T) {
	single(t, func(t *testing.T, n *Node) {
		scratches, batches := map[int]bool{}, map[int]bool{}
		for range stripes {
			scratches[n.newScratch().(*scratch).stripe] = true
		}
		for range stripes {
			batches[n.batch().stripe] = true
		}
		if len(scratches) != stripes || len(batches) < stripes-1 { // one may have been used before
			t.Errorf("%d and %d stripes of %d", len(scratches), len(batches), stripes)
		}
	})
}

// BenchmarkCheckByMany is 64 callers who check one key of this node. counter-x is how
// much longer that takes with a prometheus.Counter of them all beside it; cpu-x is the
// same of processor time.
func BenchmarkCheckByMany(b *testing.B) {
	n, ctx, req := alone(b), b.Context(), Request{Key: "hot"}
	shared := prometheus.NewCounter(prometheus.CounterOpts{Name: "shared"})
	check := func(_, _ int) error {
		_, err := n.Check(ctx, req)
		return err
	}
	var ours, beside floor.Run
	for range turns {
		ours.Add(measure(b, 64, b.N/turns+1, check))
		beside.Add(measure(b, 64, b.N/turns+1, func(caller, i int) error {
			shared.Inc()
			return check(caller, i)
		}))
	}
	b.ReportMetric(1e9/ours.Rate(), "ns/check")
	b.ReportMetric(ours.CPU(), "cpu-ns/check")
	b.ReportMetric(ours.Rate()/beside.Rate(), "counter-x")
	b.ReportMetric(beside.CPU()/ours.CPU(), "cpu-x")
}
