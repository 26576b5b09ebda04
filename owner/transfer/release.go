package transfer

import (
	"github.com/ringlimit/ringlimit/internal/planted"
	"github.com/ringlimit/ringlimit/membership"
	"github.com/ringlimit/ringlimit/owner"
)

// gift is a frozen copy and for whom it is. It stays until that node says that
// it holds the partition.
type gift struct {
	to     membership.NodeID // empty: for whoever owns the partition
	boot   membership.BootID
	number uint64
}

// asked answers an Acquire. The asker's records are merged already: only so do
// both agree on who owns a partition.
func (c *Core) asked(from membership.NodeID, boot membership.BootID, m *Acquire) {
	c.named(m.Absent...)
	var parts []Part
	for _, a := range m.Asks {
		if a.Partition >= 0 && a.Partition < len(c.parts) {
			parts = append(parts, c.answer(from, boot, a))
		}
	}
	c.sendParts(from, parts)
}

func (c *Core) answer(from membership.NodeID, boot membership.BootID, a Ask) Part {
	pt := &c.parts[a.Partition]
	part := Part{Partition: a.Partition, Attempt: a.Attempt, Pulled: a.Pull}
	switch pt.phase {
	case owner.None:
		part.Status = Denied
		if pt.copied {
			part.Status = Copied
		}
	case owner.Acquiring: // two acquire: the records tell the asker that it is not the owner
		part.Status = Busy
	default:
		part.Status = c.release(a, from, boot)
		part.Release = pt.given.number
	}
	if a.Pull && (part.Status == Held || part.Status == Copied) {
		part.From = a.From
		if a.Release != part.Release {
			part.From = 0
		}
		part.Chunk = c.export(a.Partition, part.From)
	}
	return part
}

// release says whether the asker may have what we hold or have frozen, and with
// a pull gives it.
func (c *Core) release(a Ask, from membership.NodeID, boot membership.BootID) Status {
	pt := &c.parts[a.Partition]
	switch {
	case pt.phase == owner.Released && pt.given.to == from && pt.given.boot == boot:
		return Held // again, what it was given
	case c.view.owner(a.Partition) != from:
		return Busy
	case pt.phase == owner.Released && !c.stranded(pt):
		return Busy
	case !a.Pull:
		return Held
	}
	if pt.given.to != "" {
		pt.doubt = true // the first recipient may have begun with it
	}
	c.freeze(a.Partition, gift{to: from, boot: boot})
	return Held
}

// stranded says that nobody will acknowledge the frozen copy: it was for nobody
// in particular, or the recipient's process is gone.
func (c *Core) stranded(pt *partition) bool {
	if pt.given.to == "" {
		return true
	}
	m := c.view.find(pt.given.to)
	return m == nil || m.gone(c.now) || m.Boot != pt.given.boot
}

// freeze stops deciding. The counters stay as they are in this very moment.
func (c *Core) freeze(p int, g gift) {
	pt := &c.parts[p]
	if pt.round != nil {
		c.endRound(p)
	}
	c.number++
	g.number = c.number
	pt.given, pt.holder = g, g.to
	if pt.phase = owner.Released; planted.Fault == planted.NoFreeze {
		return // the table decides on
	}
	c.setPhase(p, owner.Released)
}

// reacquire takes our own frozen counters back. The recipient may have begun
// with them and passed them on before it went, so we ask everybody.
func (c *Core) reacquire(p int) {
	pt := &c.parts[p]
	pt.doubt = pt.doubt || pt.given.to != ""
	pt.own, pt.given = true, gift{}
	c.acquire(p)
}

// acked: another holds the partition, with all that we had.
func (c *Core) acked(from membership.NodeID, boot membership.BootID, m *Ack) {
	for _, r := range m.Releases {
		if c.gave(r, from, boot) {
			c.lay(r.Partition)
			c.parts[r.Partition].holder = from
			c.review(r.Partition)
		}
	}
}

// nacked: the recipient does not hold the partition and will not because of
// this copy. If we were the only holder, we are so again.
func (c *Core) nacked(from membership.NodeID, boot membership.BootID, m *Nack) {
	for _, r := range m.Releases {
		if !c.gave(r, from, boot) {
			continue
		}
		pt := &c.parts[r.Partition]
		pt.given = gift{number: pt.given.number}
		if !pt.doubt {
			pt.given = gift{}
			c.setPhase(r.Partition, owner.Holding)
		}
		c.review(r.Partition)
		c.nudgeAt = c.now
		c.arm(c.now)
	}
}

// gave says whether r is the frozen copy that we have given to that run.
func (c *Core) gave(r Release, to membership.NodeID, boot membership.BootID) bool {
	if r.Partition < 0 || r.Partition >= len(c.parts) || r.Boot != c.cfg.Self.Boot {
		return false
	}
	pt := &c.parts[r.Partition]
	return pt.phase == owner.Released && pt.given == gift{to, boot, r.Number}
}

// Drained says that this node has nothing left that another should have, or that
// nobody is left to have it.
func (c *Core) Drained() bool {
	if c.bereft() {
		return true
	}
	for p := range c.parts {
		if c.parts[p].decided() || c.parts[p].copied {
			return false
		}
	}
	return true
}

// bereft says that all who could ever own are gone for good, or going. Who joins,
// or refused a connection a moment ago, may serve yet.
func (c *Core) bereft() bool {
	for i := range c.view.members {
		if m := &c.view.members[i]; m.ID != c.cfg.Self.ID && m.Owner && m.State < membership.Draining {
			return false
		}
	}
	return true
}

// Left counts what would go with this node now: the partitions that it has not
// given away, and those of which it keeps a copy although whoever sent it is not
// known to live. The copy of a holder who lives is no loss: it makes another.
func (c *Core) Left() (partitions, copies int) {
	for p := range c.parts {
		switch pt := &c.parts[p]; {
		case pt.decided():
			partitions++
		case pt.copied && !c.lives(pt.holder):
			copies++
		}
	}
	return partitions, copies
}

func (c *Core) lives(id membership.NodeID) bool {
	m := c.view.find(id)
	return m != nil && !m.gone(c.now)
}
