package limit

import (
	"math"
	"time"
)

// slidingCounter estimates a sliding window from two aligned ones: a request
// fits if p·(1−f) + c stays within the limit, p being the previous window's
// count, c the current one's and f how much of the current one has passed. This
// supposes that p came evenly; the error is typically 1/(2·√limit).
//
// State.A is the start of the current window, Unix nanoseconds, State.B is p
// and State.C is c.
type slidingCounter struct {
	limit  int64
	window int64 // nanoseconds
}

// counts is the state as it stands at some moment.
type counts struct{ start, previous, current int64 }

// at is the state as it stands at now, and now as the counter sees it: not
// before the current window. A window that another node has started may be out
// of line with this node's clock, and so are those that follow it, until the
// counter is fresh: to bring one into line would let go of some of its count.
func (k *slidingCounter) at(s *State, now int64) (counts, int64) {
	switch age := now - s.A; {
	case age < k.window:
		return counts{s.A, s.B, s.C}, max(now, s.A)
	case s.C > 0 && age-k.window < k.window:
		return counts{start: s.A + k.window, previous: s.C}, now
	}
	return counts{start: now - now%k.window}, now
}

// room is what the limit leaves above the estimate; negative when a limit was
// lowered. The weight p·(1−f) is rounded up: all else is whole, so that this
// decides as the exact value would.
func (k *slidingCounter) room(c counts, now int64) int64 {
	room := k.limit - c.current
	if c.previous == 0 {
		return room
	}
	weight, rest := mulDiv(uint64(c.previous), uint64(c.start+k.window-now), uint64(k.window))
	if rest > 0 {
		weight++
	}
	return room - int64(weight)
}

func (k *slidingCounter) take(s *State, v *Verdict, now, cost int64) {
	c, now := k.at(s, now)
	room := k.room(c, now)
	v.Limit = k.limit
	if cost > room {
		v.Remaining = max(0, room)
		v.RetryAfter = k.wait(c, now, k.limit-cost)
		v.ResetAfter = k.reset(c, now)
		return
	}
	c.current += cost
	s.A, s.B, s.C = c.start, c.previous, c.current
	v.Allowed = true
	v.Remaining = room - cost
	v.ResetAfter = k.reset(c, now)
}

func (k *slidingCounter) until(s State, now, room int64) time.Duration {
	c, now := k.at(&s, now)
	return k.wait(c, now, room)
}

// wait solves p·(1−f) + c <= room for the time: in the current window, or where
// c alone is too much, in the next one, whose p it will be.
func (k *slidingCounter) wait(c counts, now, room int64) time.Duration {
	end := c.start + k.window
	if left := room - c.current; left >= 0 {
		return time.Duration(end - k.falls(left, c.previous) - now)
	}
	return time.Duration(end - now + k.window - k.falls(room, c.current))
}

// falls is how long before its end a window's weight of count falls to room,
// which is less than count.
func (k *slidingCounter) falls(room, count int64) int64 {
	ns, _ := mulDiv(uint64(room), uint64(k.window), uint64(count))
	return int64(ns)
}

// reset is until neither count weighs any more.
func (k *slidingCounter) reset(c counts, now int64) time.Duration {
	left := c.start + k.window - now
	switch {
	case c.current > 0:
		return time.Duration(left + k.window)
	case c.previous > 0:
		return time.Duration(left)
	}
	return 0
}

func (k *slidingCounter) peek(s State, now, cost int64) Verdict {
	v := k.look(s, now)
	if v.Allowed = cost <= v.Remaining; !v.Allowed {
		v.RetryAfter = k.until(s, now, k.limit-cost)
	}
	return v
}

func (k *slidingCounter) look(s State, now int64) Verdict {
	c, now := k.at(&s, now)
	return Verdict{Limit: k.limit, Remaining: max(0, k.room(c, now)), ResetAfter: k.reset(c, now)}
}

// refund gives back to the window that the cost was taken in. Who does not know
// when that was gets something from the current one only: the previous one's count
// is half forgotten already.
func (k *slidingCounter) refund(s State, now, cost, age int64) State {
	c, now := k.at(&s, now)
	before := age - (now - c.start) // how long before the current window, if positive
	switch {
	case before <= 0 && c.current > 0:
		s.C -= min(cost, s.C) // s is in the window of now
	case before <= 0 || before > k.window:
		return s
	case c.start == s.A:
		s.B -= min(cost, s.B)
	case c.previous > 0:
		s.C -= min(cost, s.C) // s is in the window before
	default:
		return s
	}
	if s.B == 0 && s.C == 0 {
		s.A = now - now%k.window // as a fresh one: in line
	}
	return s
}

func (k *slidingCounter) freshAt(s State) int64 {
	end := s.A + k.window
	switch {
	case s.C > 0:
		return end + min(k.window, math.MaxInt64-end) // the clock's own end is in 2262
	case s.B > 0:
		return end
	}
	return s.A
}

// carry keeps the counts, or with another window the estimate, as used in the
// window that contains now.
func (k *slidingCounter) carry(from judge, s State, now int64) State {
	old := from.(*slidingCounter)
	if k.window == old.window {
		return s
	}
	c, now := old.at(&s, now)
	used := old.limit - old.room(c, now)
	if used == 0 {
		return State{}
	}
	return State{A: now - now%k.window, C: used}
}
