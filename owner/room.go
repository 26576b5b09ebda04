package owner

import (
	"github.com/ringlimit/ringlimit/internal/planted"
	"github.com/ringlimit/ringlimit/limit"
)

const (
	// reclaimSlots bounds how many counters a call looks at to make room for
	// its own; reclaimPause is how long nobody does after that was in vain.
	// Without them a flood of new keys would pay for a search each.
	reclaimSlots = 512
	reclaimPause = 10_000_000 // 10 ms
)

// create makes a counter. It reports false when the memory is used up.
func (t *Table) create(p *partition, now int64, c *Call, state *limit.State) bool {
	if !t.makeRoom(p, c.Counter, state.Log, withinBound) &&
		(!t.reclaim(p, now) || !t.makeRoom(p, c.Counter, state.Log, withinBound)) {
		if planted.Fault != planted.Evict || !t.evict(p, c.Counter, state.Log) {
			return false
		}
	}
	t.insert(p, c.ID, c.Counter, c.Rule, state)
	return true
}

// insert adds a counter for which there is room.
func (t *Table) insert(p *partition, id ID, name []byte, rule *limit.Rule, state *limit.State) {
	p.slots.insert(slot{
		id:    id,
		words: pack(state, rule, p.logs.put(id, state.Log)),
		rule:  t.rules.acquire(rule),
		name:  p.names.add(name),
	})
}

// makeRoom sees to it that a counter with that name and log fits into the
// partition's arrays.
func (t *Table) makeRoom(p *partition, name []byte, log []limit.Stamp, may admission) bool {
	return t.roomForSlot(p, may) && t.roomForName(p, nameSize(name), may) && t.memory.reserve(p.logs.need(len(log)), may)
}

func (t *Table) roomForSlot(p *partition, may admission) bool {
	s := &p.slots
	if len(s.at) > 0 && !s.full() {
		return true
	}
	homes := s.homes
	if s.crowded() {
		homes = roomy(s.used + 1)
	}
	return t.resize(p, homes, may)
}

// resize gives the slots another number of homes, within the bound.
func (t *Table) resize(p *partition, homes int, may admission) bool {
	if !t.memory.reserve(int64(p.slots.length(homes)-len(p.slots.at))*slotSize, may) {
		return false
	}
	p.slots = p.slots.resized(homes)
	return true
}

// roomForName grows the text by a quarter, or by as much as the bound allows.
func (t *Table) roomForName(p *partition, size int, may admission) bool {
	n := &p.names
	need, have := len(n.text)+size, cap(n.text)
	if need <= have {
		return true
	}
	for _, to := range [...]int{max(need, have+have/4, 64), need} {
		if to <= t.maxText && t.memory.reserve(int64(to-have), may) {
			n.grow(to)
			return true
		}
	}
	return false
}

// reclaim tries to make room by dropping counters that equal fresh ones, a few
// at a time, and asks the sweep to do the same everywhere.
func (t *Table) reclaim(p *partition, now int64) bool {
	select {
	case t.pressed <- struct{}{}:
	default:
	}
	if now < p.barren {
		return false
	}
	dropped, next, _ := t.dropFresh(p, now, p.next, reclaimSlots)
	p.next = next
	if dropped == 0 {
		p.barren = now + reclaimPause
	}
	if p.names.littered(8) {
		t.compact(p)
	}
	return dropped > 0
}
