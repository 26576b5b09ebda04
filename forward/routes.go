package forward

import (
	"github.com/ringlimit/ringlimit/membership"
	"github.com/ringlimit/ringlimit/ring"
)

// none is the index of no node.
const none = -1

// routes is a ring and the ways to its nodes. It is immutable.
type routes struct {
	ring  *ring.Ring        // nil before the first one is published
	id    membership.NodeID // this node's, in the ring or not; empty when the name is another process's
	self  int               // index in the ring's nodes; none when this node owns nothing
	peers []Peer            // by index; nil for self, and where the way is not known
	peer  func(membership.NodeID) Peer
}

func newRoutes(rg *ring.Ring, self membership.NodeID, peer func(membership.NodeID) Peer) *routes {
	t := &routes{ring: rg, id: self, self: rg.Index(self), peers: make([]Peer, len(rg.Nodes())), peer: peer}
	for i, id := range rg.Nodes() {
		if i != t.self {
			t.peers[i] = peer(id)
		}
	}
	return t
}

// locate finds the partition of a hash and its owner: none if there is none.
func (t *routes) locate(hash uint64) (partition, to int) {
	if t.ring == nil {
		return 0, none
	}
	partition = t.ring.Partition(hash)
	return partition, t.ring.Owner(partition)
}

// way leads to a node that a hint names. It need not be in the ring: who is
// leaving it holds its counters until others have taken them. nil: the way is not
// known, or there is none to this very node.
func (t *routes) way(id membership.NodeID) Peer {
	if id == t.id {
		return nil
	}
	if i := t.ring.Index(id); i != none {
		return t.peers[i]
	}
	return t.peer(id)
}

// nodes is among how many the load is shared: at least 1.
func (t *routes) nodes() int { return max(1, len(t.peers)) }
