package forward

import (
	"github.com/ringlimit/ringlimit/membership"
	"github.com/ringlimit/ringlimit/ring"
)

// none is the index of no node.
const none = -1

// routes is a ring and the ways to its nodes. It is immutable.
type routes struct {
	ring  *ring.Ring // nil before the first one is published
	self  int        // index in the ring's nodes; none when this node owns nothing
	peers []Peer     // by index; nil for self
}

func newRoutes(rg *ring.Ring, self membership.NodeID, peer func(membership.NodeID) Peer) *routes {
	t := &routes{ring: rg, self: rg.Index(self), peers: make([]Peer, len(rg.Nodes()))}
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

// index finds a node that a hint names: none when this ring does not have it.
func (t *routes) index(id membership.NodeID) int {
	if t.ring == nil {
		return none
	}
	return t.ring.Index(id)
}

// nodes is among how many the load is shared: at least 1.
func (t *routes) nodes() int { return max(1, len(t.peers)) }
