package front

import (
	"sync"
	"sync/atomic"
)

// MaxAsking is how many checks of one batch SideBySide asks for at once: enough to
// fill the frames to each peer, and to wait out a dead owner's deadlines
// together rather than one after the other.
const MaxAsking = 128

// SideBySide calls ask for the indices of a batch of n checks: one after the other
// for those of one key, in their order, and side by side for those of different
// keys. It skips the indices whose key is not ok, and returns when all are done.
func SideBySide(n int, key func(i int) (_ string, ok bool), ask func(i int)) {
	heads, next := chain(n, key)
	var taken atomic.Int64
	var workers sync.WaitGroup
	work := func() {
		for h := taken.Add(1); h <= int64(len(heads)); h = taken.Add(1) {
			for i := heads[h-1]; ; i = next[i] {
				ask(i)
				if next[i] == 0 {
					break
				}
			}
		}
	}
	for range min(len(heads), MaxAsking) {
		workers.Go(work)
	}
	workers.Wait()
}

// chain returns the first index of each key, and for each index the next of the same
// key, 0 for none.
func chain(n int, key func(i int) (string, bool)) (heads, next []int) {
	last := make(map[string]int, n)
	next = make([]int, n)
	for i := range n {
		k, ok := key(i)
		if !ok {
			continue
		}
		if before, there := last[k]; there {
			next[before] = i
		} else {
			heads = append(heads, i)
		}
		last[k] = i
	}
	return heads, next
}
