package owner

import (
	"sync"

	"github.com/ringlimit/ringlimit/limit"
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
	counters

	// floor is when the sweep last dropped a counter. A caller that read the
	// clock before and waited for the lock must not decide as of then: the
	// counter was not yet fresh, and would be charged a second time around.
	floor int64

	next   uint64 // where reclaim goes on
	barren int64  // reclaim found nothing: not worth another look before this

	_ [64]byte // keeps the next partition's lock off our cache lines
}

// counters is what a partition remembers.
type counters struct {
	slots slots
	names names
	logs  logs
}

func (c *counters) bytes() int64 { return c.slots.bytes() + c.names.bytes() + c.logs.bytes() }

// state unpacks a slot. A log's stamps are not copied: they belong to the arena.
func (c *counters) state(s *slot, rule *limit.Rule) limit.State {
	if rule.Algorithm != limit.SlidingWindowLog {
		return limit.State{A: s.words[0], B: s.words[1], C: s.words[2]}
	}
	return limit.State{
		A:   s.words[0],
		B:   int64(uint64(s.words[1]) >> 32),
		C:   int64(uint32(s.words[1])),
		Log: c.logs.at(block(s.words[2])),
	}
}

// pack is the reverse of state. The log itself has to be in the block already.
// B and C of a log are places in it and fit into half a word each.
func pack(s *limit.State, rule *limit.Rule, b block) [3]int64 {
	if rule.Algorithm != limit.SlidingWindowLog {
		return [3]int64{s.A, s.B, s.C}
	}
	return [3]int64{s.A, s.B<<32 | int64(uint32(s.C)), int64(b)}
}

// logOf is the slot's block; the zero block under a rule that keeps no log.
func logOf(s *slot, rule *limit.Rule) block {
	if rule.Algorithm != limit.SlidingWindowLog {
		return 0
	}
	return block(s.words[2])
}

// replaceLog moves a log out of the block it has outgrown, or that no longer
// fits its rule. It returns the new block and by how many bytes the arena grew.
func (c *counters) replaceLog(id ID, old block, log []limit.Stamp) (b block, grown int64) {
	if old != 0 && len(log) > 0 && old.class() == classOf(len(log)) {
		return c.logs.rewrite(old, log), 0
	}
	grown = c.logs.need(len(log))
	b = c.logs.put(id, log) // before the old block goes: log may lie in it
	return b, grown - c.freeLog(old)
}

// freeLog gives a block back and returns the bytes that went with it. The
// counter whose block moved into its place is told.
func (c *counters) freeLog(b block) (released int64) {
	moved, ok, released := c.logs.free(b)
	if ok {
		i, _ := c.slots.find(moved)
		s := &c.slots.at[i]
		s.words[2] = int64(newBlock(b.index(), block(s.words[2]).length()))
	}
	return released
}
