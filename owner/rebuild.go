package owner

// rebuild replaces a segment by one with room for so many more counters, and for
// names of so many bytes more.
func (t *Table) rebuild(p *partition, s *segment, more, names int, may admission) bool {
	d := planned(s.low, s.slots.depth, more, names, s.source())
	if need := s.names.live() + names; d.text > t.maxText {
		if need > t.maxText {
			return false
		}
		d.text = t.maxText
	}
	if !t.memory.reserve(d.bytes()-s.bytes(), may) {
		return false
	}
	n := d.build()
	n.next = s.next
	p.directory().put(n)
	return true
}

// split replaces a segment by two of half its range.
func (t *Table) split(p *partition, s *segment, may admission) bool {
	low, high := s.halves()
	dir, entries := p.directory(), 0
	if 1<<low.slots.depth > len(dir) {
		entries = len(dir)
	}
	if !t.memory.reserve(low.bytes()+high.bytes()-s.bytes()+int64(entries)*entrySize, may) {
		return false
	}
	if entries > 0 {
		dir = dir.doubled()
		p.dir.Store(&dir)
	}
	dir.put(low.build())
	dir.put(high.build())
	return true
}

// divisible says that the segment is to be split. Where very many counters agree
// in their leading bits that would be of no use: no segment is made for a range in
// which a 32nd of a segment's counters would be expected.
func (t *Table) divisible(p *partition, s *segment) bool {
	large := s.slots.used >= t.large || s.names.live() >= segmentText
	return large && t.large/32<<(s.slots.depth+1) <= p.used
}

// buddy is the other half of the range that s is a half of; nil when that is split
// further.
func (p *partition) buddy(s *segment) *segment {
	if s.slots.depth == 0 {
		return nil
	}
	b := p.segment(s.low ^ 1<<(64-s.slots.depth))
	if b.slots.depth != s.slots.depth {
		return nil
	}
	return b
}

// merge replaces a segment and its buddy by one, if that is far from being split
// again, and returns it; else nil. Two that are fuller than a new one may need more
// room as one.
func (t *Table) merge(p *partition, s *segment) *segment {
	b := p.buddy(s)
	if b == nil || s.slots.used+b.slots.used > t.large/4 || s.names.live()+b.names.live() > segmentText/4 {
		return nil
	}
	if b.low < s.low {
		s, b = b, s
	}
	d := planned(s.low, s.slots.depth-1, 0, 0, s.source(), b.source())
	if !t.memory.reserve(d.bytes()-s.bytes()-b.bytes(), withinBound) {
		return nil
	}
	n := d.build()
	p.directory().put(n)
	return n
}
