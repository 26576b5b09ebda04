package ringlimit

import (
	"fmt"
	"maps"
	"strings"
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

// A series comes to be with the first verdict that it counts; rules that clients
// have of their own, ten thousand perhaps, are told apart by their names alone, and
// from those of any tier.
func TestSeriesOfChecksComeWithThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text strings.Builder
		for _, tier := range []string{"client", "client/own", "client%2Fown", "/"} {
			fmt.Fprintf(&text, "  %q: [{name: own, algorithm: token_bucket, limit: 1, window: 1h}, {name: own/own, by: [route], algorithm: token_bucket, limit: 1000, window: 1h}]\n", tier)
		}
		text.WriteString("clients:\n")
		for i := range 100 {
			fmt.Fprintf(&text, "  cust_%d: {rules: [{name: own, algorithm: token_bucket, limit: %d, window: 1h}]}\n", i, 10+i)
		}
		cfg, registry := newMemory().config(t, 0, parseRules(t, "tiers:\n"+text.String())), prometheus.NewPedanticRegistry()
		cfg.Registerer = registry
		n := start(t, cfg)
		time.Sleep(time.Second)
		if got := checksTotal(t, registry); len(got) != 0 {
			t.Errorf("before the first check: %v", got)
		}
		want := map[string]float64{}
		for i := range 100 {
			check(t, n, Request{Key: fmt.Sprintf("cust_%d", i)})
		}
		want["/own allowed owner"] = 100
		for tier, label := range map[string]string{"client": "client", "client/own": "client%2Fown", "client%2Fown": "client%252Fown", "/": "%2F"} {
			for range 3 {
				check(t, n, Request{Key: "x" + tier, Tier: tier, Route: "GET /"})
			}
			want[label+"/own allowed owner"], want[label+"/own denied owner"], want[label+"/own/own allowed owner"] = 1, 2, 3
		}
		if got := checksTotal(t, registry); !maps.Equal(got, want) {
			t.Errorf("counted %v, want %v", got, want)
		}
		putLimits(t, n, "client", window(5)) // what was counted was counted
		time.Sleep(time.Second)
		check(t, n, Request{Key: "y", Tier: "client"})
		check(t, n, Request{Key: "cust_1"})
		want["client/all allowed owner"], want["/own allowed owner"] = 1, 101
		if got := checksTotal(t, registry); !maps.Equal(got, want) {
			t.Errorf("after a change of rules: %v, want %v", got, want)
		}
		stop(t, n)
	})
}

// checksTotal is ringlimit_checks_total by "rule verdict source".
func checksTotal(t *testing.T, g prometheus.Gatherer) map[string]float64 {
	t.Helper()
	families, err := g.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == "ringlimit_checks_total" {
				l := m.GetLabel() // by name: rule, source, verdict
				all[l[0].GetValue()+" "+l[2].GetValue()+" "+l[1].GetValue()] = m.GetCounter().GetValue()
			}
		}
	}
	return all
}

// checksOf is checksTotal of one node.
func checksOf(t *testing.T, n *Node) map[string]float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(n.metrics.tallies)
	return checksTotal(t, registry)
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

// BenchmarkCounted is what the count of a verdict costs; ratio is over a counter that
// needs no finding.
func BenchmarkCounted(b *testing.B) {
	n := alone(b)
	v := Verdict{Allowed: true, Rule: firstRule(n), Source: limit.SourceOwner}
	bare := prometheus.NewCounter(prometheus.CounterOpts{Name: "bare"})
	b.ReportAllocs()
	var counted, floor time.Duration
	const round = 1000
	for b.Loop() {
		counted += timed(round, func(int) { n.metrics.decided(&v, 0) })
		floor += timed(round, func(int) { bare.Inc() })
	}
	b.ReportMetric(float64(counted)/float64(b.N)/round, "ns/verdict")
	b.ReportMetric(float64(counted)/float64(floor), "ratio")
}
