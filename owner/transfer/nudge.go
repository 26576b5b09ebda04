package transfer

import (
	"github.com/ringlimit/ringlimit/internal/planted"
	"github.com/ringlimit/ringlimit/membership"
	"github.com/ringlimit/ringlimit/owner"
)

const nudgeEvery = 100 * ms

// nudge tells the owners what we have of theirs: what we still decide for, and
// what we have frozen and nobody has acknowledged. A lost Ack is repeated so.
func (c *Core) nudge() {
	var out outgoing[Release]
	c.nudgeCopies()
	for p := range c.parts {
		if to := c.nudgee(p); to != "" {
			out.add(to, Release{p, c.cfg.Self.Boot, c.parts[p].given.number})
		}
	}
	for _, l := range out.take() {
		c.send(l.to, &Nudge{Records: c.view.snapshot(c.now), Releases: l.items})
	}
}

// nudgee is who has to hear about a partition; empty when nobody does.
func (c *Core) nudgee(p int) membership.NodeID {
	pt := &c.parts[p]
	owns := c.view.owner(p)
	switch {
	case pt.phase == owner.Released && planted.Fault == planted.NoRepeat:
		return ""
	case pt.phase == owner.Released && !c.stranded(pt):
		return pt.given.to
	case (pt.phase == owner.Holding || pt.phase == owner.Released) && owns != c.cfg.Self.ID:
		return owns
	}
	return ""
}

// nudgeCopies tells owners of copies that should be elsewhere, so that this node
// can go, or need not keep them.
func (c *Core) nudgeCopies() {
	var out outgoing[int]
	for p := range c.parts {
		if to := c.view.owner(p); to != "" && to != c.cfg.Self.ID && c.misplaced(p) {
			out.add(to, p)
		}
	}
	for _, l := range out.take() {
		c.send(l.to, &Nudge{Records: c.view.snapshot(c.now), Copies: l.items})
	}
}

// nudged hears of a node that has partitions of ours. The records that came
// along are merged already, so that we acquire what we do not hold.
func (c *Core) nudged(from membership.NodeID, boot membership.BootID, m *Nudge) {
	c.relieve(from, m.Copies)
	strange := false
	for _, r := range m.Releases {
		if r.Partition < 0 || r.Partition >= len(c.parts) || r.Boot != boot {
			continue
		}
		pt := &c.parts[r.Partition]
		switch {
		case r.Number != 0 && pt.taken[from] == r:
			c.acks.add(from, r)
		case pt.phase == owner.Holding && c.owns(r.Partition):
			c.merge(r.Partition, from)
		case pt.phase == owner.Acquiring:
			pt.holder = from // it is among those we ask
		case r.Number != 0:
			c.nacks.add(from, r)
			strange = true
		default:
			strange = true
		}
	}
	if strange { // it believes that we own what we do not
		c.send(from, &Views{Records: c.view.snapshot(c.now)})
	}
}
