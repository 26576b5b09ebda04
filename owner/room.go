package owner

import (
	"github.com/ringlimit/ringlimit/internal/planted"
	"github.com/ringlimit/ringlimit/limit"
)

const (
	// reclaimSlots bounds how many counters a call looks at to make room for
	// its own; reclaimPause is how long nobody in the partition asks for memory
	// after that was in vain. Without them a flood of new keys would pay for a
	// search each.
	reclaimSlots = 512
	reclaimPause = 10_000_000 // 10 ms
)

// create makes a counter. It reports false when the memory is used up.
func (t *Table) create(p *partition, now int64, c *Call, state *limit.State) bool {
	if !t.roomNow(p, now, c, state) && (planted.Fault != planted.Evict || !t.evict(p, c.ID, c.Counter, state.Log)) {
		return false
	}
	t.insert(p, c.ID, c.Counter, c.Rule, state)
	return true
}

// roomNow is makeRoom, if need be in place of counters that equal fresh ones.
func (t *Table) roomNow(p *partition, now int64, c *Call, state *limit.State) bool {
	if now < p.barren && !p.fits(c.ID, nameSize(c.Counter)) {
		return false
	}
	if t.makeRoom(p, c.ID, c.Counter, state.Log, withinBound) {
		return true
	}
	return t.reclaim(p, c.ID, now) && t.makeRoom(p, c.ID, c.Counter, state.Log, withinBound)
}

// insert adds a counter for which there is room.
func (t *Table) insert(p *partition, id ID, name []byte, rule *limit.Rule, state *limit.State) {
	s := p.segment(id.Lo)
	c := slot{id: id, rule: t.rules.acquire(rule), name: s.names.add(name)}
	c.write(state, rule, p.logs.put(id, state.Log))
	s.slots.insert(c)
	p.used++
}

// makeRoom sees to it that a counter with that name and log fits.
func (t *Table) makeRoom(p *partition, id ID, name []byte, log []limit.Stamp, may admission) bool {
	return t.roomInSegment(p, id, nameSize(name), may) && t.memory.reserve(p.logs.need(len(log)), may)
}

func (t *Table) roomInSegment(p *partition, id ID, name int, may admission) bool {
	for {
		s := p.segment(id.Lo)
		switch {
		case s == nil:
			if !t.begin(p, may) {
				return false
			}
		case s.fits(name):
			return true
		case t.divisible(p, s):
			if !t.split(p, s, may) {
				return false
			}
		case s.expected > 0 && t.rebuild(p, s, int(s.expected), max(name, int(s.text)), may):
			return true
		default:
			return t.rebuild(p, s, 1, name, may)
		}
	}
}

func (p *partition) fits(id ID, name int) bool {
	s := p.segment(id.Lo)
	return s != nil && s.fits(name)
}

// begin gives the partition a segment for everything.
func (t *Table) begin(p *partition, may admission) bool {
	d := divided(0)
	if !t.memory.reserve(d.bytes(), may) {
		return false
	}
	p.dir.Store(&d)
	return true
}

// reclaim tries to make room by dropping counters that equal fresh ones from the
// new counter's segment, a few at a time, and asks the sweep to do the same
// everywhere.
func (t *Table) reclaim(p *partition, id ID, now int64) bool {
	select {
	case t.pressed <- struct{}{}:
	default:
	}
	s := p.segment(id.Lo)
	if now < p.barren || s == nil {
		return false
	}
	dropped, next, _ := t.dropFresh(p, s, now, max(s.next, s.low), reclaimSlots)
	s.next = next
	if dropped == 0 {
		p.barren = now + reclaimPause
	}
	t.compact(p, s)
	return dropped > 0
}
