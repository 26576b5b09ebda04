package gossip

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// fence is how long after losing its peers a node goes on deciding. Nobody may
// be declared dead sooner: its successor would decide beside it.
const fence = time.Second

// How long a death takes to be known everywhere, in virtual time.
func TestDetection(t *testing.T) {
	for _, n := range []int{2, 3, 5, 10} {
		t.Run(fmt.Sprintf("members=%d", n), func(t *testing.T) {
			var all, first []time.Duration
			for range 9 {
				a, b := killOne(t, n)
				first, all = append(first, a), append(all, b)
			}
			slices.Sort(first)
			slices.Sort(all)
			t.Logf("everywhere: median %v, slowest %v; soonest at one member: %v", all[len(all)/2], all[len(all)-1], first[0])
			if first[0] < fence+500*time.Millisecond {
				t.Errorf("a death was declared after %v, too near the fence of %v", first[0], fence)
			}
			if median := all[len(all)/2]; median > 4*time.Second {
				t.Errorf("median %v", median)
			}
		})
	}
}

func killOne(t *testing.T, n int) (first, everywhere time.Duration) {
	bubble(t, func(w *world) {
		nodes := w.cluster(n)
		time.Sleep(3 * time.Second)
		w.kill(nodes[n-1])
		gone := func(x *node) bool { return len(x.latest().Members) == n-1 }
		first = w.eventually(20*time.Second, "the first", func() bool { return slices.ContainsFunc(w.nodes, gone) })
		everywhere = first + w.eventually(20*time.Second, "everyone", func() bool { return all(w.nodes, gone) })
	})
	return first, everywhere
}

// The last of three has nobody to confirm its suspicions, and a node that is cut
// off has doubts about itself first: both learn later, but they learn.
func TestDetectionWithoutWitnesses(t *testing.T) {
	bubble(t, func(w *world) {
		nodes := w.cluster(3)
		w.kill(nodes[2])
		w.kill(nodes[1])
		took := w.eventually(20*time.Second, "the last knows", func() bool { return nodes[0].sees("n1") })
		t.Logf("the last of three is sure after %v", took)
	})
	bubble(t, func(w *world) {
		nodes := w.cluster(5)
		w.net.Cut(func(from, to string) bool { return (from == addr(5)) != (to == addr(5)) })
		took := w.eventually(60*time.Second, "the lonely one knows", func() bool { return nodes[4].sees("n5") })
		t.Logf("one of five that is cut off is sure after %v", took)
	})
}
