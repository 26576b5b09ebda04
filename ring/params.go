package ring

import (
	"fmt"
	"math"

	"github.com/cespare/xxhash/v2"

	"github.com/ringlimit/ringlimit/internal/planted"
)

// placement names the way partitions are put on nodes, by the library that it is
// the way of. It changes only when the same parameters and members give another
// table: nodes whose placements differ refuse each other.
const placement = "buraksezer/consistent replica-index-first xxhash64"

// Bounds of Params. Above them a ring takes seconds to build and gains nothing.
const (
	maxPartitions   = 1 << 16
	maxVirtualNodes = 10_000
	maxLoad         = 10
)

// Params shape a ring. Every node of a cluster must use the same.
type Params struct {
	// Partitions is how many pieces the key space is cut into. A partition is
	// what moves between nodes; more of them even out the load and lengthen
	// every hand-over. 1 to 65,536.
	Partitions int
	// VirtualNodes is how many points a node has on the circle. More of them
	// move fewer partitions when a member joins, and building takes longer.
	// 1 to 10,000.
	VirtualNodes int
	// Load bounds what a node may hold, as a multiple of the average. Nearer to
	// 1 is more even and moves more partitions between nodes that neither
	// joined nor left. 1 to 10.
	Load float64
}

// Defaults are the parameters measured best for 3 to 100 nodes: at 20 members a
// join moves about 1.04 of the newcomer's fair share.
func Defaults() Params {
	if planted.Fault == planted.OtherRing {
		return Params{Partitions: 512, VirtualNodes: 200, Load: 1.25}
	}
	return Params{Partitions: 1024, VirtualNodes: 200, Load: 1.25}
}

// Placement identifies the placement algorithm with these parameters; a node
// tells it to the others as membership.Member.Ring.
func (p Params) Placement() uint64 {
	d := xxhash.New()
	fmt.Fprintf(d, "%s/%d/%d/%x", placement, p.Partitions, p.VirtualNodes, math.Float64bits(p.Load))
	return d.Sum64()
}

// validate refuses what leaves no room for every partition (a load under 1 or not
// a number), and zeros, which the library would silently replace by its defaults.
func (p Params) validate() error {
	switch {
	case p.Partitions < 1 || p.Partitions > maxPartitions:
		return fmt.Errorf("ring: partitions: %d is not from 1 to %d", p.Partitions, maxPartitions)
	case p.VirtualNodes < 1 || p.VirtualNodes > maxVirtualNodes:
		return fmt.Errorf("ring: virtual nodes: %d is not from 1 to %d", p.VirtualNodes, maxVirtualNodes)
	case !(p.Load >= 1 && p.Load <= maxLoad): // also refuses NaN
		return fmt.Errorf("ring: load: %v is not from 1 to %d", p.Load, maxLoad)
	}
	return nil
}
