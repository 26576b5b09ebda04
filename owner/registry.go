package owner

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/ringlimit/ringlimit/limit"
)

// registry numbers the rules, so that a slot names its rule in four bytes that
// the garbage collector need not look at. Rules with the same content have the
// same number. Readers take no lock: each change publishes a new ruleset.
type registry struct {
	current atomic.Pointer[ruleset]

	mu    sync.Mutex // held to publish
	bound int        // how many rules to hold before those no counter uses are forgotten
}

// ruleset is immutable, but for the reference counts. Number 0 is no rule.
type ruleset struct {
	entries []*entry // nil where a rule was forgotten
	numbers map[limit.RuleID]uint32
	full    int // none of entries[1 : 1+full] is nil
}

type entry struct {
	rule *limit.Rule
	refs atomic.Int64 // slots that bear the number
}

// unusedRules bounds what a peer can make us remember. Rules that counters use
// are bounded by the memory for counters.
const unusedRules = 1 << 16

func (g *registry) init() {
	g.bound = unusedRules
	g.current.Store(&ruleset{entries: make([]*entry, 1)})
}

// at is the rule of a slot. The caller holds the slot's partition, and must have
// done so since before it read the number.
func (g *registry) at(number uint32) *limit.Rule { return g.current.Load().entries[number].rule }

// find returns the rule with that content, or nil.
func (g *registry) find(id limit.RuleID) *limit.Rule {
	set := g.current.Load()
	if n, ok := set.numbers[id]; ok {
		return set.entries[n].rule
	}
	return nil
}

// learn makes the rules known. The list of all is copied once, if any is new.
func (g *registry) learn(rules ...*limit.Rule) {
	var unknown []*limit.Rule
	for _, r := range rules {
		if g.find(r.ID()) == nil {
			unknown = append(unknown, r)
		}
	}
	if len(unknown) > 0 {
		g.mu.Lock()
		g.add(unknown...)
		g.mu.Unlock()
	}
}

// acquire returns the rule's number and counts a reference to it.
func (g *registry) acquire(r *limit.Rule) uint32 {
	set := g.current.Load()
	if n, ok := set.numbers[r.ID()]; ok && set.entries[n].retain() {
		return n
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	n := g.number(r)
	g.current.Load().entries[n].refs.Add(1)
	return n
}

// release gives a reference back.
func (g *registry) release(number uint32) { g.current.Load().entries[number].refs.Add(-1) }

// retain counts one more reference, unless there is none: then the rule may be
// forgotten at any moment, and only the holder of the registry's lock may
// revive it.
func (e *entry) retain() bool {
	for {
		n := e.refs.Load()
		if n == 0 {
			return false
		}
		if e.refs.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// number finds the rule's number or gives it one. The caller holds mu.
func (g *registry) number(r *limit.Rule) uint32 {
	if n, ok := g.current.Load().numbers[r.ID()]; ok {
		return n
	}
	return g.add(r).numbers[r.ID()]
}

// add gives numbers to those rules that have none, and publishes the ruleset. The
// caller holds mu.
func (g *registry) add(rules ...*limit.Rule) *ruleset {
	old := g.current.Load()
	next := &ruleset{entries: slices.Clone(old.entries), numbers: maps.Clone(old.numbers), full: old.full}
	if next.numbers == nil {
		next.numbers = make(map[limit.RuleID]uint32)
	}
	for _, r := range rules {
		if _, ok := next.numbers[r.ID()]; ok {
			continue
		}
		if len(next.numbers) >= g.bound {
			next.forget()
			g.bound = max(unusedRules, 2*len(next.numbers))
		}
		n := next.vacancy()
		next.entries[n] = &entry{rule: r}
		next.numbers[r.ID()] = n
	}
	g.current.Store(next)
	return next
}

// forget drops the rules that no counter uses. Whoever needs one of them again
// learns it again.
func (s *ruleset) forget() {
	for id, n := range s.numbers {
		if s.entries[n].refs.Load() == 0 {
			s.entries[n] = nil
			delete(s.numbers, id)
			s.full = 0
		}
	}
}

// vacancy is a number that no rule has.
func (s *ruleset) vacancy() uint32 {
	if len(s.entries)-1 == len(s.numbers) {
		s.entries = append(s.entries, nil)
		s.full = len(s.numbers)
	} else {
		s.full += slices.Index(s.entries[1+s.full:], nil)
	}
	s.full++ // the caller fills it
	return uint32(s.full)
}
