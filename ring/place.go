package ring

import (
	"github.com/buraksezer/consistent"
	"github.com/cespare/xxhash/v2"

	"github.com/ringlimit/ringlimit/internal/planted"
	"github.com/ringlimit/ringlimit/membership"
)

type xxhasher struct{}

func (xxhasher) Sum64(b []byte) uint64 { return xxhash.Sum64(b) }

// member carries its index, so that reading a table needs no look-up by name.
type member struct {
	id    membership.NodeID
	index int32
}

func (m *member) String() string { return string(m.id) }

// place computes both tables.
func place(p Params, nodes []membership.NodeID) (owner, standby []int32) {
	members := make([]consistent.Member, len(nodes))
	for i, id := range nodes {
		members[i] = &member{id, int32(i)}
	}
	if len(nodes) == 0 {
		return unowned(p.Partitions), unowned(p.Partitions)
	}
	circle := consistent.New(members, consistent.Config{
		Hasher: xxhasher{}, PartitionCount: p.Partitions, ReplicationFactor: p.VirtualNodes, Load: p.Load,
	})
	owner = owners(circle, p.Partitions)
	return owner, standbys(circle, members, owner)
}

func owners(circle *consistent.Consistent, partitions int) []int32 {
	owner := make([]int32, partitions)
	for part := range owner {
		owner[part] = ownerIn(circle, part)
	}
	return owner
}

// standbys: the standby of what a node owns is its owner in the ring without
// that node. Taking one member out of the full ring and putting it back gives
// the same tables as n fresh rings at a fraction of the cost: a fresh one sorts
// the circle once per member.
func standbys(circle *consistent.Consistent, members []consistent.Member, owner []int32) []int32 {
	standby := unowned(len(owner))
	if len(members) < 2 {
		return standby
	}
	for i, m := range members {
		circle.Remove(m.String())
		for part := range standby {
			if owner[part] == int32(i) {
				standby[part] = ownerIn(circle, part)
			}
		}
		circle.Add(m)
	}
	if planted.Fault == planted.ClosestStandby {
		closest(circle, standby)
	}
	return standby
}

func ownerIn(circle *consistent.Consistent, part int) int32 {
	return circle.GetPartitionOwner(part).(*member).index
}

func unowned(n int) []int32 {
	t := make([]int32, n)
	for i := range t {
		t[i] = none
	}
	return t
}
