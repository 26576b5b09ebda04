package driver

import (
	"time"

	"github.com/ringlimit/ringlimit/owner"
)

// store is the table as the core sees it. It notes when partitions change hands.
type store struct {
	*owner.Table
	d     *Driver
	since []int64 // when a partition was last given another phase, or acquired
}

func newStore(d *Driver, now int64) *store {
	s := &store{Table: d.cfg.Table, d: d, since: make([]int64, d.cfg.Ring.Partitions)}
	for p := range s.since {
		s.since[p] = now
	}
	return s
}

// SetPhase is transfer.Store's. A copy that this node keeps is Acquiring to the
// table, so that to acquire a partition may change nothing there.
func (s *store) SetPhase(p int, to owner.Phase) {
	from := s.Table.Phase(p)
	s.Table.SetPhase(p, to)
	if from == to && to != owner.Acquiring {
		return
	}
	now := s.d.cfg.Now()
	switch {
	case to == owner.Holding && from == owner.Acquiring:
		s.d.cfg.Observer.Acquired(time.Duration(now - s.since[p]))
	case from == owner.Released && to != owner.Holding && to != owner.Acquiring:
		s.d.cfg.Observer.GaveAway()
	}
	s.since[p] = now
}
