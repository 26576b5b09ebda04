package ringlimit

import "github.com/ringlimit/ringlimit/membership"

// PartitionInfo says who does what with a part of the counters, as this node
// sees it. A node knows for certain only what it does itself.
type PartitionInfo struct {
	Partition int
	Phase     string            // what this node does: none, acquiring, holding, released
	Owner     membership.NodeID // who should hold it; empty when nobody serves
	Holder    membership.NodeID // who holds it, as far as this node has heard
	Standby   membership.NodeID // whom this node, as holder, gives a copy to
	Copied    bool              // this node keeps a copy for the holder
	Seeded    bool              // the standby's copy is complete
}

// Partitions lists all partitions.
func (n *Node) Partitions() []PartitionInfo {
	var all []PartitionInfo
	for p, s := range n.driver.Partitions() {
		all = append(all, PartitionInfo{p, s.Phase.String(), s.Owner, s.Holder, s.Standby, s.Copied, s.Seeded})
	}
	return all
}

// RingFingerprint is the same on nodes that agree on who owns what.
func (n *Node) RingFingerprint() uint64 { return n.driver.Fingerprint() }
