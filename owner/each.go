package owner

import "github.com/ringlimit/ringlimit/limit"

// eachSlots is how many counters Each visits under one hold of the lock.
const eachSlots = 512

// Each calls fn with every counter of a partition until it returns false. The
// name and the state's log are valid during the call only, and fn runs under
// the partition's lock: it must be quick and must not call the table. The lock
// is let go now and then; a counter that is there all the while is visited
// exactly once, whatever comes and goes beside it.
func (t *Table) Each(p int, fn func(name []byte, rule *limit.Rule, s limit.State) bool) {
	pt := &t.partitions[p]
	for from, more := uint64(0), true; more; {
		pt.mu.Lock()
		from, more = t.each(pt, from, fn)
		pt.mu.Unlock()
	}
}

// each visits the next counters and returns where to go on.
func (t *Table) each(p *partition, from uint64, fn func([]byte, *limit.Rule, limit.State) bool) (next uint64, more bool) {
	s := &p.slots
	if s.used == 0 {
		return 0, false
	}
	last, visited := from, 0
	for i := s.from(from); i < len(s.at); i++ {
		sl := &s.at[i]
		if sl.rule == 0 {
			continue
		}
		if visited >= eachSlots && sl.id.Lo != last { // never between two with the same Lo
			return sl.id.Lo, true
		}
		last, visited = sl.id.Lo, visited+1
		rule := t.rules.at(sl.rule)
		if !fn(p.names.at(sl.name), rule, p.state(sl, rule)) {
			return 0, false
		}
	}
	return 0, false
}
