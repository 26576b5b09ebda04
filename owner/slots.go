package owner

import (
	"math/bits"
	"unsafe"
)

// slot is one counter. It must stay free of pointers.
type slot struct {
	id    ID
	words [3]int64 // the state; see pack in partition.go
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
// soon as one that succeeds, removal leaves no tombstone, growth is one pass
// from left to right, and a walk can go on after any change.
type slots struct {
	at    []slot
	homes int // how many of the places are homes
	used  int
}

// home is where a counter would stand in an empty table. It grows with lo.
func (s *slots) home(lo uint64) int {
	hi, _ := bits.Mul64(lo, uint64(s.homes))
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
func (s *slots) full() bool { return s.crowded() || s.at[len(s.at)-1].rule != 0 }

func (s *slots) crowded() bool { return (s.used+1)*20 > s.homes*17 }

// sparse says that a third of the homes would do.
func (s *slots) sparse() bool { return s.homes > minHomes && s.used*4 < s.homes }

// roomy is a number of homes that so many counters fill to 68 %: a quarter
// more of them can come before the next growth.
func roomy(used int) int { return max(minHomes, used*25/17) }

// resized is a copy with another number of homes. Its tail is free, so that
// growing makes room even where all counters want the same home.
func (s *slots) resized(homes int) slots {
	n := slots{at: make([]slot, s.length(homes)), homes: homes, used: s.used}
	n.spread(s.at, n.at)
	return n
}

// length is how many places a copy with so many homes has.
func (s *slots) length(homes int) int {
	n := slots{homes: homes}
	return max(homes, n.spread(s.at, nil)) + tail
}

// spread copies the counters to their places in dst and returns the first
// place behind the last; without dst it only measures.
func (s *slots) spread(counters, dst []slot) (end int) {
	for k := range counters {
		if counters[k].rule == 0 {
			continue
		}
		i := max(end, s.home(counters[k].id.Lo))
		if dst != nil {
			dst[i] = counters[k]
		}
		end = i + 1
	}
	return end
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
