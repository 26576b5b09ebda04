package transfer

import (
	"slices"

	"github.com/ringlimit/ringlimit/membership"
	"github.com/ringlimit/ringlimit/owner"
)

const (
	// forgetAfter is how long a member is known to be dead. Names that come once
	// (a pod's) would pile up for ever.
	forgetAfter = 600_000 * ms
	// strangers is from which age on the dead are not worth making their
	// acquaintance. It is so much less than forgetAfter because ages are a little
	// different everywhere, by the time on the way and by clocks that stood still:
	// else those who have forgotten would learn of the dead again from those who
	// have not yet, with an age a little too young, round and round.
	strangers = forgetAfter / 2
	// ageEvery is how old the ages that are sent may be.
	ageEvery = 1_000 * ms
)

// age believes whoever says that a death is longer ago.
func (m *member) age(r Record, now int64) {
	if m.State == Dead && r.State == Dead && r.Boot == m.Boot && r.Seq == m.Seq {
		m.died = min(m.died, r.died(now))
	}
}

// died is when a dead member died, as far as that matters: nobody needs to
// believe in more than it takes to be forgotten.
func (r Record) died(now int64) int64 { return now - min(max(0, r.Age), forgetAfter) }

// snapshot is the records to send. Nobody changes them.
func (v *view) snapshot(now int64) []Record {
	if v.records == nil || now-v.written >= ageEvery {
		v.written, v.records = now, make([]Record, len(v.members))
		for i := range v.members {
			m := &v.members[i]
			if v.records[i] = m.Record; m.State == Dead {
				v.records[i].Age = now - m.died
			}
		}
		v.sum = sum(v.records)
	}
	return v.records
}

// sumOf is the sum of what snapshot returns.
func (v *view) sumOf(now int64) uint64 {
	v.snapshot(now)
	return v.sum
}

// forget drops members that have been dead for long. If one of them lives after
// all, it is a new acquaintance.
func (c *Core) forget() {
	long := func(m member) bool { return m.State == Dead && m.ID != c.cfg.Self.ID && c.now-m.died >= forgetAfter }
	for i := range c.view.members {
		if m := &c.view.members[i]; long(*m) {
			c.detach(m.ID)
		}
	}
	if n := len(c.view.members); n > 0 {
		if c.view.members = slices.DeleteFunc(c.view.members, long); len(c.view.members) < n {
			c.view.records = nil
		}
	}
}

// detach forgets what the partitions remember of a node. It forgets us as well,
// so that it cannot say any more whether it has passed on what we gave it.
func (c *Core) detach(id membership.NodeID) {
	for p := range c.parts {
		pt := &c.parts[p]
		delete(pt.taken, id)
		if pt.phase == owner.Released && pt.given.to == id {
			pt.doubt = true
		}
	}
}
