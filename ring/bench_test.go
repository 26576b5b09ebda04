package ring

import (
	"fmt"
	"testing"
	"time"

	"github.com/ringlimit/ringlimit/membership"
)

func ids(n int) []membership.NodeID {
	out := make([]membership.NodeID, n)
	for i := range out {
		out[i] = membership.NodeID(fmt.Sprintf("node-%d", i+1))
	}
	return out
}

// BenchmarkNew is the cost of one membership change, off the request path, against
// the same tables from the library.
func BenchmarkNew(b *testing.B) {
	for _, n := range []int{3, 10, 20, 50, 100} {
		b.Run(fmt.Sprintf("members=%d", n), func(b *testing.B) {
			members := ids(n)
			start := time.Now()
			byLibrary(Defaults(), members)
			theirs := time.Since(start)
			for b.Loop() {
				if _, err := New(Defaults(), members); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(theirs)*float64(b.N)/float64(b.Elapsed()), "library-over-ours/ratio")
		})
	}
}

// BenchmarkLookup compares the compiled tables with the library's own look-up,
// both from a hash to an owner.
func BenchmarkLookup(b *testing.B) {
	r, err := New(Defaults(), ids(20))
	if err != nil {
		b.Fatal(err)
	}
	c := library(Defaults(), r.Nodes())
	const rounds = 1 << 16
	var sink int
	ours := nsPer(rounds, func(i uint64) { sink += r.Owner(r.Partition(i * 0x9e3779b97f4a7c15)) })
	theirs := nsPer(rounds, func(i uint64) {
		sink += len(c.GetPartitionOwner(int(i * 0x9e3779b97f4a7c15 % 1024)).String())
	})
	b.ReportAllocs()
	var i uint64
	for b.Loop() {
		i += 0x9e3779b97f4a7c15
		sink += r.Owner(r.Partition(i))
	}
	b.ReportMetric(ours/theirs, "of-library/ratio")
	_ = sink
}

func nsPer(rounds uint64, f func(i uint64)) float64 {
	start := time.Now()
	for i := range rounds {
		f(i)
	}
	return float64(time.Since(start)) / float64(rounds)
}

func TestLookupAllocatesNothing(t *testing.T) {
	r, err := New(Defaults(), ids(3))
	if err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(100, func() { _ = r.Standby(r.Partition(12345)) + r.Owner(r.Partition(12345)) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
