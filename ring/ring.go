// Package ring says which node owns each partition of the key space, and which
// would own it if that node were gone. A Ring is immutable: it is built off the
// request path, as a pure function of parameters and members, and published
// whole. It places as the library buraksezer/consistent does, which is the model in
// the tests, and whose only importer it is.
package ring

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/ringlimit/ringlimit/membership"
)

// none marks a partition without an owner or standby.
const none = -1

// Ring is the compiled table. All methods are safe for concurrent use.
type Ring struct {
	nodes       []membership.NodeID // sorted
	owner       []int32             // by partition, index into nodes
	standby     []int32
	fingerprint uint64
}

// New builds the ring of these members, in any order; one named twice counts
// once. Without members every partition is without an owner. The error names
// the parameter at fault. It fills len(ids)+1 tables: a third of a millisecond of
// processor time for 3 members, 1 for 20, 6 for 100.
func New(p Params, ids []membership.NodeID) (*Ring, error) {
	if err := p.validate(); err != nil {
		return nil, err
	}
	nodes := slices.Compact(slices.Sorted(slices.Values(ids)))
	if len(nodes) > p.Partitions {
		return nil, fmt.Errorf("ring: members: %d are more than the %d partitions to own", len(nodes), p.Partitions)
	}
	if len(nodes) > 0 && nodes[0] == "" {
		return nil, fmt.Errorf("ring: members: a node id is empty")
	}
	r := &Ring{nodes: nodes, fingerprint: fingerprint(p, nodes)}
	r.owner, r.standby = place(p, nodes)
	return r, nil
}

// fingerprint prefixes each id with its length: without it "ab","c" and
// "a","bc" would be one ring.
func fingerprint(p Params, nodes []membership.NodeID) uint64 {
	b := binary.LittleEndian.AppendUint64(nil, p.Placement())
	for _, id := range nodes {
		b = binary.AppendUvarint(b, uint64(len(id)))
		b = append(b, id...)
	}
	return xxhash.Sum64(b)
}

// Partition is where a counter with this hash (owner.ID.Hi) lives, from 0 to
// Params.Partitions-1. It does not depend on the members.
func (r *Ring) Partition(hash uint64) int { return int(hash % uint64(len(r.owner))) }

// Owner is the node that owns the partition, as an index into Nodes; -1 in a
// ring without members.
func (r *Ring) Owner(partition int) int { return int(r.owner[partition]) }

// Standby is the node that would own the partition if its owner left, as an
// index into Nodes; -1 with fewer than two members.
func (r *Ring) Standby(partition int) int { return int(r.standby[partition]) }

// Partitions is how many there are.
func (r *Ring) Partitions() int { return len(r.owner) }

// Nodes lists the members, sorted. The caller must not change it.
func (r *Ring) Nodes() []membership.NodeID { return r.nodes }

// Index finds a member in Nodes; -1 when it is not one.
func (r *Ring) Index(id membership.NodeID) int {
	if i, ok := slices.BinarySearch(r.nodes, id); ok {
		return i
	}
	return none
}

// Fingerprint is equal exactly for rings of equal placement, parameters and
// members, but for a collision of 64-bit hashes.
func (r *Ring) Fingerprint() uint64 { return r.fingerprint }
