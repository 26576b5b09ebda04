package ringlimit

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ringlimit/ringlimit/limit"
)

// metrics are the node's own; no label carries a key. What a check touches is
// looked up once for each rule, verdict and source, since looking a label up costs
// more than deciding. It is there from its first check on: of ten thousand rules a
// node may never meet most.
type metrics struct {
	checks   atomic.Pointer[ruleCounts] // of the rules in force
	tallies  *tallies
	duration *durations
	failures *prometheus.CounterVec
	fallback prometheus.Gauge
	handoffs *prometheus.CounterVec
	handoff  prometheus.Histogram
	fences   prometheus.Counter
	mismatch prometheus.Counter
	gauges   []prometheus.Collector

	registered []prometheus.Collector
	registerer prometheus.Registerer
}

const (
	denied = iota
	allowed
	verdicts
)

// ruleCounts finds what counts a rule's verdicts.
type ruleCounts struct {
	// near has the first rule to come for each place: to find it takes a third of
	// what a look into all takes, and to take turns would make all cores write here.
	near [256]atomic.Pointer[ruleChecks]
	all  sync.Map // of *limit.Rule to *ruleChecks
}

// of finds or makes those of a rule.
func (c *ruleCounts) of(r *limit.Rule) *ruleChecks {
	place := &c.near[uint64(r.ID())%uint64(len(c.near))]
	near := place.Load()
	if near != nil && near.rule == r {
		return near
	}
	known, ok := c.all.Load(r)
	if !ok {
		known, _ = c.all.LoadOrStore(r, &ruleChecks{rule: r})
	}
	if near == nil {
		place.CompareAndSwap(nil, known.(*ruleChecks))
	}
	return known.(*ruleChecks)
}

// ruleChecks counts one rule's verdicts by outcome and source: nil until there is
// one.
type ruleChecks struct {
	rule *limit.Rule
	by   [verdicts][limit.SourceFallback + 1]atomic.Pointer[tally]
}

func newMetrics(n *Node) *metrics {
	m := &metrics{
		tallies:  newTallies("ringlimit_checks_total", "Checks by rule (tier/name; /name for those of clients of their own; a slash or % in a tier's name is %2F or %25), verdict (allowed, denied; shadow_denied by a rule in shadow, which refuses nothing) and who decided: owner (this node), forwarded (the owner, one hop away), deny_cache, fallback; empty when the request lacked what the rule counts by."),
		duration: newDurations("ringlimit_check_duration_seconds", "How long checks took that another node decided, or that waited at this one for their counter or for its copy. What this node decides at once takes about a microsecond and is not timed."),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "ringlimit_forward_errors_total",
			Help: "Checks that got no verdict from their owner and followed on_failure, by reason.",
		}, []string{"reason"}),
		fallback: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "ringlimit_fallback_active",
			Help: "1 while checks are answered by on_failure because an owner cannot be asked.",
		}),
		handoffs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "ringlimit_handoff_partitions_total",
			Help: "Partitions that changed hands, by direction: in (this node has begun to hold them), out (another node has taken them over).",
		}, []string{"direction"}),
		handoff: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "ringlimit_handoff_duration_seconds",
			Help:    "How long this node took to acquire a partition, from when it was to own it until it held it. Until near the end the holder before goes on deciding.",
			Buckets: prometheus.ExponentialBuckets(1e-3, 2, 14),
		}),
		fences: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "ringlimit_fences_total",
			Help: "Times this node stopped deciding because it had stood still, or had lost the other nodes, for more than a second.",
		}),
		mismatch: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "ringlimit_ring_mismatches_total",
			Help: "Checks that reached a node whose ring was another than the asker's. During a change of members there are some.",
		}),
		gauges: n.gauges(),
	}
	m.rulesChanged()
	return m
}

// rulesChanged lets go of the rules that were in force. What was counted by them
// stays visible: it was counted.
func (m *metrics) rulesChanged() { m.checks.Store(new(ruleCounts)) }

// tally is what counts such verdicts of r.
func (m *metrics) tally(r *limit.Rule, outcome int, source limit.Source) *tally {
	verdict := [verdicts]string{denied: "denied", allowed: "allowed"}[outcome]
	if r.Shadow && outcome == denied { // who sums up what was denied must not count it
		verdict = "shadow_denied"
	}
	return m.tallies.of(checkLabels{ruleLabel(r), verdict, source.String()})
}

// ruleLabel is tier/name. What clients have of their own is of no tier, whichever
// client it is: it stays apart from the rules of all tiers, whatever they are called.
func ruleLabel(r *limit.Rule) string {
	return strings.NewReplacer("%", "%25", "/", "%2F").Replace(r.Tier) + "/" + r.Name
}

