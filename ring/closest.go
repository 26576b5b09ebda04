package ring

import (
	"github.com/buraksezer/consistent"
	"github.com/cespare/xxhash/v2"

	"github.com/ringlimit/ringlimit/membership"
)

// closest is planted.ClosestStandby: the library's own idea of a standby, which
// is the member whose name's hash comes next.
func closest(p Params, nodes []membership.NodeID, standby []int32) {
	library := library(p, nodes)
	for part := range standby {
		if two, err := library.GetClosestNForPartition(part, 2); err == nil {
			standby[part] = two[1].(*member).index
		}
	}
}

// library is buraksezer/consistent with these members: the model of the
// placement, and no part of a node as it should be.
func library(p Params, nodes []membership.NodeID) *consistent.Consistent {
	members := make([]consistent.Member, len(nodes))
	for i, id := range nodes {
		members[i] = &member{id, int32(i)}
	}
	return consistent.New(members, consistent.Config{
		Hasher: xxhasher{}, PartitionCount: p.Partitions, ReplicationFactor: p.VirtualNodes, Load: p.Load,
	})
}

type xxhasher struct{}

func (xxhasher) Sum64(b []byte) uint64 { return xxhash.Sum64(b) }

type member struct {
	id    membership.NodeID
	index int32
}

func (m *member) String() string { return string(m.id) }
