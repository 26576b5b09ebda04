package ring

import (
	"github.com/ringlimit/ringlimit/internal/planted"
	"github.com/ringlimit/ringlimit/membership"
)

// place computes both tables. They are those of buraksezer/consistent, with
// which the placement began and which the tests compare it with; the library
// takes a hundred times as long for many members, for it has no way to ask who
// would own what without one of them.
func place(p Params, nodes []membership.NodeID) (owner, standby []int32) {
	owner, standby = unowned(p.Partitions), unowned(p.Partitions)
	if len(nodes) == 0 {
		return owner, standby
	}
	c := newCircle(p, nodes)
	loads := make([]int32, len(nodes))
	c.assign(owner, loads, none)
	if len(nodes) > 1 {
		c.standbys(owner, standby, loads)
	}
	if planted.Fault == planted.ClosestStandby {
		closest(p, nodes, standby)
	}
	return owner, standby
}

// standbys: the standby of what a node owns is its owner in the ring without
// that node.
func (c *circle) standbys(owner, standby, loads []int32) {
	bereft := make([]int32, len(owner))
	for gone := range int32(c.nodes) {
		c.assign(bereft, loads, gone)
		for part, heir := range bereft {
			if owner[part] == gone {
				standby[part] = heir
			}
		}
	}
}

func unowned(n int) []int32 {
	t := make([]int32, n)
	for i := range t {
		t[i] = none
	}
	return t
}
