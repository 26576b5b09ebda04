package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/ringlimit/ringlimit/limit"
	"github.com/ringlimit/ringlimit/membership"
	"github.com/ringlimit/ringlimit/owner"
	"github.com/ringlimit/ringlimit/owner/transfer"
)

// Config is one run.
type Config struct {
	Seed       uint64
	Nodes      int
	Forwarders int // of them, that never own anything
	Partitions int
	Keys       int
	Rate       int                              // checks a second
	Limits     []int64                          // that keys take turns at; nil for small ones
	Sync       bool                             // every second key's replies wait for all of it
	Faults     []Fault                          // one after the other or together, as they draw their times
	Delay      int64                            // that a message takes at most, nanoseconds; 0 means 1 ms
	Calm       bool                             // the network loses, doubles and holds up nothing
	Trace      func(format string, args ...any) // nil, or told what happens
}

// Result is what came of it.
type Result struct {
	Hash       uint64
	Checks     int
	Verdicts   int
	Refusals   int
	Unanswered int
	Excess     float64 // the most over-admitted key, in percent of its limit
	Bare       float64 // the same among those whose rule wants no copies
	Holders    int     // of one partition, at most
	Lost       int     // partitions of which faults hit everything there was
	Faults     []string
	Broken     []string // what must be true and was not
}

// The phases of a run: settled, faults, and quiet.
const (
	calmFor   = 1 * s
	faultsFor = 7 * s
	quietFor  = 7 * s
	settleFor = 100 * ms // nobody asks any more, and what is on its way arrives
)

// Run runs a seed.
func Run(cfg Config) Result {
	w := newWorld(cfg)
	w.trace = cfg.Trace
	w.makeKeys()
	w.found()
	w.startGossip()
	w.every(s/int64(cfg.Rate), w.someone)
	w.every(s, w.sweep)
	for _, f := range cfg.Faults {
		w.after(w.between(calmFor, calmFor+faultsFor/2), func() { f(w) })
	}
	w.runUntil(calmFor + faultsFor)
	w.mend()
	w.runUntil(calmFor + faultsFor + quietFor)
	w.closed = true
	w.runUntil(w.now + settleFor)
	w.quiet()
	w.copies()
	w.verdict()
	return w.result()
}

func (w *world) result() Result {
	return Result{
		Hash: w.hash.Sum64(), Checks: w.asked, Verdicts: w.verdicts, Refusals: w.refusals,
		Unanswered: w.unanswered, Holders: w.mostHolders, Faults: w.faults, Broken: w.broken, Excess: w.worst, Bare: w.worstBare, Lost: w.lost,
	}
}

// makeKeys makes counters of every algorithm, each soon used up.
func (w *world) makeKeys() {
	algorithms := [...]limit.Algorithm{limit.TokenBucket, limit.FixedWindow, limit.SlidingWindowLog, limit.SlidingWindowCounter, limit.LeakyBucket}
	limits := w.cfg.Limits
	if limits == nil {
		limits = []int64{40, 100, 300}
	}
	for i := range w.cfg.Keys {
		spec := limit.Spec{Algorithm: algorithms[i%len(algorithms)], Limit: limits[i%len(limits)], Window: []time.Duration{5 * time.Second, 20 * time.Second}[i%2]}
		if spec.Algorithm == limit.LeakyBucket {
			spec.Burst, spec.Police = spec.Limit-1, true
		}
		switch {
		case w.cfg.Sync && i%2 == 0:
			spec.Durability = limit.DurabilitySync
		case i%8 == 7:
			spec.Durability = limit.DurabilityNone
		}
		k := &key{name: fmt.Sprintf("k%d", i)}
		k.old = mustRule(spec)
		spec.Limit = spec.Limit * int64(2+i%4) / 3 // less, the same, or more
		if spec.Algorithm == limit.LeakyBucket {
			spec.Burst = spec.Limit - 1
		}
		k.new = mustRule(spec)
		k.id = owner.Seed(1).ID([]byte(k.name))
		k.partition = int(k.id.Hi % uint64(w.cfg.Partitions))
		k.charged = newHistory(k.old)
		k.slack = k.old.Slack()
		w.keys = append(w.keys, k)
	}
}

func mustRule(spec limit.Spec) *limit.Rule {
	r, err := limit.NewRule(spec)
	if err != nil {
		panic(err)
	}
	return r
}

// found starts the first nodes, which know each other.
func (w *world) found() {
	var records []transfer.Record
	for i := range w.cfg.Nodes {
		n := w.addNode()
		n.forwards = i < w.cfg.Forwarders
		n.start()
		r := n.core.Self()
		r.Seq, r.State = 2, membership.Serving
		records = append(records, r)
	}
	for _, n := range w.nodes {
		n.core.Learn(n.clock(), slices.DeleteFunc(slices.Clone(records), func(r transfer.Record) bool { return r.ID == n.id }))
		n.core.Become(n.clock(), membership.Serving)
		n.obey()
	}
}

// sweep drops what has expired.
func (w *world) sweep() {
	for _, n := range w.nodes {
		if n.running() {
			n.table.Sweep(n.clock(), w.cfg.Partitions)
		}
	}
}

// someone asks some gateway for some key; the first keys are the popular ones.
func (w *world) someone() {
	n := w.nodes[w.rand.IntN(len(w.nodes))]
	k := w.keys[min(w.rand.IntN(len(w.keys)), w.rand.IntN(len(w.keys)))]
	if !w.closed && n.running() && n.core.Self().State != membership.Joining {
		w.ask(n, k)
	}
}
