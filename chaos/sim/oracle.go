package sim

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/ringlimit/ringlimit/limit"
	"github.com/ringlimit/ringlimit/membership"
	"github.com/ringlimit/ringlimit/owner"
)

// key is a counter that callers use up, and what the oracle knows of it.
type key struct {
	name      string
	id        owner.ID
	partition int
	old, new  *limit.Rule // before and after the rule changes, if it does
	slack     int64       // how many admissions may be without a copy; negative: all
	excused   int64       // how many too many the faults excuse

	admitted []int64 // when admissions were decided that a caller heard of
	changed  int64   // when the rule changed; 0 when it did not
	charged  history // all that was decided, whether answered or not
}

// reference is one counter that no fault touches.
type reference struct {
	rule  *limit.Rule
	state limit.State
	next  limit.State // fixed window: the one after, for admissions just before it
}

// transit bounds what several moves add to the ages of a counter, and the
// difference of two clocks.
const transit = 150 * ms

// skewed is by how much clocks differ from virtual time, but for whole minutes.
const skewed = 20 * ms

// oracle watches what must be true.
type oracle struct {
	w     *world
	keys  []*key
	rules map[*node]bool // who has heard of the rule change

	mostHolders int
	asked       int
	unanswered  int
	verdicts    int
	refusals    int
	worst       float64  // excess, in percent of the limit
	worstBare   float64  // the same of the keys that have no copies
	faults      []string // what happened, for the report

	splits  []*split
	lost    int  // partitions of which a fault hit everything there was
	changed bool // the rules
	broken  []string
}

func newOracle(w *world) *oracle {
	return &oracle{w: w, rules: map[*node]bool{}}
}

// wrong records that something was not as it must be.
func (o *oracle) wrong(format string, args ...any) {
	if len(o.broken) < 10 {
		o.broken = append(o.broken, fmt.Sprintf("at %v: ", time.Duration(o.w.now))+fmt.Sprintf(format, args...))
	}
}

// rule is the rule as the node knows it.
func (k *key) rule(n *node) *limit.Rule {
	if n.w.rules[n] {
		return k.new
	}
	return k.old
}

func (o *oracle) decided(n *node, k *key, allowed bool) {
	o.verdicts++
	o.w.note("%d %s: %s %v\n", o.w.now, n.id, k.name, allowed)
	now := o.w.now + epoch
	if allowed {
		k.charged.add(now)
		return
	}
	o.refusals++
	if !o.changed && k.charged.free(now) {
		o.wrong("%s refuses %s, which is below its limit", n.id, k.name)
	}
}

// excess is how many admissions one counter that no fault touches would have
// refused.
func (k *key) excess() (n int64) {
	slices.Sort(k.admitted) // replies may overtake each other
	before, after := k.judge(k.old), k.judge(k.new)
	r := reference{rule: before}
	for _, at := range k.admitted {
		if k.changed != 0 && at >= k.changed && r.rule.Limit < after.Limit { // the larger of both
			r.state, r.rule = after.Carry(r.rule, r.state, at), after
		}
		if !r.take(at) {
			n++
		}
	}
	return n
}

// judge is the rule that admissions are measured by. The estimate of a sliding
// counter depends on where its windows begin, and that moves by the transit; and
// what comes just at a boundary is in one window or the other, by whose clock it
// was.
func (k *key) judge(r *limit.Rule) *limit.Rule {
	if r.Algorithm != limit.SlidingWindowCounter {
		return r
	}
	spec := r.Spec
	spec.Limit += 1 + 2*spec.Limit*transit/int64(spec.Window) + k.doubtful(int64(spec.Window))
	return mustRule(spec)
}

// doubtful is how many admissions at most were so near to a boundary that
// clocks disagree about their window.
func (k *key) doubtful(window int64) (most int64) {
	near := map[int64]int64{}
	for _, at := range k.admitted {
		boundary := (at + window/2) / window
		if d := at - boundary*window; -2*skewed < d && d < 2*skewed {
			near[boundary]++
			most = max(most, near[boundary])
		}
	}
	return most
}

// take charges the reference and says whether it admits.
func (r *reference) take(now int64) bool {
	if r.rule.Algorithm == limit.FixedWindow {
		return r.takeWindow(now)
	}
	var v limit.Verdict
	r.state, v = r.rule.Take(r.state, now, 1)
	return v.Allowed
}

// takeWindow lets an admission near a boundary count on either side of it:
// clocks differ, and a window that has moved ends a little later.
func (r *reference) takeWindow(now int64) bool {
	for _, at := range [...]int64{max(now-transit, r.state.A), now, now + transit} {
		s, v := r.rule.Take(r.window(at), at, 1)
		if v.Allowed {
			r.put(s)
			return true
		}
	}
	return false
}

// window is the window that contains at: state, or next when it is later.
func (r *reference) window(at int64) limit.State {
	if r.next.C > 0 && at >= r.next.A {
		return r.next
	}
	return r.state
}

func (r *reference) put(s limit.State) {
	switch {
	case r.state.C == 0 || s.A == r.state.A:
		r.state = s
	case s.A == r.next.A || r.next.C == 0:
		r.next = s
	default: // the one after next has begun
		r.state, r.next = r.next, s
	}
}

