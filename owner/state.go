package owner

import "github.com/ringlimit/ringlimit/limit"

// state unpacks a slot. A log's stamps are not copied: they belong to the arena.
func (p *partition) state(s *slot, rule *limit.Rule) (state limit.State) {
	p.read(s, rule, &state)
	return state
}

// read is state into a zero State, word by word, as write is: to copy words that
// were just written takes longer than to decide.
func (p *partition) read(s *slot, rule *limit.Rule, to *limit.State) {
	to.A = s.words[0]
	if rule.Algorithm != limit.SlidingWindowLog {
		to.B, to.C = s.words[1], s.words[2]
		return
	}
	to.B, to.C = int64(uint64(s.words[1])>>32), int64(uint32(s.words[1]))
	to.Log = p.logs.at(block(s.words[2]))
}

// write is the reverse of read. The log itself has to be in the block already.
// B and C of a log are places in it and fit into half a word each.
func (s *slot) write(state *limit.State, rule *limit.Rule, b block) {
	s.words[0] = state.A
	if rule.Algorithm != limit.SlidingWindowLog {
		s.words[1], s.words[2] = state.B, state.C
		return
	}
	s.words[1], s.words[2] = state.B<<32|int64(uint32(state.C)), int64(b)
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
