package ring

import (
	"slices"
	"testing"

	"github.com/buraksezer/consistent"
	"pgregory.net/rapid"

	"github.com/ringlimit/ringlimit/membership"
)

// fresh is the library without any of our code but the hasher.
func fresh(p Params, ids []membership.NodeID) func(part int) membership.NodeID {
	c := consistent.New(nil, consistent.Config{
		Hasher: xxhasher{}, PartitionCount: p.Partitions, ReplicationFactor: p.VirtualNodes, Load: p.Load})
	for _, id := range slices.Sorted(slices.Values(ids)) {
		c.Add(&member{id: id})
	}
	return func(part int) membership.NodeID { return membership.NodeID(c.GetPartitionOwner(part).String()) }
}

// byLibrary is both tables of these sorted nodes, from the library alone: for the
// standbys it takes each member out of the full ring and puts it back.
func byLibrary(p Params, nodes []membership.NodeID) (owner, standby []int32) {
	c := library(p, nodes)
	owner, standby = make([]int32, p.Partitions), unowned(p.Partitions)
	ownerOf := func(part int) int32 { return c.GetPartitionOwner(part).(*member).index }
	for part := range owner {
		owner[part] = ownerOf(part)
	}
	for i, id := range nodes {
		if len(nodes) < 2 {
			break
		}
		c.Remove(string(id))
		for part := range standby {
			if owner[part] == int32(i) {
				standby[part] = ownerOf(part)
			}
		}
		c.Add(&member{id, int32(i)})
	}
	return owner, standby
}

func TestStandbyIsTheOwnerOnceTheOwnerIsGone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, ids := smallParams().Draw(t, "params"), someIDs(2).Draw(t, "ids")
		r := build(t, p, ids)
		full := fresh(p, ids)
		bereft := map[membership.NodeID]func(int) membership.NodeID{}
		for _, id := range ids {
			bereft[id] = fresh(p, without(ids, id))
		}
		for part := range p.Partitions {
			owner := r.Nodes()[r.Owner(part)]
			if want := full(part); owner != want {
				t.Fatalf("partition %d: owner %q, want %q", part, owner, want)
			}
			standby := r.Nodes()[r.Standby(part)]
			if want := bereft[owner](part); standby != want || standby == owner {
				t.Fatalf("partition %d of %q: standby %q, want %q", part, owner, standby, want)
			}
		}
	})
}

// Both tables are the library's, with partitions and loads that do not divide and
// with so little room that partitions go round the circle to find some.
func TestLawTablesAreTheLibrarys(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := Params{
			Partitions:   rapid.IntRange(30, 1100).Draw(t, "partitions"),
			VirtualNodes: rapid.IntRange(1, 60).Draw(t, "virtual nodes"),
			Load:         rapid.OneOf(rapid.Just(1.0), rapid.Float64Range(1, 1.5), rapid.Float64Range(1, 10)).Draw(t, "load"),
		}
		id := rapid.Map(rapid.StringMatching(`(gw-|10\.0\.0\.)?[0-9]{1,3}(:77[0-9]{2})?`),
			func(s string) membership.NodeID { return membership.NodeID(s) })
		compareWithLibrary(t, p, rapid.SliceOfNDistinct(id, 1, 30, rapid.ID).Draw(t, "ids"))
	})
}

func TestDefaultTablesAreTheLibrarys(t *testing.T) {
	for _, n := range []int{1, 2, 3, 10, 20, 50} {
		compareWithLibrary(t, Defaults(), ids(n))
	}
}

func compareWithLibrary(t rapid.TB, p Params, ids []membership.NodeID) {
	t.Helper()
	r := build(t, p, ids)
	owner, standby := byLibrary(p, r.Nodes())
	if !slices.Equal(r.owner, owner) {
		t.Fatalf("%d members, %+v: other owners than the library's", len(ids), p)
	}
	if !slices.Equal(r.standby, standby) {
		t.Fatalf("%d members, %+v: other standbys than the library's", len(ids), p)
	}
}
