package limit

import (
	"math/bits"
	"time"
)

// bucket is a token bucket or a leaky bucket. Both are one thing, GCRA: a state
// is the moment when the bucket will be full again (or drained: a leaky bucket
// that queues k behind the one served admits what a token bucket of 1+k does).
// A unit postpones that moment by window/limit; it fits if the moment then lies
// no further ahead than the whole capacity takes.
//
// The moment is an exact rational: State.A is Unix nanoseconds and State.B the
// fraction of a nanosecond, in 1/den. State.C is when that was last charged or
// given back.
type bucket struct {
	num, den uint64 // a unit takes num/den ns to refill, in lowest terms
	unit     span   // the same
	full     span   // what the capacity takes to refill
	capacity int64
	queue    bool // an admitted request waits for the backlog before it
}

// span is a length of time: ns + frac/den nanoseconds, 0 <= frac < den.
type span struct{ ns, frac int64 }

// up is the span in nanoseconds, rounded up.
func (d span) up() time.Duration {
	if d.frac > 0 {
		d.ns++
	}
	return time.Duration(d.ns)
}

func newBucket(s Spec) *bucket {
	b := &bucket{capacity: s.capacity(), queue: s.Algorithm == LeakyBucket && !s.Police}
	if s.Limit == 0 {
		b.num, b.den = 1, 1 // never consulted: nothing fits
		return b
	}
	g := gcd(uint64(s.Window), uint64(s.Limit))
	b.num, b.den = uint64(s.Window)/g, uint64(s.Limit)/g
	b.unit = span{int64(b.num / b.den), int64(b.num % b.den)}
	b.full = b.takes(b.capacity)
	return b
}

func gcd(a, b uint64) uint64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// refillsInTime says whether the capacity is back within MaxWindow, so that no
// moment overflows.
func (s Spec) refillsInTime() bool {
	hi, lo := bits.Mul64(uint64(s.capacity()), uint64(s.Window))
	maxHi, maxLo := bits.Mul64(uint64(MaxWindow), uint64(s.Limit))
	return hi < maxHi || hi == maxHi && lo <= maxLo
}

// takes is how long the units take to refill.
func (b *bucket) takes(units int64) span {
	if units == 1 { // the usual cost
		return b.unit
	}
	ns, frac := mulDiv(uint64(units), b.num, b.den)
	return span{int64(ns), int64(frac)}
}

func (b *bucket) plus(d, more span) span {
	d.ns += more.ns
	d.frac += more.frac
	if d.frac >= int64(b.den) {
		d.ns++
		d.frac -= int64(b.den)
	}
	return d
}

// used is how many units the deficit is, and the rest in 1/num of a unit.
func (b *bucket) used(deficit span) (units, rest uint64) {
	hi, lo := bits.Mul64(uint64(deficit.ns), b.den)
	lo, carry := bits.Add64(lo, uint64(deficit.frac), 0)
	if hi += carry; hi == 0 {
		return lo / b.num, lo % b.num
	}
	return bits.Div64(hi, lo, b.num)
}

func (b *bucket) remaining(deficit span) int64 {
	units, rest := b.used(deficit)
	if rest > 0 {
		units++
	}
	return b.capacity - int64(units)
}

// deficit is what is missing at now, and now as the bucket sees it: not before
// the last charge.
func (b *bucket) deficit(s *State, now int64) (span, int64) {
	now = max(now, s.C)
	if s.A < now {
		return span{}, now
	}
	return span{s.A - now, s.B}, now
}

// over is by how much the span is longer than the capacity takes: nanoseconds,
// rounded up; 0 or less when it is not.
func (b *bucket) over(d span) int64 {
	over := d.ns - b.full.ns
	if d.frac > b.full.frac {
		over++
	}
	return over
}

func (b *bucket) take(s *State, v *Verdict, now, cost int64) {
	before, now := b.deficit(s, now)
	after := b.plus(before, b.takes(cost))
	v.Limit = b.capacity
	if wait := b.over(after); wait > 0 {
		v.Remaining = b.remaining(before)
		v.RetryAfter = time.Duration(wait)
		v.ResetAfter = before.up()
		return
	}
	s.A, s.B, s.C = now+after.ns, after.frac, now
	v.Allowed = true
	v.Remaining = b.remaining(after)
	v.ResetAfter = after.up()
	if b.queue {
		v.Delay = before.up()
	}
}

func (b *bucket) peek(s State, now, cost int64) Verdict {
	v := b.look(s, now)
	d, _ := b.deficit(&s, now)
	wait := b.over(b.plus(d, b.takes(cost)))
	switch {
	case wait > 0:
		v.RetryAfter = time.Duration(wait)
		return v
	case b.queue:
		v.Delay = d.up()
	}
	v.Allowed = true
	return v
}

func (b *bucket) look(s State, now int64) Verdict {
	d, _ := b.deficit(&s, now)
	return Verdict{Limit: b.capacity, Remaining: b.remaining(d), ResetAfter: d.up()}
}

// refund may put the moment before now: then the bucket is full. It does not look
// at the age: whether the bucket was full in between, and has given the cost back
// by itself, is not in the state. If so, what it refilled in that age is minted: at
// most rate × age, and never more than the cost.
func (b *bucket) refund(s State, now, cost, _ int64) State {
	d, now := b.deficit(&s, now)
	if d == (span{}) {
		return s
	}
	back := b.takes(min(cost, b.capacity))
	d.ns -= back.ns
	if d.frac -= back.frac; d.frac < 0 {
		d.ns--
		d.frac += int64(b.den)
	}
	return State{A: now + d.ns, B: d.frac, C: now}
}

func (b *bucket) until(s State, now, room int64) time.Duration {
	d, _ := b.deficit(&s, now)
	left := b.takes(room)
	d.ns -= left.ns
	d.frac -= left.frac // if negative, it makes less than a nanosecond less
	return max(d.up(), 0)
}

func (b *bucket) freshAt(s State) int64 { return int64(span{s.A, s.B}.up()) }

// carry keeps the units that are used. A limit of 0 has no rate to tell time by
// and keeps nothing.
func (b *bucket) carry(from judge, s State, now int64) State {
	old := from.(*bucket)
	deficit, now := old.deficit(&s, now)
	d := b.full
	if units, rest := old.used(deficit); int64(units) < b.capacity {
		part, inexact := mulDiv(rest, b.num, old.num) // in 1/den ns
		if inexact > 0 {
			part++ // nothing is minted
		}
		d = b.plus(b.takes(int64(units)), span{int64(part / b.den), int64(part % b.den)})
	}
	return State{A: now + d.ns, B: d.frac, C: now}
}
