package sim

import (
	"github.com/ringlimit/ringlimit/owner"
)

// chunkSize is how many counters travel together: few, so that a partition
// takes several messages.
const chunkSize = 3

// store is a node's table as its core sees it: the oracle looks on.
type store struct {
	*owner.Table
	n *node
}

func (s *store) SetPhase(p int, ph owner.Phase) {
	from := s.Phase(p)
	s.Table.SetPhase(p, ph)
	if from == ph {
		return
	}
	s.n.own[p] = from == owner.Released && ph == owner.Acquiring
	name := ph.String()
	if ph == owner.Acquiring && s.n.core.Phase(p) == owner.None {
		name = "copy" // to the table it is acquired
	}
	s.n.w.note("%d %s: partition %d: %s\n", s.n.w.now, s.n.id, p, name)
	if ph == owner.Holding {
		s.n.w.holds(p)
	}
}
