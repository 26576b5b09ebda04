package ringlimit

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ringlimit/ringlimit/limit"
)

// metrics are the node's own; no label carries a key. What a check touches is
// resolved beforehand, one counter for each rule, verdict and source, since
// looking a label up costs more than deciding.
type metrics struct {
	checks   map[*limit.Rule]*ruleChecks
	vec      *prometheus.CounterVec
	duration prometheus.Histogram
	failures *prometheus.CounterVec
	fallback prometheus.Gauge
	strange  prometheus.Counter
	gauges   []prometheus.Collector

	registered []prometheus.Collector
	registerer prometheus.Registerer
}

const (
	denied = iota
	allowed
	verdicts
)

// ruleChecks counts one rule's verdicts by outcome and source.
type ruleChecks [verdicts][limit.SourceFallback + 1]prometheus.Counter

func newMetrics(n *Node) *metrics {
	m := &metrics{
		checks: make(map[*limit.Rule]*ruleChecks),
		vec: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "ringlimit_checks_total",
			Help: "Checks by rule (tier/name), verdict (allowed, denied) and who decided: owner (this node), forwarded (the owner, one hop away), deny_cache, fallback; empty when the request lacked what the rule counts by.",
		}, []string{"rule", "verdict", "source"}),
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "ringlimit_check_duration_seconds",
			Help:    "How long checks took that had to leave this node. Those it decides itself take under a microsecond and are not timed.",
			Buckets: prometheus.ExponentialBuckets(25e-6, 2, 13),
		}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "ringlimit_forward_errors_total",
			Help: "Checks that got no verdict from their owner and followed on_failure, by reason.",
		}, []string{"reason"}),
		fallback: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "ringlimit_fallback_active",
			Help: "1 while checks are answered by on_failure because an owner cannot be asked.",
		}),
		strange: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "ringlimit_ring_mismatches_total",
			Help: "Answers of nodes that did not hold the counter and whose ring was another than this node's.",
		}),
		gauges: n.gauges(),
	}
	for r := range n.cfg.Rules.Rules() {
		m.checks[r] = m.resolve(r)
	}
	return m
}

func (m *metrics) resolve(r *limit.Rule) *ruleChecks {
	var c ruleChecks
	for outcome, verdict := range [verdicts]string{denied: "denied", allowed: "allowed"} {
		for source := limit.NoSource; source <= limit.SourceFallback; source++ {
			c[outcome][source] = m.vec.WithLabelValues(r.Tier+"/"+r.Name, verdict, source.String())
		}
	}
	return &c
}

// gauges read the node's state when they are scraped.
func (n *Node) gauges() []prometheus.Collector {
	gauge := func(name, help string, read func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, read)
	}
	return []prometheus.Collector{
		gauge("ringlimit_members", "Members of the cluster as this node sees it, itself included.",
			func() float64 { return float64(len(n.Members())) }),
		gauge("ringlimit_partitions_owned", "Partitions that this node holds.",
			func() float64 { return float64(n.table.Stats().Holding) }),
		gauge("ringlimit_counters", "Counters in memory.",
			func() float64 { return float64(n.table.Stats().Counters) }),
		gauge("ringlimit_counter_bytes", "Memory of the counters, in bytes.",
			func() float64 { return float64(n.table.Stats().Bytes) }),
	}
}

// register hands everything to r, or nothing.
func (m *metrics) register(r prometheus.Registerer) error {
	if r == nil {
		return nil
	}
	m.registerer = r
	for _, c := range append([]prometheus.Collector{m.vec, m.duration, m.failures, m.fallback, m.strange}, m.gauges...) {
		if err := r.Register(c); err != nil {
			return errors.Join(errors.New("metrics: another node uses this registerer; wrap it with a label"), err)
		}
		m.registered = append(m.registered, c)
	}
	return nil
}

func (m *metrics) unregister() {
	for _, c := range m.registered {
		m.registerer.Unregister(c)
	}
	m.registered = nil
}

// decided counts a verdict. A request that no rule matches is not limited, and
// not counted.
func (m *metrics) decided(v *Verdict) {
	if v.Rule == nil {
		return
	}
	outcome := denied
	if v.Allowed {
		outcome = allowed
	}
	m.checks[v.Rule][outcome][v.Source].Inc()
}

// ForwardFailed counts a check without its owner's verdict; see forward.Observer.
func (m *metrics) ForwardFailed(reason string) { m.failures.WithLabelValues(reason).Inc() }

// FallbackActive notes whether on_failure is answering; see forward.Observer.
func (m *metrics) FallbackActive(active bool) {
	if active {
		m.fallback.Set(1)
	} else {
		m.fallback.Set(0)
	}
}

// RingMismatch counts a node that sees another ring; see forward.Observer.
func (m *metrics) RingMismatch() { m.strange.Inc() }

// Forwarded times a check that another node decided; see forward.Observer.
func (m *metrics) Forwarded(took time.Duration) { m.duration.Observe(took.Seconds()) }
