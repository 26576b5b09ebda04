package owner

import (
	"github.com/ringlimit/ringlimit/internal/planted"
	"github.com/ringlimit/ringlimit/limit"
)

// Entry is a counter on its way to another node.
type Entry struct {
	ID    ID          // follows from the name; it does not travel
	Name  []byte      // read-only: an exported one lies in the table, where names are never overwritten
	Rule  *limit.Rule // that it was counted under
	State limit.Shipped
}

// Cursor is a place in the order of a partition's counters. The zero Cursor is
// the beginning.
type Cursor uint64

// exportStamps bounds the stamps of logs that are copied under one hold of the
// lock, which takes about half a millisecond. A single log may exceed it.
const exportStamps = 1 << 16

// Freeze turns a partition that is held into a released one: from then on
// nothing is decided there, and all that ever was is in its counters. It reports
// whether the partition was held.
func (t *Table) Freeze(p int) bool { return t.turn(p, Holding, Released) }

// Thaw undoes Freeze: the partition goes on with the same counters. It reports
// whether the partition was released.
func (t *Table) Thaw(p int) bool { return t.turn(p, Released, Holding) }

func (t *Table) turn(p int, from, to Phase) bool {
	pt := &t.partitions[p]
	pt.mu.Lock()
	defer pt.mu.Unlock()
	if pt.phase != from {
		return false
	}
	pt.phase = to
	return true
}

// Size is how many counters a partition has, and of how many bytes their names
// are: what to Expect before an Import of them.
func (t *Table) Size(p int) (counters, names int) {
	pt := &t.partitions[p]
	pt.mu.Lock()
	defer pt.mu.Unlock()
	for s := range pt.directory().all() {
		names += s.names.live()
	}
	return pt.used, names
}

// Export copies out the next counters of a partition as of now, of which it
// looks at so many at most, or at fewer when their logs are long. Those that
// equal fresh ones are left out. It returns where to go on, or that it is done.
//
// A frozen partition is copied exactly. From another one come counters as they
// are while it goes on; one that is there all the while is copied exactly once.
func (t *Table) Export(p int, now int64, from Cursor, most int) (entries []Entry, next Cursor, done bool) {
	pt := &t.partitions[p]
	pt.mu.Lock()
	defer pt.mu.Unlock()
	entries = make([]Entry, 0, max(0, min(most, pt.used)))
	looked, stamps := 0, 0
	lo, done := pt.walk(uint64(from), func(seg *segment, s *slot) bool {
		if e, used := t.export(pt, now, seg, s); used {
			entries = append(entries, e)
			stamps += len(e.State.Log)
		}
		looked++
		return looked < most && stamps < exportStamps
	})
	return entries, Cursor(lo), done
}

// ExportThese copies out just the counters with these IDs, as far as they exist
// and do not equal fresh ones: those that somebody waits for go ahead of the
// others. Export copies them again, which does no harm.
func (t *Table) ExportThese(p int, now int64, ids []ID) (entries []Entry) {
	pt := &t.partitions[p]
	pt.mu.Lock()
	defer pt.mu.Unlock()
	for _, id := range ids {
		if at, found := pt.find(id); found {
			if e, used := t.export(pt, now, at.seg, at.slot()); used {
				entries = append(entries, e)
			}
		}
	}
	return entries
}

// export copies out one counter, unless it equals a fresh one.
func (t *Table) export(p *partition, now int64, seg *segment, s *slot) (e Entry, used bool) {
	rule := t.rules.at(s.rule)
	state := p.state(s, rule)
	if rule.FreshAt(state) <= now {
		return Entry{}, false
	}
	e = Entry{s.id, seg.names.at(s.name), rule, rule.Ship(state, now)}
	if planted.Fault == planted.AbsoluteTime && rule.Algorithm == limit.TokenBucket {
		e.State.A += planted.Clock()
	}
	return e, true
}
