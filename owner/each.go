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
	goOn := true
	for from, done := uint64(0), false; goOn && !done; {
		visited := 0
		pt.mu.Lock()
		from, done = pt.walk(from, func(seg *segment, s *slot) bool {
			rule := t.rules.at(s.rule)
			goOn = goOn && fn(seg.names.at(s.name), rule, pt.state(s, rule))
			visited++
			return goOn && visited < eachSlots
		})
		pt.mu.Unlock()
	}
}
