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
	s.n.w.phase(s.n, p, s.Phase(p), ph)
	s.Table.SetPhase(p, ph)
}
