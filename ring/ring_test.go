package ring

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/zeebo/xxh3"
	"pgregory.net/rapid"

	"github.com/ringlimit/ringlimit/membership"
)

func build(t rapid.TB, p Params, ids []membership.NodeID) *Ring {
	t.Helper()
	r, err := New(p, ids)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// without is what a model knows of a node's death: the same ids but one.
func without(ids []membership.NodeID, gone membership.NodeID) []membership.NodeID {
	return slices.DeleteFunc(slices.Clone(ids), func(id membership.NodeID) bool { return id == gone })
}

// smallParams keep rapid fast and reach the corners: one partition, one point a
// node, no slack.
func smallParams() *rapid.Generator[Params] {
	return rapid.Custom(func(t *rapid.T) Params {
		return Params{
			Partitions:   rapid.IntRange(8, 128).Draw(t, "partitions"),
			VirtualNodes: rapid.IntRange(1, 20).Draw(t, "virtual nodes"),
			Load:         rapid.SampledFrom([]float64{1, 1.1, 1.25, 2, 10}).Draw(t, "load"),
		}
	})
}

func someIDs(min int) *rapid.Generator[[]membership.NodeID] {
	id := rapid.Map(rapid.StringN(1, 12, -1), func(s string) membership.NodeID { return membership.NodeID(s) })
	return rapid.SliceOfNDistinct(id, min, 8, rapid.ID)
}

func TestPureInAnyOrderAndRepetition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, ids := smallParams().Draw(t, "params"), someIDs(1).Draw(t, "ids")
		shuffled := rapid.Permutation(append(slices.Clone(ids), ids[0])).Draw(t, "shuffled")
		a, b := build(t, p, ids), build(t, p, shuffled)
		if !slices.Equal(a.owner, b.owner) || !slices.Equal(a.standby, b.standby) {
			t.Fatal("the order of the ids changed the tables")
		}
		if a.Fingerprint() != b.Fingerprint() || !slices.Equal(a.Nodes(), b.Nodes()) {
			t.Fatal("the order of the ids changed the fingerprint or the nodes")
		}
	})
}

func TestEveryPartitionIsOwnedWithinTheLoadBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, ids := smallParams().Draw(t, "params"), someIDs(1).Draw(t, "ids")
		r := build(t, p, ids)
		held := make([]int, len(ids))
		for part := range p.Partitions {
			held[r.Owner(part)]++ // panics when there is none
		}
		bound := int(math.Ceil(float64(p.Partitions) / float64(len(ids)) * p.Load))
		if most := slices.Max(held); most > bound {
			t.Fatalf("a node holds %d partitions, the bound is %d", most, bound)
		}
	})
}

// No parameter that validate lets through may reach a panic of the library.
func TestAcceptedParametersNeverPanic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := Params{
			Partitions:   rapid.IntRange(-1, 300).Draw(t, "partitions"),
			VirtualNodes: rapid.IntRange(-1, 8).Draw(t, "virtual nodes"),
			Load:         rapid.Float64().Draw(t, "load"),
		}
		n := rapid.IntRange(0, 30).Draw(t, "members")
		if rapid.Bool().Draw(t, "sane load") {
			p.Load = rapid.Float64Range(0.9, 1.1).Draw(t, "near one")
		}
		if r, err := New(p, ids(n)); err == nil && r.Partitions() != p.Partitions {
			t.Fatalf("%d partitions, want %d", r.Partitions(), p.Partitions)
		}
	})
}

func TestBadParametersAreNamed(t *testing.T) {
	good := Defaults()
	for name, c := range map[string]struct {
		change func(*Params)
		ids    []membership.NodeID
		want   string
	}{
		"no partitions":     {func(p *Params) { p.Partitions = 0 }, ids(3), "partitions: 0"},
		"minus partitions":  {func(p *Params) { p.Partitions = -1 }, ids(3), "partitions: -1"},
		"huge partitions":   {func(p *Params) { p.Partitions = 1 << 30 }, ids(3), "partitions"},
		"no virtual nodes":  {func(p *Params) { p.VirtualNodes = 0 }, ids(3), "virtual nodes: 0"},
		"load under one":    {func(p *Params) { p.Load = 0.99 }, ids(3), "load: 0.99"},
		"load zero":         {func(p *Params) { p.Load = 0 }, ids(3), "load: 0"},
		"load not a number": {func(p *Params) { p.Load = math.NaN() }, ids(3), "load: NaN"},
		"load endless":      {func(p *Params) { p.Load = math.Inf(1) }, ids(3), "load: +Inf"},
		"too many members":  {func(p *Params) { p.Partitions = 4 }, ids(5), "members: 5"},
		"empty id":          {func(*Params) {}, append(ids(2), ""), "empty"},
	} {
		t.Run(name, func(t *testing.T) {
			p := good
			c.change(&p)
			_, err := New(p, c.ids)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("error %v, want one with %q", err, c.want)
			}
		})
	}
}

func TestSmallRings(t *testing.T) {
	empty := build(t, Defaults(), nil)
	if empty.Owner(7) != -1 || empty.Standby(7) != -1 || len(empty.Nodes()) != 0 || empty.Index("a") != -1 {
		t.Error("an empty ring owns something")
	}
	alone := build(t, Defaults(), ids(1))
	if alone.Owner(7) != 0 || alone.Standby(7) != -1 {
		t.Errorf("alone: owner %d, standby %d", alone.Owner(7), alone.Standby(7))
	}
	three := build(t, Defaults(), ids(3))
	for i, id := range three.Nodes() {
		if three.Index(id) != i {
			t.Errorf("Index(%q) = %d, want %d", id, three.Index(id), i)
		}
	}
}

