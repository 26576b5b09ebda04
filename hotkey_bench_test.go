package ringlimit

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ringlimit/ringlimit/internal/floor"
	"github.com/ringlimit/ringlimit/limit"
)

// few has nothing left after the first check of a key.
const hotKeyRules = benchRules + `
  few:
    - {name: global, algorithm: token_bucket, limit: 1, window: 1h}
`

// BenchmarkHotKey is 64 callers of whose checks nine in ten are for one key, against
// as many checks of any key of the same owner. The node asked is another one, or the
// owner itself; the hot key is admitted or denied; another node keeps the copies.
// Rounds alternate. A p50 is that of the best round, which the machine has disturbed least.
//
// Others-x compares how long checks of the other keys take while as many checks a second
// are made, half of what the node can do with any keys; alone-p50-x compares with the
// same checks of the other keys and no more: less is better. For the rest callers go
// as fast as they can: full-p50-x is as others-p50-x, though a key that is denied at the
// door leaves more time for others; cpu-x compares processor time a check, rate-x
// checks a second, and one-x those of one key and nothing else. At another node the
// deny cache answers for the denied key: reached-owner is the share of its checks that
// went on to the owner all the same.
func BenchmarkHotKey(b *testing.B) {
	set := parseRules(b, hotKeyRules)
	owning := onLoopback(b, Config{Name: "owner", Rules: set})
	copies := onLoopback(b, Config{Name: "copies", Rules: set}, owning)
	gateway := onLoopback(b, Config{Name: "gateway", Rules: set, Forwarder: true}, owning)
	defer leaveAll(b, owning, copies, gateway)
	waitForCopies(b, owning, copies, gateway)
	var own []Request
	for _, key := range benchKeys(20_000) {
		if req := (Request{Key: key}); owners(b, gateway, req)[0] == "owner" {
			own = append(own, req)
		}
	}
	hot := map[string]Request{
		"admitted": own[0],
		"denied":   {Key: keyOwned(b, gateway, "few", "owner"), Tier: "few"},
	}
	for _, at := range []*Node{gateway, owning} {
		for _, how := range []string{"admitted", "denied"} {
			b.Run("at="+at.Name()+"/hot="+how, func(b *testing.B) {
				benchmarkHotKey(b, &hotKey{
					at: at, hot: hot[how], denied: how == "denied",
					watched: own[1 : len(own)/each], others: own[len(own)/each:],
				})
			})
		}
	}
}

func benchmarkHotKey(b *testing.B, h *hotKey) {
	const callers = 64
	n := b.N/turns + 1
	h.took = make([][]time.Duration, callers)
	_, _ = h.at.Check(context.Background(), h.hot) // what is left of the denied one
	runs, took, p50 := map[string]*floor.Run{}, map[string][]time.Duration{}, map[string]float64{}
	run := func(name string, n int, ask func(caller, i int) error) {
		if runs[name] == nil {
			runs[name] = new(floor.Run)
		}
		runs[name].Add(measure(b, callers, n, ask))
		latest := h.collect()
		if m := quantile(latest, 0.5); p50[name] == 0 || m < p50[name] {
			p50[name] = m
		}
		took[name] = append(took[name], latest...)
	}
	runs["one"] = new(floor.Run)
	for range turns {
		run("uniform", n, h.uniform)
		run("skewed", n, h.skewed)
		runs["one"].Add(measure(b, callers, n, h.one))
		rate := runs["uniform"].Rate() / 2
		run("paced uniform", n, paced(rate, h.uniform))
		run("paced skewed", n, paced(rate, h.skewed))
		run("alone", n/each+1, paced(rate/each, func(caller, i int) error { return h.timed(caller, i*each) }))
	}
	beside, among := took["paced skewed"], took["paced uniform"]
	b.ReportMetric(mean(beside)/mean(among), "others-mean-x")
	b.ReportMetric(p50["paced skewed"]/p50["paced uniform"], "others-p50-x")
	b.ReportMetric(quantile(beside, 0.99)/quantile(among, 0.99), "others-p99-x")
	b.ReportMetric(p50["paced skewed"]/p50["alone"], "alone-p50-x")
	b.ReportMetric(p50["skewed"]/p50["uniform"], "full-p50-x")
	b.ReportMetric(runs["uniform"].Rate(), "uniform-checks/s")
	b.ReportMetric(runs["skewed"].CPU()/runs["uniform"].CPU(), "cpu-x")
	b.ReportMetric(runs["skewed"].Rate()/runs["uniform"].Rate(), "rate-x")
	b.ReportMetric(runs["one"].Rate()/runs["uniform"].Rate(), "one-x")
	b.ReportMetric(runs["one"].CPU(), "one-cpu-ns/check")
	hot := runs["one"].N + 2*(each-1)*runs["skewed"].N/each
	b.ReportMetric(float64(h.reached.Load())/float64(hot), "reached-owner")
	b.ReportMetric(float64(h.lost.Load())/float64(5*turns*n), "lost-share")
}

// paced asks so many times a second.
func paced(rate float64, ask func(caller, i int) error) func(caller, i int) error {
	began := time.Now()
	return func(caller, i int) error {
		due := time.Duration(float64(i) / rate * float64(time.Second))
		if early := due - time.Since(began); early > 0 {
			time.Sleep(early)
		}
		return ask(caller, i)
	}
}

// hotKey asks a node for keys of one owner.
type hotKey struct {
	at      *Node
	hot     Request
	denied  bool              // the hot one
	watched []Request         // of which checks are timed, equally often whatever the rest are
	others  []Request         // what is asked for in place of the hot one
	took    [][]time.Duration // by caller
	reached atomic.Int64      // checks of the hot one that its owner has decided
	lost    atomic.Int64      // checks without an owner's verdict: the machine stood still
}

// each is how many checks go by from one that is timed to the next.
const each = 10

func (h *hotKey) uniform(caller, i int) error {
	if i%each == 0 {
		return h.timed(caller, i)
	}
	_, err := h.ask(h.others[i%len(h.others)], true)
	return err
}

func (h *hotKey) skewed(caller, i int) error {
	if i%each == 0 {
		return h.timed(caller, i)
	}
	return h.one(caller, i)
}

func (h *hotKey) one(int, int) error {
	source, err := h.ask(h.hot, !h.denied)
	if source != limit.SourceDenyCache {
		h.reached.Add(1)
	}
	return err
}

func (h *hotKey) timed(caller, i int) error {
	began := time.Now()
	_, err := h.ask(h.watched[i/each%len(h.watched)], true)
	h.took[caller] = append(h.took[caller], time.Since(began))
	return err
}

func (h *hotKey) ask(req Request, allowed bool) (limit.Source, error) {
	v, err := h.at.Check(context.Background(), req)
	switch {
	case err != nil:
	case v.Source == limit.SourceFallback:
		h.lost.Add(1)
	case v.Allowed != allowed:
		err = errNotForwarded
	}
	return v.Source, err
}

// collect empties took.
func (h *hotKey) collect() (all []time.Duration) {
	for i := range h.took {
		all, h.took[i] = append(all, h.took[i]...), h.took[i][:0]
	}
	return all
}

func mean(took []time.Duration) float64 {
	var sum time.Duration
	for _, t := range took {
		sum += t
	}
	return float64(sum) / float64(len(took))
}

func quantile(took []time.Duration, q float64) float64 {
	slices.Sort(took)
	return float64(took[int(q*float64(len(took)-1))])
}
