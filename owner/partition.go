package owner

import (
	"sync"
	"sync/atomic"
)

// Phase says what a node does with a partition.
type Phase uint8

const (
	None      Phase = iota // it has no part in it, and none of its counters
	Acquiring              // it collects the counters from those who have them
	Holding                // it decides: the only phase in which it does
	Released               // it gave the counters away and keeps a frozen copy
)

// String is the phase's name.
func (ph Phase) String() string {
	switch ph {
	case Acquiring:
		return "acquiring"
	case Holding:
		return "holding"
	case Released:
		return "released"
	}
	return "none"
}

// partition is the counters that share a lock. All but mu is guarded by it.
type partition struct {
	mu    sync.Mutex
	phase Phase

	dir  atomic.Pointer[directory] // nil: no counters; Table.touch reads it without the lock
	used int
	logs logs

	// floor is when the sweep last dropped a counter. A caller that read the
	// clock before and waited for the lock must not decide as of then: the
	// counter was not yet fresh, and would be charged a second time around.
	floor int64

	barren int64 // there is no memory, nor was anything found to drop: not worth another try before this

	_ [64]byte // keeps the next partition's lock off our cache lines
}

// place is where a counter lies, or would. It is good until the next change.
type place struct {
	seg *segment
	i   int
}

func (at place) slot() *slot { return &at.seg.slots.at[at.i] }

// find returns the counter's place.
func (p *partition) find(id ID) (at place, found bool) {
	s := p.segment(id.Lo)
	if s == nil {
		return place{}, false
	}
	i, found := s.slots.find(id)
	return place{s, i}, found
}

// segment is where counters with that Lo belong, or nil while there are none.
func (p *partition) segment(lo uint64) *segment {
	d := p.dir.Load()
	if d == nil {
		return nil
	}
	return d.of(lo)
}

// directory is p.dir; an empty one while there is none.
func (p *partition) directory() directory {
	if d := p.dir.Load(); d != nil {
		return *d
	}
	return nil
}

// walk visits the counters in order, beginning with those whose Lo is from,
// until visit returns false. It returns where to go on, or that it is done.
func (p *partition) walk(from uint64, visit func(*segment, *slot) bool) (next uint64, done bool) {
	next = from
	for on, more := true, p.dir.Load() != nil; on; {
		if !more {
			return 0, true
		}
		next, more, on = p.segment(next).walk(next, visit)
	}
	return next, false
}

// walk is partition.walk within a segment. It returns whether to go on, and from
// where if there is more, in this segment or behind it.
func (s *segment) walk(from uint64, visit func(*segment, *slot) bool) (next uint64, more, on bool) {
	last, on := from, true
	for i := s.slots.from(from); i < len(s.slots.at); i++ {
		c := &s.slots.at[i]
		if c.rule == 0 {
			continue
		}
		if !on && c.id.Lo != last { // never between two with the same Lo
			return c.id.Lo, true, false
		}
		last = c.id.Lo
		on = visit(s, c) && on
	}
	next, more = s.end()
	return next, more, on || !more
}

// clear drops all counters and returns what they were in.
func (p *partition) clear() (directory, logs) {
	d, l := p.directory(), p.logs
	p.dir.Store(nil)
	p.logs, p.used = logs{}, 0
	return d, l
}

func (p *partition) bytes() int64 { return p.directory().bytes() + p.logs.bytes() }