// history is when a counter was charged, and what that makes of a counter that
// no fault touches.
type history struct {
	rule      *limit.Rule
	limitless *limit.Rule // a bucket has none: it cannot be more than empty
	state     limit.State
	times     []int64
}

func newHistory(rule *limit.Rule) history {
	h := history{rule: rule, limitless: rule}
	if rule.Algorithm == limit.SlidingWindowCounter {
		spec := rule.Spec
		spec.Limit = limit.MaxLimit / 4
		h.limitless = mustRule(spec)
	}
	return h
}

// add charges, if need be above the limit: what a fault let through counts.
func (h *history) add(now int64) {
	h.state, _ = h.limitless.Take(h.state, now, 1)
	h.times = append(h.times, now)
}

// free says that there is room for certain: even if every charge had come a
// little later than it did.
func (h *history) free(now int64) bool {
	window := int64(h.rule.Window)
	switch h.rule.Algorithm {
	case limit.FixedWindow:
		since := now % window
		return since > transit && since < window-transit && h.after(now-since-transit) < h.rule.Limit
	case limit.SlidingWindowLog:
		return h.after(now-window-transit) < h.rule.Limit
	}
	slack := 2 + 2*(transit*h.rule.Limit+window-1)/window
	return h.rule.Peek(h.state, now, min(slack, h.rule.Capacity())).Allowed
}

// after counts the charges after a moment.
func (h *history) after(at int64) int64 {
	i, _ := slices.BinarySearch(h.times, at)
	return int64(len(h.times) - i)
}

// holds looks how many decide for a partition now that one more does.
func (o *oracle) holds(p int) {
	o.began(p)
	holders := 0
	for _, n := range o.w.nodes {
		if n.decides(p) {
			holders++
		}
	}
	if holders > 1 && !o.apart() {
		o.wrong("partition %d has %d holders", p, holders)
	}
	o.mostHolders = max(o.mostHolders, holders)
}

// holder is a node that holds the partition.
func (w *world) holder(p int) *node {
	for _, n := range w.nodes {
		if n.up && n.table.Phase(p) == owner.Holding {
			return n
		}
	}
	return nil
}

// left sees that a node that leaves has given everything away.
func (o *oracle) left(n *node, empty bool) {
	o.w.note("%d %s: has left\n", o.w.now, n.id)
	if !empty {
		o.wrong("%s leaves with counters that nobody has taken", n.id)
	}
}

// quiet: after all faults are over, each partition has one holder, nobody waits
// for an acknowledgement or an answer any more, and who wanted to leave has left.
func (o *oracle) quiet() {
	for _, n := range o.w.nodes {
		if n.up && n.core.Self().State == membership.Draining {
			o.wrong("after all is quiet, %s has still not left", n.id)
		}
	}
	for p := range o.w.cfg.Partitions {
		holders := 0
		for _, n := range o.w.nodes {
			if !n.up {
				continue
			}
			switch ph := n.core.Phase(p); {
			case ph == owner.Holding && n.clock() <= n.core.DecideUntil():
				holders++
			case ph != owner.None:
				o.wrong("after all is quiet, %s has partition %d %v", n.id, p, ph)
			}
		}
		if holders != 1 {
			o.wrong("after all is quiet, partition %d has %d holders", p, holders)
		}
	}
}

// copies: after all is quiet, whoever holds a partition has a copy of it where
// it says, and the copy admits no more. (It may be by the rule before.)
func (o *oracle) copies() {
	for _, k := range o.keys {
		n := o.w.holder(k.partition)
		if n == nil || len(n.core.Ring().Nodes()) < 2 {
			continue // see quiet; or there is nobody who could have one
		}
		part := n.core.Partition(k.partition)
		if !part.Seeded {
			o.wrong("after all is quiet, %s holds partition %d without a copy", n.id, k.partition)
			continue
		}
		here, there := n.remaining(k), o.w.node(part.Standby).remaining(k)
		if k.slack >= 0 && !o.changed && there > here {
			o.wrong("after all is quiet, %s may take %d at %s, and by the copy at %s %d", k.name, here, n.id, part.Standby, there)
		}
	}
}

// remaining is what could be taken if the node's counter decided.
func (n *node) remaining(k *key) int64 {
	now := n.clock()
	for _, e := range n.table.ExportThese(k.partition, now, []owner.ID{k.id}) {
		return e.Rule.Peek(e.Rule.Receive(e.State, now), now, 1).Remaining
	}
	return math.MaxInt64 // it is as good as new
}

func (o *oracle) verdict() {
	for _, k := range o.keys {
		excess := k.excess()
		if excess > k.excused {
			o.wrong("%s: %d more than its limit of %d allows; the faults excuse %d", k.name, excess, k.old.Limit, k.excused)
		}
		percent := 100 * float64(excess) / float64(k.old.Limit)
		if k.slack < 0 {
			o.worstBare = max(o.worstBare, percent)
		} else {
			o.worst = max(o.worst, percent)
		}
	}
}
