package owner

import "github.com/ringlimit/ringlimit/limit"

// state unpacks a slot. A log's stamps are not copied: they belong to the arena.
func (p *partition) state(s *slot, rule *limit.Rule) limit.State {
	if rule.Algorithm != limit.SlidingWindowLog {
		return limit.State{A: s.words[0], B: s.words[1], C: s.words[2]}
	}
	return limit.State{
		A:   s.words[0],
		B:   int64(uint64(s.words[1]) >> 32),
		C:   int64(uint32(s.words[1])),
		Log: p.logs.at(block(s.words[2])),
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
func (p *partition) replaceLog(id ID, old block, log []limit.Stamp) (b block, grown int64) {
	if old != 0 && len(log) > 0 && old.class() == classOf(len(log)) {
		return p.logs.rewrite(old, log), 0
	}
	grown = p.logs.need(len(log))
	b = p.logs.put(id, log) // before the old block goes: log may lie in it
	return b, grown - p.freeLog(old)
}

// freeLog gives a block back and returns the bytes that went with it. The
// counter whose block moved into its place is told.
func (p *partition) freeLog(b block) (released int64) {
	moved, ok, released := p.logs.free(b)
	if ok {
		at, _ := p.find(moved)
		s := at.slot()
		s.words[2] = int64(newBlock(b.index(), block(s.words[2]).length()))
	}
	return released
}
