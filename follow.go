package ringlimit

import (
	"context"
	"slices"

	"github.com/ringlimit/ringlimit/forward"
	"github.com/ringlimit/ringlimit/membership"
	"github.com/ringlimit/ringlimit/owner"
	"github.com/ringlimit/ringlimit/ring"
)

// follow turns views into rings until ctx ends. It is the only goroutine that
// makes rings, so that they are published in the order of the views.
func (n *Node) follow(ctx context.Context) {
	for {
		select {
		case v := <-n.gossip.Views():
			if err := n.adopt(v); err != nil {
				n.cfg.Logger.Error("the members cannot form a ring; keeping the one before", "error", err)
			}
		case <-ctx.Done():
			return
		}
	}
}

// adopt publishes the ring of a view. Partitions gained are held before the
// ring says so, and partitions lost are let go after it, so that this node never
// sends itself what it does not hold. One that leaves lets go of nothing: the
// others ask it until they have heard.
func (n *Node) adopt(v membership.View) error {
	if owners := v.Owners(); !slices.Equal(owners, n.ring.Nodes()) {
		next, err := ring.New(n.params, owners)
		if err != nil {
			return err
		}
		n.ring = next
	}
	owned := n.owned(v)
	for p, mine := range owned {
		if mine {
			n.table.SetPhase(p, owner.Holding)
		}
	}
	n.router.Publish(n.ring, n.standing(v), n.peerIn(v)) // also for the same ring: a member may have a new address
	for p, mine := range owned {
		if !mine && !n.leaving.Load() {
			n.table.SetPhase(p, owner.None)
		}
	}
	n.view.Store(&v)
	n.pool.Retain(v.Members)
	n.note(v)
	return nil
}

// standing is which node this process is in the cluster of v: none if a later
// process has taken its name, or both would decide. It then asks that one.
func (n *Node) standing(v membership.View) membership.NodeID {
	if v.Superseded(n.self) {
		return ""
	}
	return n.self.ID
}

// owned tells for each partition whether it is this node's.
func (n *Node) owned(v membership.View) []bool {
	owned := make([]bool, n.params.Partitions)
	self := n.ring.Index(n.standing(v))
	if self < 0 {
		return owned
	}
	for p := range owned {
		owned[p] = n.ring.Owner(p) == self
	}
	return owned
}

// peerIn finds the way to the members of v.
func (n *Node) peerIn(v membership.View) func(membership.NodeID) forward.Peer {
	return func(id membership.NodeID) forward.Peer {
		m, ok := v.Find(id)
		if !ok {
			return nil
		}
		return n.pool.Peer(m)
	}
}

// note lets Start return once this node takes part, or never can.
func (n *Node) note(v membership.View) {
	superseded := v.Superseded(n.self)
	n.superseded.Store(superseded)
	if self, ok := v.Find(n.self.ID); !superseded && (!ok || self.State != membership.Serving) {
		return
	}
	select {
	case <-n.settled:
	default:
		close(n.settled)
	}
}
