package owner

import (
	"context"
	"runtime"
	"time"
)

const (
	// sweepRound is how long the sweep takes over all partitions, and so about
	// how long a counter that equals a fresh one may stay.
	sweepRound = 20 * time.Second
	// rushPause is the least time between two rounds in a hurry, for which a
	// new counter that was refused asks.
	rushPause = time.Second
	// sweepSlots is how many counters the sweep looks at before it lets those
	// who wait for the partition's lock go first: a few microseconds.
	sweepSlots = 512

	// A segment is built anew when a third of its room is waste, and when memory
	// is tight, an eighth: new counters of other segments may be refused for it.
	usualWaste, tightWaste = 3, 8
)

// Run sweeps the table, one partition at a time, until ctx ends.
func (t *Table) Run(ctx context.Context) {
	tick := time.NewTicker(max(sweepRound/time.Duration(len(t.partitions)), time.Microsecond))
	defer tick.Stop()
	rushed := t.now() - int64(rushPause)
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			t.Sweep(t.now(), 1)
		case <-t.pressed:
			if now := t.now(); now-rushed >= int64(rushPause) {
				rushed = now
				t.rush(ctx)
			}
		}
	}
}

// rush sweeps every partition at once.
func (t *Table) rush(ctx context.Context) {
	for range t.partitions {
		if ctx.Err() != nil {
			return
		}
		t.Sweep(t.now(), 1)
	}
}

// Sweep goes on to the next partitions, so many of them, and drops what equals
// a fresh counter as of now. It returns how many counters it dropped.
func (t *Table) Sweep(now int64, partitions int) (dropped int) {
	t.sweeping.Lock()
	defer t.sweeping.Unlock()
	for range partitions {
		dropped += t.sweep(&t.partitions[t.cursor], now)
		t.cursor = (t.cursor + 1) % len(t.partitions)
	}
	return dropped
}

func (t *Table) sweep(p *partition, now int64) (dropped int) {
	for from, more := uint64(0), true; more; runtime.Gosched() {
		var n int
		p.mu.Lock()
		n, from, more = t.sweepStep(p, now, from)
		p.mu.Unlock()
		dropped += n
	}
	return dropped
}

// sweepStep looks at the next counters of a segment, and tidies it when it has
// seen all. It returns where to go on, or that it was the partition's last.
func (t *Table) sweepStep(p *partition, now int64, from uint64) (dropped int, next uint64, more bool) {
	s := p.segment(from)
	if s == nil {
		return 0, 0, false
	}
	if dropped, next, more = t.dropFresh(p, s, now, from, sweepSlots); more {
		return dropped, next, true
	}
	next, more = s.end()
	t.tidy(p, s)
	return dropped, next, more
}

// dropFresh looks at about so many counters of a segment, beginning with those
// whose Lo is from, and drops the ones that equal fresh ones. It judges and drops
// under one hold of the lock: a counter that is used again in between is not lost.
// It returns where to go on, or that the segment has no more.
func (t *Table) dropFresh(p *partition, seg *segment, now int64, from uint64, budget int) (dropped int, next uint64, more bool) {
	s := &seg.slots
	last := from
	for i := s.from(from); i < len(s.at) && s.used > 0; {
		switch lo := s.at[i].id.Lo; {
		case s.at[i].rule == 0:
			i++
		case budget <= 0 && lo != last: // never between two with the same Lo
			return dropped, lo, true
		default:
			last, budget = lo, budget-1
			if t.dropIfFresh(p, place{seg, i}, now) {
				dropped++ // and the next counter may stand at i now
			} else {
				i++
			}
		}
	}
	return dropped, 0, false
}

// dropIfFresh drops the counter there if it equals a fresh one.
func (t *Table) dropIfFresh(p *partition, at place, now int64) bool {
	s := at.slot()
	rule := t.rules.at(s.rule)
	if rule.FreshAt(p.state(s, rule)) > now {
		return false
	}
	t.drop(p, at)
	p.floor = max(p.floor, now)
	t.dropped.Add(1)
	return true
}

// drop removes the counter there.
func (t *Table) drop(p *partition, at place) {
	s := at.slot()
	t.memory.add(-p.freeLog(logOf(s, t.rules.at(s.rule))))
	at.seg.names.drop(s.name)
	t.rules.release(s.rule)
	at.seg.slots.remove(at.i)
	p.used--
}

// tidy gives back memory that a segment, and with it perhaps the partition, no
// longer needs.
func (t *Table) tidy(p *partition, s *segment) {
	if p.used == 0 {
		t.empty(p)
		return
	}
	for n := t.merge(p, s); n != nil; n = t.merge(p, s) {
		s = n
	}
	part := usualWaste
	if t.memory.tight() {
		part = tightWaste
	}
	if s.wasteful(part) {
		t.rebuild(p, s, 0, 0, withinBound)
	}
}

// empty gives back the arrays of a partition without counters.
func (t *Table) empty(p *partition) {
	t.memory.add(-p.bytes())
	p.clear()
}

// compact drops the garbage among the names of a segment, if it is worth it.
func (t *Table) compact(p *partition, s *segment) {
	if s.names.littered(tightWaste) {
		t.rebuild(p, s, 0, 0, withinBound)
	}
}