// H61: nodes that share an address and differ in the port are distinct members.
func TestH61SameAddressOtherPorts(t *testing.T) {
	r := build(t, Defaults(), []membership.NodeID{"10.0.0.1:7703", "10.0.0.1:7713", "10.0.0.1:7723"})
	held := make([]int, 3)
	for part := range r.Partitions() {
		held[r.Owner(part)]++
	}
	for i, n := range held {
		if n < 1024/3/2 {
			t.Errorf("%s owns %d of 1024", r.Nodes()[i], n)
		}
	}
}

// H60: sequential keys spread over five nodes like random ones. Chi-square with
// four degrees of freedom against each node's share of the partitions; 23.5 is
// passed by chance once in 10,000, and the keys and seeds are fixed.
func TestH60SequentialKeysSpreadLikeRandomOnes(t *testing.T) {
	r := build(t, Defaults(), ids(5))
	share := make([]float64, 5)
	for part := range r.Partitions() {
		share[r.Owner(part)] += 1.0 / float64(r.Partitions())
	}
	for seed := range uint64(20) {
		got := make([]float64, 5)
		for k := range 1000 {
			hash := xxh3.Hash128Seed(fmt.Appendf(nil, "user-%d", k+1), seed).Hi
			got[r.Owner(r.Partition(hash))]++
		}
		var chi float64
		for i := range got {
			want := 1000 * share[i]
			chi += (got[i] - want) * (got[i] - want) / want
		}
		if chi > 23.5 {
			t.Errorf("seed %d: %v of 1000 keys, chi-square %.1f", seed, got, chi)
		}
	}
}

func TestPartitionIsUniformAndInRange(t *testing.T) {
	for _, partitions := range []int{1, 7, 1000, 1024} {
		p := Defaults()
		p.Partitions = partitions
		r := build(t, p, ids(1))
		rapid.Check(t, func(t *rapid.T) {
			hash := rapid.Uint64().Draw(t, "hash")
			if part := r.Partition(hash); part < 0 || part >= partitions {
				t.Fatalf("partition %d of %d", part, partitions)
			}
		})
	}
	r := build(t, Defaults(), ids(1))
	hit := make([]int, 1024)
	for k := range 64 * 1024 {
		hit[r.Partition(xxh3.HashString128(fmt.Sprint(k)).Hi)]++
	}
	if slices.Min(hit) < 24 || slices.Max(hit) > 120 { // mean 64, sd 8
		t.Errorf("partitions got from %d to %d keys, want about 64", slices.Min(hit), slices.Max(hit))
	}
}

// A change of members must never look like no change.
func TestFingerprintTellsRingsApart(t *testing.T) {
	base := Defaults()
	seen := map[uint64]string{}
	add := func(name string, p Params, ids ...membership.NodeID) {
		f := build(t, p, ids).Fingerprint()
		if other, ok := seen[f]; ok {
			t.Errorf("%s and %s share a fingerprint", name, other)
		}
		seen[f] = name
	}
	add("none", base)
	add("ab c", base, "ab", "c")
	add("a bc", base, "a", "bc")
	add("abc", base, "abc")
	for name, change := range map[string]func(*Params){
		"partitions":    func(p *Params) { p.Partitions = 512 },
		"virtual nodes": func(p *Params) { p.VirtualNodes = 100 },
		"load":          func(p *Params) { p.Load = 1.5 },
	} {
		p := base
		change(&p)
		add(name, p, "ab", "c")
		if p.Placement() == base.Placement() {
			t.Errorf("%s: same placement id", name)
		}
	}
}

// The tables are what nodes of neighbouring versions agree on. If this fails,
// the placement changed: raise the constant named placement.
func TestPlacementIsFrozen(t *testing.T) {
	r := build(t, Defaults(), ids(5))
	d := xxh3.New()
	for part := range r.Partitions() {
		fmt.Fprintf(d, "%d,%d;", r.Owner(part), r.Standby(part))
	}
	const want = 0x4a72c730693845d
	if got := d.Sum64(); got != want {
		t.Errorf("tables hash to %#x, want %#x", got, want)
	}
}

// Joining as the 21st moves little more than the newcomer's fair share, and few
// partitions move between two that were there before.
func TestJoinMovesLittle(t *testing.T) {
	const n, trials = 20, 5
	var moved, bystanders int
	for trial := range trials {
		all := make([]membership.NodeID, n+1)
		for i := range all {
			all[i] = membership.NodeID(fmt.Sprintf("gw-%d-%d", trial, i))
		}
		before, after := fresh(Defaults(), all[:n]), fresh(Defaults(), all)
		for part := range Defaults().Partitions {
			from, to := before(part), after(part)
			if from != to {
				moved++
				if to != all[n] {
					bystanders++
				}
			}
		}
	}
	ideal := float64(trials*1024) / float64(n+1)
	share := float64(moved) / ideal
	t.Logf("a join moved %.3f of the ideal share; %.1f%% of the moves between bystanders", share, 100*float64(bystanders)/float64(moved))
	if share > 1.25 || float64(bystanders) > 0.15*float64(moved) {
		t.Errorf("moved %.2f of the ideal share, %d of %d between bystanders", share, bystanders, moved)
	}
}
