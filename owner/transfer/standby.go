package transfer

import (
	"github.com/ringlimit/ringlimit/membership"
	"github.com/ringlimit/ringlimit/owner"
)

// replicate keeps a copy of what another holds. Not behind a closed fence: what
// has waited there with us would seem younger than it is. It is sent again.
func (c *Core) replicate(from membership.NodeID, m *Replicate) {
	if c.fence.closed {
		return
	}
	back := &Replicated{}
	for i := range m.Copies {
		k := &m.Copies[i]
		if k.Partition < 0 || k.Partition >= len(c.parts) {
			continue
		}
		e := Receipt{Partition: k.Partition, Stream: k.Stream, Number: k.Number}
		if e.Refused = c.parts[k.Partition].decided(); !e.Refused {
			c.keep(from, k)
		}
		back.Receipts = append(back.Receipts, e)
	}
	c.send(from, back)
}

// decided says that the counters here are not anybody's copy.
func (pt *partition) decided() bool { return pt.phase == owner.Holding || pt.phase == owner.Released }

func (c *Core) keep(from membership.NodeID, k *Copy) {
	pt := &c.parts[k.Partition]
	pt.holder = from
	if !pt.copied {
		pt.copied = true
		if pt.phase == owner.None {
			c.setPhase(k.Partition, owner.None)
		}
	}
	c.take(k.Partition, &k.Chunk)
}

// misplaced says that we keep a copy that another should keep.
func (c *Core) misplaced(p int) bool {
	if !c.parts[p].copied || c.parts[p].phase != owner.None {
		return false
	}
	i := c.view.ring.Standby(p)
	return i < 0 || c.view.ring.Nodes()[i] != c.cfg.Self.ID
}

// relieve tells nodes that their copies are needed no longer.
func (c *Core) relieve(from membership.NodeID, copies []int) {
	drop := &Drop{}
	for _, p := range copies {
		if p < 0 || p >= len(c.parts) || c.parts[p].phase != owner.Holding {
			continue
		}
		if r := &c.parts[p].replica; r.to != from && (r.seed.step == sown || r.to == "") {
			drop.Partitions = append(drop.Partitions, p)
		}
	}
	if len(drop.Partitions) > 0 {
		c.send(from, drop)
	}
}

// drop gives copies up, if the one who says so owns the partitions.
func (c *Core) drop(from membership.NodeID, m *Drop) {
	for _, p := range m.Partitions {
		if p >= 0 && p < len(c.parts) && c.misplaced(p) && c.view.owner(p) == from {
			c.parts[p].copied = false
			c.setPhase(p, owner.None)
		}
	}
}
