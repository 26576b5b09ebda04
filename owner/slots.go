package owner

import (
	"math/bits"
	"unsafe"
)

// slot is one counter. It must stay free of pointers.
type slot struct {
	id    ID
	words [3]int64 // the state; see write in state.go
	rule  uint32   // the registry's number of its rule; 0: the slot is empty
	name  uint32   // where its name lies
}

const (
	slotSize = int64(unsafe.Sizeof(slot{}))

	minHomes = 8
	tail     = 16 // places behind the last home, for those that are pushed out
)

// slots is a sorted array with gaps: the counters stand in the order of ID.Lo,
// each at its home or pushed to the right of it by its neighbours, never with
// a gap between. This is linear probing with the probe sequences kept in order
// (Amble and Knuth, "Ordered hash tables", 1974): a search that fails ends as
// soon as one that succeeds, removal leaves no tombstone, a larger copy or one
// half is made in one pass from left to right, and a walk can go on after any
// change.
type slots struct {
	at    []slot
	homes int   // how many of the places are homes
	depth uint8 // in so many leading bits of Lo all counters here agree
	used  int
}

// home is where a counter would stand in an empty table. It grows with lo.
func (s *slots) home(lo uint64) int {
	hi, _ := bits.Mul64(lo<<(s.depth&63), uint64(s.homes))
	return int(hi)
}

// find returns the counter's place, or else the place to insert it at.
func (s *slots) find(id ID) (i int, found bool) {
	for i = s.home(id.Lo); i < len(s.at) && s.at[i].rule != 0 && s.at[i].id.Lo <= id.Lo; i++ {
		if s.at[i].id == id {
			return i, true
		}
	}
	return i, false
}

// insert adds a counter that is not there. The caller has seen that it is not
// full.
func (s *slots) insert(v slot) {
	i, _ := s.find(v.id)
	end := i
	for s.at[end].rule != 0 {
		end++
	}
	copy(s.at[i+1:end+1], s.at[i:end])
	s.at[i] = v
	s.used++
}

// remove takes out the counter at i. Those it had pushed from their homes move
// back by one place, so that no gap cuts a later one off from its home.
func (s *slots) remove(i int) {
	end := i + 1
	for end < len(s.at) && s.at[end].rule != 0 && s.home(s.at[end].id.Lo) < end {
		end++
	}
	copy(s.at[i:end-1], s.at[i+1:end])
	s.at[end-1] = slot{}
	s.used--
}

// full says that there must be more room before the next insert: the homes are
// filled to 85 %, or the last place is taken, so that nobody can be pushed on.
func (s *slots) full() bool {
	return (s.used+1)*20 > s.homes*17 || s.at[len(s.at)-1].rule != 0
}

// sparse says that at least an n-th part of the homes could be spared.
func (s *slots) sparse(part int) bool { return (s.homes-roomy(s.used))*part >= max(1, s.homes) }

// roomy is a number of homes that so many counters fill to 75 %: an eighth more
// of them can come before there must be more room. With the places behind them
// they fill the pages that the allocator gives.
func roomy(used int) int {
	homes := max(minHomes, used*4/3)
	return inPages((homes+tail)*int(slotSize))/int(slotSize) - tail
}

// from is the place of the first counter with such a Lo or a larger one.
func (s *slots) from(lo uint64) int {
	i := s.home(lo)
	for i < len(s.at) && (s.at[i].rule == 0 || s.at[i].id.Lo < lo) {
		i++
	}
	return i
}

func (s *slots) bytes() int64 { return int64(len(s.at)) * slotSize }

// The allocator gives arrays of more than 32 KiB in pages of 8 KiB.
const (
	wholePages = 32 << 10
	pageSize   = 8 << 10
)

// inPages is how many bytes the allocator takes for an array of so many.
func inPages(bytes int) int {
	if bytes <= wholePages {
		return bytes
	}
	return (bytes + pageSize - 1) &^ (pageSize - 1)
}
