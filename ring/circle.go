package ring

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
	"sort"
	"strconv"

	"github.com/cespare/xxhash/v2"

	"github.com/ringlimit/ringlimit/membership"
)

// circle is what all placements of the same members have in common: the points
// of the nodes in the order of their hashes, and where on it each partition
// begins to look for an owner.
type circle struct {
	params Params
	nodes  int
	points []int32 // by position: an index into the nodes
	starts []int32 // by partition: a position
}

// point is a virtual node.
type point struct {
	hash uint64
	node int32
}

// newCircle hashes and sorts once what the library hashes and sorts for each
// member that it is given. Names of points and partitions are the library's.
func newCircle(p Params, nodes []membership.NodeID) *circle {
	points := pointsOf(p, nodes)
	c := &circle{params: p, nodes: len(nodes), points: make([]int32, len(points)), starts: make([]int32, p.Partitions)}
	for i := range points {
		c.points[i] = points[i].node
	}
	for part := range c.starts {
		hash := xxhash.Sum64(binary.LittleEndian.AppendUint64(nil, uint64(part)))
		at := sort.Search(len(points), func(i int) bool { return points[i].hash >= hash })
		c.starts[part] = int32(at % len(points))
	}
	return c
}

func pointsOf(p Params, nodes []membership.NodeID) []point {
	points := make([]point, 0, len(nodes)*p.VirtualNodes)
	var name []byte
	for node, id := range nodes {
		for i := range p.VirtualNodes {
			name = append(strconv.AppendInt(name[:0], int64(i), 10), ':')
			name = append(name, id...)
			points = append(points, point{xxhash.Sum64(name), int32(node)})
		}
	}
	slices.SortFunc(points, point.compare)
	return points
}

// compare is never 0 between two nodes: where hashes are equal the earlier node comes
// first, with and without the others, so that a standby is who inherits.
func (a point) compare(b point) int {
	if a.hash != b.hash { // cmp.Or would compare the nodes each time
		return cmp.Compare(a.hash, b.hash)
	}
	return cmp.Compare(a.node, b.node)
}

// assign writes to owner, by partition, who owns it when one node is not there;
// with gone none, all are. It is the library's placement: partitions in order, each
// to the first node on its way round the circle that is not full. loads is a
// buffer with room for each node.
//
// The way ends, for a load of 1 or more leaves room for every partition.
func (c *circle) assign(owner, loads []int32, gone int32) {
	most := c.most(gone)
	clear(loads)
	if gone != none {
		loads[gone] = most // nobody gives a full node anything
	}
	for part, at := range c.starts {
		for loads[c.points[at]] >= most {
			if at++; int(at) == len(c.points) {
				at = 0
			}
		}
		owner[part] = c.points[at]
		loads[c.points[at]]++
	}
}

// most is how many partitions a node may hold.
func (c *circle) most(gone int32) int32 {
	present := c.nodes
	if gone != none {
		present--
	}
	return int32(math.Ceil(float64(c.params.Partitions) / float64(present) * c.params.Load))
}
