package ringlimit

import (
	"testing"
	"testing/synctest"

	"github.com/prometheus/client_golang/prometheus"
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
