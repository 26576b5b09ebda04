package limit

import (
	"math"
	"slices"
)

// mostCounted bounds the counts that are received. A count can exceed its
// rule's limit, which may have been lowered, but not what any two windows admit.
const mostCounted = 2 * MaxLimit

// Shipped is a counter's state on its way to another node, or the copy of one.
// It holds no moment, only ages and what remains: the clocks of two nodes may
// differ. What the words mean is up to the rule's algorithm; see [Rule.Ship] in
// its file. The zero Shipped is a fresh counter.
//
// On arrival the time on the way is ignored, so that the counter is as it was
// when it left: it errs to denying, by that time at most.
type Shipped struct {
	A, B, C int64
	Log     []Stamp // oldest first; At is an age in nanoseconds
}

// shipper is the part of a judge that lets a counter change its node.
type shipper interface {
	// ship is s as it stands at now; zero when that equals a fresh state.
	ship(s State, now int64) Shipped
	// receive is the reverse. It makes a possible state of whatever it is given.
	receive(w Shipped, now int64) State
	// merge is one state that is at least as strict as both.
	merge(a, b State, now int64) State
}

// Ship is the state in relative terms, as of now. It shares no memory with s.
// Ship it as late as possible: what passes between now and the arrival is added
// to every wait.
func (r *Rule) Ship(s State, now int64) Shipped { return r.judge.ship(s, now) }

// Receive is the state that was shipped, in terms of this node's clock. r must
// be the rule it was counted under; see [Rule.Carry] for another one. Whatever
// is in w, also what no Ship ever made, the result can be used, and locks nobody
// out for longer than r itself can.
func (r *Rule) Receive(w Shipped, now int64) State { return r.judge.receive(w, now) }

// Merge joins two states of one counter, of different holders or copies, which
// both were counted under r: the most restrictive wins. To merge the same state
// again, or several in another order, changes nothing. Neither a nor b may be
// used afterwards.
//
// As everywhere, time does not run back for a counter, and so for a merged one
// not before the later of the two.
func (r *Rule) Merge(a, b State, now int64) State { return r.judge.merge(a, b, now) }

// A bucket travels as its deficit: A nanoseconds and B of the fraction.

func (b *bucket) ship(s State, now int64) Shipped {
	d, _ := b.deficit(&s, now)
	return Shipped{A: d.ns, B: d.frac}
}

func (b *bucket) receive(w Shipped, now int64) State {
	d := span{clamp(w.A, 0, b.full.ns), clamp(w.B, 0, int64(b.den)-1)}
	if b.over(d) > 0 {
		d = b.full
	}
	if d == (span{}) {
		return State{}
	}
	return State{A: now + d.ns, B: d.frac, C: now}
}

// merge takes the larger deficit.
func (b *bucket) merge(x, y State, _ int64) State {
	last := max(x.C, y.C)
	if x.A < y.A || x.A == y.A && x.B < y.B {
		x = y
	}
	x.C = last
	return x
}

// A fixed window travels as its age A, what is left of it B, and the count C.

func (f *fixedWindow) ship(s State, now int64) Shipped {
	if now >= s.B || s.C == 0 {
		return Shipped{}
	}
	return Shipped{A: max(0, now-s.A), B: s.B - now, C: s.C}
}

// receive puts the window where the nearest of its own begins, so that copies
// that spent different times on the way are one window, and boundaries do not
// drift from node to node. Of the two ends the later counts.
func (f *fixedWindow) receive(w Shipped, now int64) State {
	if w.C <= 0 {
		return State{}
	}
	start, end := f.around(now)
	start, end = f.nearest(now - clamp(w.A, 0, 2*(end-start)))
	// The nearest one may begin in half a window from now, and end so late.
	left := clamp(w.B, 0, end-start+(end-start)/2)
	return State{A: start, B: max(end, now+left), C: w.C}
}

// nearest is the window whose start is nearest.
func (f *fixedWindow) nearest(at int64) (start, end int64) {
	start, end = f.around(at)
	if at-start >= end-at {
		start, end = f.around(end)
	}
	return start, end
}

// merge takes the later window; of one window the larger count and the later
// end.
func (f *fixedWindow) merge(x, y State, now int64) State {
	x, y = f.used(x, now), f.used(y, now)
	switch {
	case x.C == 0 || y.C > 0 && x.A < y.A:
		return y
	case y.C == 0 || y.A < x.A:
		return x
	}
	return State{A: x.A, B: max(x.B, y.B), C: max(x.C, y.C)}
}

