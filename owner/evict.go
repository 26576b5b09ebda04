package owner

import "github.com/ringlimit/ringlimit/limit"

// evict is planted.Evict: it drops counters in use, one after the other in the
// order of their IDs, until there is room for a new one.
func (t *Table) evict(p *partition, name []byte, log []limit.Stamp) bool {
	for p.slots.used > 0 {
		i := p.slots.from(p.next)
		if i == len(p.slots.at) {
			p.next = 0
			continue
		}
		p.next = p.slots.at[i].id.Lo + 1
		t.drop(p, i)
		if p.names.littered(8) {
			t.compact(p)
		}
		if t.makeRoom(p, name, log, withinBound) {
			return true
		}
	}
	return false
}
