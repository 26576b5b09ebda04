package ringlimit

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ringlimit/ringlimit/limit"
)

// scraper is a registerer that is scraped all the time.
type scraper struct{ *prometheus.Registry }

func (s scraper) Register(c prometheus.Collector) error {
	values := make(chan prometheus.Metric, 1000)
	c.Collect(values)
	return s.Registry.Register(c)
}

// Whoever scrapes while the node starts gets figures.
func TestScrapeDuringStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := newMemory().config(t, 0, parseRules(t, eachAlgorithm))
		cfg.Registerer = scraper{prometheus.NewPedanticRegistry()}
		stop(t, start(t, cfg))
	})
}

// A registerer that another node uses is an error, and nothing stays behind.
func TestRegistererOfAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, registry := newMemory(), prometheus.NewPedanticRegistry()
		configs := []Config{m.config(t, 0, nil), m.config(t, 1, nil)}
		for i := range configs {
			configs[i].Registerer = registry
		}
		n := start(t, configs[0])
		if _, err := Start(t.Context(), configs[1]); err == nil {
			t.Error("started")
		}
		stop(t, n)
		stop(t, start(t, configs[1]))
	})
}

// A check of this node's own counter that waits for the copy is timed, one that
// does not is not.
func TestChecksThatWaitAreTimed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, set := newMemory(), parseRules(t, handoverRules)
		cfg, registry := m.config(t, 0, set), prometheus.NewPedanticRegistry()
		cfg.Registerer = registry
		a, b := start(t, cfg), start(t, m.config(t, 1, set))
		settle(t, a, b)
		time.Sleep(2 * time.Second) // the copies are complete
		for _, tier := range []string{"big", "sync"} {
			own := uint64(0)
			for i := range 20 {
				req := Request{Key: fmt.Sprint(i), Tier: tier}
				if at, err := a.Locate(t.Context(), req); err != nil || at.Owner != "node-0" {
					continue // Locate is a check as well, and leaves this node
				}
				now := timings(t, registry)
				if v := check(t, a, req); v.Source != limit.SourceOwner {
					t.Fatalf("%+v", v)
				}
				own += timings(t, registry) - now
			}
			if tier == "sync" && own == 0 || tier == "big" && own > 0 {
				t.Errorf("%s: %d checks of own counters were timed", tier, own)
			}
		}
		stop(t, a, b)
	})
}

// timings is how many checks there are in the histogram.
func timings(t *testing.T, g prometheus.Gatherer) uint64 {
	t.Helper()
	families, err := g.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "ringlimit_check_duration_seconds" {
			return f.GetMetric()[0].GetHistogram().GetSampleCount()
		}
	}
	t.Fatal("no histogram")
	return 0
}