// gauges read the node's state when they are scraped.
func (n *Node) gauges() []prometheus.Collector {
	gauge := func(name, help string, read func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, read)
	}
	return []prometheus.Collector{
		gauge("ringlimit_members", "Members of the cluster as this node sees it, itself included.",
			func() float64 { return float64(len(n.Members())) }),
		gauge("ringlimit_rules_version", "Version of the latest change of rules that this node has seen; 0 while there are only those of the rule file.",
			func() float64 { return float64(n.store.Summary().Version) }),
		gauge("ringlimit_partitions_owned", "Partitions that this node holds.",
			func() float64 { return float64(n.table.Stats().Holding) }),
		gauge("ringlimit_counters", "Counters in memory.",
			func() float64 { return float64(n.table.Stats().Counters) }),
		gauge("ringlimit_counter_bytes", "Memory of the counters, in bytes.",
			func() float64 { return float64(n.table.Stats().Bytes) }),
		gauge("ringlimit_partitions_acquiring", "Partitions that this node owns and does not hold yet.",
			func() float64 { return float64(n.driver.Stats().Acquiring) }),
		gauge("ringlimit_partitions_unguarded", "Partitions that this node holds and of which no other node has a complete copy: they are lost if it crashes.",
			func() float64 { return float64(n.driver.Stats().Unguarded) }),
		gauge("ringlimit_replication_lag_seconds", "Age of the oldest charge under way to its copy; 0 when there is none.",
			func() float64 { return time.Duration(n.driver.Stats().Lag).Seconds() }),
		gauge("ringlimit_fenced", "1 while this node decides nothing, because it may have been replaced without noticing.",
			func() float64 { return oneIf(n.driver.Stats().Fenced) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name:        "ringlimit_evictions_total",
			Help:        "Counters dropped from memory, by reason: fresh (it equalled one that was never used). No other counter is ever dropped.",
			ConstLabels: prometheus.Labels{"reason": "fresh"},
		}, func() float64 { return float64(n.table.Stats().Dropped) }),
	}
}

// register hands everything to r, or nothing.
func (m *metrics) register(r prometheus.Registerer) error {
	if r == nil {
		return nil
	}
	m.registerer = r
	for _, c := range append([]prometheus.Collector{m.tallies, m.duration, m.failures, m.fallback, m.handoffs, m.handoff, m.fences, m.mismatch}, m.gauges...) {
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

// decided counts a verdict of each of the request's limits, on the caller's stripe. A
// request that no rule matches is not limited, and not counted.
func (m *metrics) decided(v *Verdict, stripe int) {
	if limits := v.Limits(); limits != nil {
		for i := range limits {
			if l := &limits[i]; !l.Allowed || l.Source != limit.NoSource { // else nobody was asked
				m.decidedBy(l, stripe)
			}
		}
		return
	}
	if v.Rule != nil {
		m.decidedBy(v, stripe)
	}
}

func (m *metrics) decidedBy(v *Verdict, stripe int) {
	outcome := denied
	if v.Allowed {
		outcome = allowed
	}
	at := &m.checks.Load().of(v.Rule).by[outcome][v.Source]
	t := at.Load()
	if t == nil {
		t = m.tally(v.Rule, outcome, v.Source) // the same one, whoever is first
		at.Store(t)
	}
	t.inc(stripe)
}

// ForwardFailed counts a check without its owner's verdict; see forward.Observer.
func (m *metrics) ForwardFailed(reason string) { m.failures.WithLabelValues(reason).Inc() }

// FallbackActive notes whether on_failure is answering; see forward.Observer.
func (m *metrics) FallbackActive(active bool) { m.fallback.Set(oneIf(active)) }

func oneIf(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// Forwarded times a check that another node decided; see forward.Observer.
func (m *metrics) Forwarded(took time.Duration) { m.duration.observe(took) }

// Waited times a check of this node that had to wait here; see driver.Observer.
func (m *metrics) Waited(took time.Duration) { m.duration.observe(took) }

// RingMismatch counts an answer by another ring; see forward.Observer.
func (m *metrics) RingMismatch() { m.mismatch.Inc() }

// Acquired counts a partition that came; see driver.Observer.
func (m *metrics) Acquired(took time.Duration) {
	m.handoffs.WithLabelValues("in").Inc()
	m.handoff.Observe(took.Seconds())
}

// GaveAway counts a partition that went; see driver.Observer.
func (m *metrics) GaveAway() { m.handoffs.WithLabelValues("out").Inc() }

// Fenced counts a stop; see driver.Observer.
func (m *metrics) Fenced() { m.fences.Inc() }
