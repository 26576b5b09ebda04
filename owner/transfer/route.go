package transfer

import (
	"github.com/ringlimit/ringlimit/membership"
	"github.com/ringlimit/ringlimit/owner"
)

// Way is what to do with a check that is for a partition.
type Way uint8

const (
	Decide    Way = iota // here and now
	Wait                 // until Wake or the check's deadline
	Elsewhere            // the caller should ask another node
)

// Route says what to do with a check, and with Elsewhere who may know better;
// empty when we know of nobody.
func (c *Core) Route(p int) (Way, membership.NodeID) {
	pt := &c.parts[p]
	switch pt.phase {
	case owner.Holding:
		return Decide, ""
	case owner.Acquiring:
		pt.wanted = true
		if h := pt.round.deciding(); h != "" {
			return Elsewhere, h
		}
		return Wait, ""
	case owner.Released:
		if !c.stranded(pt) {
			return Elsewhere, pt.given.to
		}
	}
	if to := c.view.owner(p); to != c.cfg.Self.ID {
		return Elsewhere, to
	}
	return Elsewhere, ""
}

// deciding is a holder whose turn to be pulled has not come: it decides on.
func (r *round) deciding() membership.NodeID {
	for i := range r.sources {
		if s := &r.sources[i]; s.step == queued && s.status == Held {
			return s.node
		}
	}
	return ""
}