// used is s, or the zero State when it equals a fresh one.
func (f *fixedWindow) used(s State, now int64) State {
	if now >= s.B || s.C == 0 {
		return State{}
	}
	return s
}

// A sliding window counter travels as the age A of its window, the count B of
// the window before and the count C. The age is negative when the window is yet
// to begin by the clock that ships it.

func (k *slidingCounter) ship(s State, now int64) Shipped {
	c, _ := k.at(&s, now)
	if c.previous == 0 && c.current == 0 {
		return Shipped{}
	}
	return Shipped{A: now - c.start, B: c.previous, C: c.current}
}

// receive leaves the window where it was. To move it to a boundary of this
// node's own would make the count of the window before weigh less than it did,
// or more.
func (k *slidingCounter) receive(w Shipped, now int64) State {
	s := State{B: clamp(w.B, 0, mostCounted), C: clamp(w.C, 0, mostCounted)}
	if s.B == 0 && s.C == 0 {
		return State{}
	}
	s.A = now - clamp(w.A, -k.window/2, k.window)
	return s
}

// merge takes the larger count of each window. Windows that start less than
// half a window apart are one; the later start lets the counts weigh longer.
func (k *slidingCounter) merge(x, y State, now int64) State {
	a, _ := k.at(&x, now)
	b, _ := k.at(&y, now)
	if a.start < b.start {
		a, b = b, a
	}
	switch {
	case b.previous == 0 && b.current == 0:
	case a.previous == 0 && a.current == 0:
		a = b
	default:
		if half := k.window - k.window/2; a.start-b.start >= half { // what b has as current, a has as previous
			b = counts{start: b.start + k.window, previous: b.current}
		}
		a = counts{max(a.start, b.start), max(a.previous, b.previous), max(a.current, b.current)}
	}
	return State{A: a.start, B: a.previous, C: a.current}
}

// A sliding log travels as the age of each stamp.

func (l *slidingLog) ship(s State, now int64) Shipped {
	c, now := l.at(&s, now)
	if c.stamps == 0 {
		return Shipped{}
	}
	log := make([]Stamp, c.stamps)
	for i := range log {
		e := s.Log[c.oldest]
		log[i] = Stamp{now - e.At, e.Cost}
		c.oldest = after(s.Log, c.oldest)
	}
	return Shipped{Log: log}
}

func (l *slidingLog) receive(w Shipped, now int64) State {
	log := make([]Stamp, 0, min(len(w.Log), MaxLogLimit))
	age, room := l.window, int64(MaxLogLimit)
	for _, e := range w.Log {
		age = min(age, max(0, e.At)) // in order of time, whatever came
		if cost := clamp(e.Cost, 0, room); cost > 0 {
			log = push(log, Stamp{now - age, cost})
			room -= cost
		}
	}
	return ofLog(log)
}

// merge admits in every moment to come what both would: it has as much to expire
// after that moment as the one that has more.
func (l *slidingLog) merge(x, y State, now int64) State {
	a, _ := l.at(&x, now)
	b, _ := l.at(&y, now)
	log := make([]Stamp, 0, a.stamps+b.stamps) // newest first
	var usedA, usedB, used int64
	for a.stamps > 0 || b.stamps > 0 {
		at := max(a.last(x.Log), b.last(y.Log))
		usedA += a.cut(x.Log, at)
		usedB += b.cut(y.Log, at)
		if more := max(usedA, usedB) - used; more > 0 {
			log = append(log, Stamp{at, more})
			used += more
		}
	}
	slices.Reverse(log)
	return ofLog(log)
}

// last is when the newest stamp was made.
func (c *live) last(log []Stamp) int64 {
	if c.stamps == 0 {
		return math.MinInt64
	}
	return log[c.newest(log)].At
}

// cut takes out the newest stamp, if it is of that moment, and returns its cost.
func (c *live) cut(log []Stamp, at int64) int64 {
	if c.last(log) != at {
		return 0
	}
	e := log[c.newest(log)]
	c.stamps--
	return e.Cost
}

// push appends a stamp; one of the same moment as the newest joins it.
func push(log []Stamp, stamp Stamp) []Stamp {
	if n := len(log); n > 0 && log[n-1].At == stamp.At {
		log[n-1].Cost += stamp.Cost
		return log
	}
	return append(log, stamp)
}

// ofLog is the state with just these stamps, oldest first.
func ofLog(log []Stamp) State {
	if len(log) == 0 {
		return State{}
	}
	s := State{C: int64(len(log)), Log: log}
	for _, e := range log {
		s.A += e.Cost
	}
	return s
}

func clamp(v, low, high int64) int64 { return max(low, min(v, high)) }
