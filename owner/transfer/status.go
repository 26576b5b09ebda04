package transfer

import (
	"slices"

	"github.com/ringlimit/ringlimit/membership"
	"github.com/ringlimit/ringlimit/owner"
)

// Partition is a partition as one node sees it.
type Partition struct {
	Phase   owner.Phase
	Owner   membership.NodeID // who should hold it; empty when nobody serves
	Holder  membership.NodeID // who holds it, as far as this node has heard
	Standby membership.NodeID // where this node, which holds it, keeps the copy
	Copied  bool              // this node keeps the copy of another
	Seeded  bool              // Standby has everything
}

// Partition says how a partition stands here.
func (c *Core) Partition(p int) Partition {
	pt := &c.parts[p]
	return Partition{pt.phase, c.view.owner(p), pt.holder, pt.replica.to, pt.copied, pt.replica.seed.step == sown}
}

// Lag is how many nanoseconds ago the oldest charge left that is under way to a
// standby and not acknowledged; 0 when there is none.
func (c *Core) Lag(now int64) (oldest int64) {
	for _, p := range c.unacked {
		for i := range c.accounts[p].sent {
			oldest = max(oldest, now-c.accounts[p].sent[i].left)
		}
	}
	return oldest
}

// Acquiring counts the partitions that this node owns and does not hold yet.
func (c *Core) Acquiring() (n int) {
	for p := range c.parts {
		if c.parts[p].phase != owner.Holding && c.view.owner(p) == c.cfg.Self.ID {
			n++
		}
	}
	return n
}

// Awaited lists the members, sorted, that keep this node from what it acquires:
// they have not answered, or answer "busy", or have not sent all that they have.
func (c *Core) Awaited() (ids []membership.NodeID) {
	for _, p := range c.rounds {
		r := c.parts[p].round
		for i := range r.sources {
			s := &r.sources[i]
			if !r.merging && (s.step == asking || s.step == pulling) && !slices.Contains(ids, s.node) {
				ids = append(ids, s.node)
			}
		}
	}
	slices.Sort(ids)
	return ids
}

// Unguarded counts the partitions that this node holds and of which no other has
// everything: if it died now, counters would go with it.
func (c *Core) Unguarded() (n int) {
	for p := range c.parts {
		if pt := &c.parts[p]; pt.phase == owner.Holding && pt.replica.seed.step != sown {
			n++
		}
	}
	return n
}

// Fenced says that this node has stood still or lost the others, and decides
// nothing until it has news of them.
func (c *Core) Fenced() bool { return c.fence.closed }

// Closings counts how often that has begun. A lone node begins again in the very
// event that finds it has stood still, so that Fenced need not show it.
func (c *Core) Closings() int { return c.fence.times }
