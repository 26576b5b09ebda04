package owner

import "github.com/ringlimit/ringlimit/limit"

// evict is planted.Evict: it drops counters in use from the new one's segment, in
// the order of their IDs, until there is room for it.
func (t *Table) evict(p *partition, id ID, name []byte, log []limit.Stamp) bool {
	for s := p.segment(id.Lo); s != nil && s.slots.used > 0; s = p.segment(id.Lo) {
		i := s.slots.from(max(s.next, s.low))
		if i == len(s.slots.at) {
			s.next = 0
			continue
		}
		s.next = s.slots.at[i].id.Lo + 1
		t.drop(p, place{s, i})
		t.compact(p, s)
		if t.makeRoom(p, id, name, log, withinBound) {
			return true
		}
	}
	return false
}
