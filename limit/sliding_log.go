package limit

import (
	"sort"
	"time"
)

// slidingLog admits at most limit in any window, however aligned: it keeps a
// stamp of each admission until exactly window later.
//
// State.Log is a ring buffer in order of time, State.B the index of its oldest
// stamp, State.C how many there are and State.A the sum of their costs. A
// refused request leaves no stamp, or a client that insists would never get in.
// Stamps expire when a Take is admitted; what a refused one has to skip is
// fewer stamps than its cost.
type slidingLog struct {
	limit  int64
	window int64 // nanoseconds
}

func (l *slidingLog) take(s *State, v *Verdict, now, cost int64) {
	c, now := l.at(s, now)
	v.Limit = l.limit
	if cost > l.limit-c.used {
		v.Remaining = max(0, l.limit-c.used)
		v.RetryAfter = l.wait(s.Log, c, now, l.limit-cost)
		v.ResetAfter = l.reset(s.Log, c, now)
		return
	}
	s.A, s.B, s.C = c.used+cost, c.oldest, c.stamps
	l.add(s, Stamp{now, cost})
	v.Allowed = true
	v.Remaining = l.limit - s.A
	v.ResetAfter = time.Duration(l.window)
}

func (l *slidingLog) peek(s State, now, cost int64) Verdict {
	v := l.look(s, now)
	if v.Allowed = cost <= v.Remaining; !v.Allowed {
		v.RetryAfter = l.until(s, now, l.limit-cost)
	}
	return v
}

func (l *slidingLog) look(s State, now int64) Verdict {
	c, now := l.at(&s, now)
	return Verdict{Limit: l.limit, Remaining: max(0, l.limit-c.used), ResetAfter: l.reset(s.Log, c, now)}
}

func (l *slidingLog) until(s State, now, room int64) time.Duration {
	c, now := l.at(&s, now)
	return l.wait(s.Log, c, now, room)
}

// wait is until so many of the oldest stamps have expired that the others fit
// the room.
func (l *slidingLog) wait(log []Stamp, c live, now, room int64) time.Duration {
	i := c.oldest
	for missing := c.used - room - log[i].Cost; missing > 0; missing -= log[i].Cost {
		i = after(log, i)
	}
	return time.Duration(log[i].At + l.window - now)
}

// reset is until the newest stamp has expired.
func (l *slidingLog) reset(log []Stamp, c live, now int64) time.Duration {
	if c.stamps == 0 {
		return 0
	}
	return time.Duration(log[c.newest(log)].At + l.window - now)
}

// live is the part of a log that counts at some moment.
type live struct{ used, oldest, stamps int64 }

// at is the part of the log that counts at now, and now as the counter sees it:
// not before the newest stamp.
func (l *slidingLog) at(s *State, now int64) (live, int64) {
	c := live{s.A, s.B, s.C}
	if c.stamps == 0 {
		return live{}, now
	}
	last := s.Log[c.newest(s.Log)].At
	if now-last >= l.window {
		return live{}, now
	}
	now = max(now, last)
	for oldest := &s.Log[c.oldest]; now-oldest.At >= l.window; oldest = &s.Log[c.oldest] {
		c.used -= oldest.Cost
		c.oldest = after(s.Log, c.oldest)
		c.stamps--
	}
	return c, now
}

// newest is the index of the latest stamp; there must be one.
func (c live) newest(log []Stamp) int64 {
	i := c.oldest + c.stamps - 1
	if n := int64(len(log)); i >= n {
		return i - n
	}
	return i
}

// after is the index behind i.
func after(log []Stamp, i int64) int64 {
	if i++; i == int64(len(log)) {
		return 0
	}
	return i
}

// add appends the stamp; one of the same moment as the newest joins it.
func (l *slidingLog) add(s *State, stamp Stamp) {
	if s.C > 0 {
		if last := &s.Log[live{s.A, s.B, s.C}.newest(s.Log)]; last.At == stamp.At {
			last.Cost += stamp.Cost
			return
		}
	}
	if n := int64(len(s.Log)); s.C == n || n > 64 && s.C < n/8 {
		l.resize(s)
	}
	s.C++
	s.Log[live{s.A, s.B, s.C}.newest(s.Log)] = stamp
}

// resize makes room for twice the stamps, but for no more than can be admitted.
// It also gives back what a burst long ago has taken.
func (l *slidingLog) resize(s *State) {
	log := make([]Stamp, min(max(4, 2*s.C), l.limit))
	for i, j := int64(0), s.B; i < s.C; i, j = i+1, after(s.Log, j) {
		log[i] = s.Log[j]
	}
	s.Log, s.B = log, 0
}

// refund takes the stamp of the cost: the first ones that are not older. To take
// later ones would let go of charges that stay for longer. Without an age it takes
// the newest, which would have stayed longest.
func (l *slidingLog) refund(s State, now, cost, age int64) State {
	c, now := l.at(&s, now)
	if age >= l.window {
		return s
	}
	back := min(cost, c.used)
	c.used -= back
	if age > 0 {
		back -= l.refundFrom(s.Log, &c, now-age, back)
	}
	for back > 0 {
		last := &s.Log[c.newest(s.Log)]
		part := min(back, last.Cost)
		back -= part
		if last.Cost -= part; last.Cost == 0 {
			c.stamps--
		}
	}
	s.A, s.B, s.C = c.used, c.oldest, c.stamps
	return s
}

// refundFrom takes up to so much from the stamps of that moment and later, the
// oldest of them first, and returns how much it has found.
func (l *slidingLog) refundFrom(log []Stamp, c *live, taken, most int64) (found int64) {
	stamp := func(i int64) *Stamp { return &log[(c.oldest+i)%int64(len(log))] }
	from := int64(sort.Search(int(c.stamps), func(i int) bool { return stamp(int64(i)).At >= taken }))
	to := from
	for i := from; i < c.stamps; i++ {
		part := min(most-found, stamp(i).Cost)
		found += part
		if stamp(i).Cost -= part; stamp(i).Cost > 0 {
			*stamp(to) = *stamp(i)
			to++
		}
	}
	c.stamps = to
	return found
}

func (l *slidingLog) freshAt(s State) int64 {
	if s.C == 0 {
		return 0
	}
	return s.Log[live{s.A, s.B, s.C}.newest(s.Log)].At + l.window
}

// carry drops what has expired under from: a longer window must not count it
// again.
func (l *slidingLog) carry(from judge, s State, now int64) State {
	c, _ := from.(*slidingLog).at(&s, now)
	s.A, s.B, s.C = c.used, c.oldest, c.stamps
	return s
}
