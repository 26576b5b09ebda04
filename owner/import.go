package owner

import (
	"errors"
	"fmt"
	"math/bits"

	"github.com/ringlimit/ringlimit/internal/planted"
	"github.com/ringlimit/ringlimit/limit"
)

// importEntries is how many counters Import merges under one hold of the lock.
const importEntries = 128

// What Expect believes at most.
const (
	mostExpected      = 1 << 20
	mostExpectedNames = 32 << 20
)

// Import merges counters of another node into a partition that is acquired or
// held, as of now. It may be repeated and in any order: the most restrictive
// state wins. The bound on memory does not hold for them, or a counter would
// start anew that has not ended, but they are accounted for.
//
// Otherwise the error is ErrNotReceiving, and the partition may have changed
// hands after some of the entries; or it says which entries are unusable, and
// all others were merged. The table keeps no part of the entries.
func (t *Table) Import(p int, now int64, entries []Entry) error {
	var unusable []error
	for from := 0; from < len(entries); from += importEntries {
		batch := entries[from:min(from+importEntries, len(entries))]
		if !t.importBatch(&t.partitions[p], now, batch, func(i int, err error) {
			unusable = append(unusable, fmt.Errorf("entry %d: %w", from+i, err))
		}) {
			return ErrNotReceiving
		}
	}
	return errors.Join(unusable...)
}

// Expect prepares an empty partition for so many counters, with names of so many
// bytes in all, that Import is about to bring. Without it Import is slower, for
// counters come in order and meet in one corner of a small table. Little is made
// before they come, and it goes with the next sweep if they do not.
func (t *Table) Expect(p int, counters, names int) {
	pt := &t.partitions[p]
	pt.mu.Lock()
	defer pt.mu.Unlock()
	if pt.phase != Acquiring && pt.phase != Holding || pt.used > 0 || counters <= 0 {
		return
	}
	t.empty(pt)
	counters, names = min(counters, mostExpected), min(max(names, 0), mostExpectedNames)
	depth := uint8(bits.Len(uint(max(counters/t.large, names/segmentText))))
	d := divided(depth)
	for i := range d {
		// Not all get the same: a few more than the average fit.
		d[i].Load().expected = int32(counters>>depth*17/16 + 1)
		d[i].Load().text = int32(names>>depth*17/16 + 1)
	}
	pt.dir.Store(&d)
	t.memory.add(d.bytes())
}

// importBatch reports false when the partition receives nothing.
func (t *Table) importBatch(p *partition, now int64, batch []Entry, refuse func(int, error)) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.phase != Acquiring && p.phase != Holding {
		return false
	}
	now = max(now, p.floor)
	for i := range batch {
		if err := t.receive(p, now, &batch[i]); err != nil {
			refuse(i, err)
		}
	}
	return true
}

var errNoCounter = errors.New("has no name or no rule")

// receive merges one counter; the caller holds the partition's lock.
func (t *Table) receive(p *partition, now int64, e *Entry) error {
	if len(e.Name) == 0 || e.Rule == nil {
		return errNoCounter
	}
	shipped := e.State
	if planted.Fault == planted.AbsoluteTime && e.Rule.Algorithm == limit.TokenBucket {
		shipped.A -= planted.Clock()
	}
	state := e.Rule.Receive(shipped, now)
	if e.Rule.FreshAt(state) <= now {
		return nil
	}
	if at, found := p.find(e.ID); found {
		t.join(p, now, at.slot(), e.Rule, state)
		return nil
	}
	if !t.makeRoom(p, e.ID, e.Name, state.Log, beyondBound) {
		return ErrFull // of names: a slot could not point at this one
	}
	t.insert(p, e.ID, e.Name, e.Rule, &state)
	return nil
}

// join merges a state into the counter's own. If they were counted under
// different rules, one goes over to the other's: to the rule that can express
// more, because a bucket cannot be more than empty, and what does not fit would
// be forgotten.
func (t *Table) join(p *partition, now int64, s *slot, theirs *limit.Rule, state limit.State) {
	ours := t.rules.at(s.rule)
	own, log, rule := p.state(s, ours), logOf(s, ours), ours
	if outlasts(theirs, state, ours, own) {
		rule, own = theirs, theirs.Carry(ours, own, now)
		was := s.rule
		s.rule = t.rules.acquire(rule)
		t.rules.release(was)
	} else {
		state = ours.Carry(theirs, state, now)
	}
	if planted.Fault == planted.Add && rule.Algorithm == limit.FixedWindow {
		own.C += state.C
	}
	merged := rule.Merge(own, state, now)
	t.keep(p, s, log, rule, &merged)
}

// outlasts says whether a, counted under ra, rather than b is to keep its rule.
// Everybody has to say the same of the two, whichever came first.
func outlasts(ra *limit.Rule, a limit.State, rb *limit.Rule, b limit.State) bool {
	if ra.Capacity() != rb.Capacity() {
		return ra.Capacity() > rb.Capacity()
	}
	if ra.ID() == rb.ID() {
		return false
	}
	x, y := ra.FreshAt(a), rb.FreshAt(b)
	return x > y || x == y && ra.ID() > rb.ID()
}
