package sim

import (
	"cmp"
	"slices"

	"github.com/ringlimit/ringlimit/limit"
	"github.com/ringlimit/ringlimit/owner"
	"github.com/ringlimit/ringlimit/owner/transfer"
)

// chunkSize is how many counters travel together: few, so that a partition
// takes several messages.
const chunkSize = 3

// counters is what a process remembers.
type counters struct{ parts []part }

type part struct {
	phase owner.Phase
	at    map[string]*counter
}

type counter struct {
	rule  *limit.Rule
	state limit.State
}

func newCounters(partitions int) *counters {
	c := &counters{make([]part, partitions)}
	for i := range c.parts {
		c.parts[i].at = map[string]*counter{}
	}
	return c
}

// take charges a counter.
func (c *counters) take(p int, name string, rule *limit.Rule, now int64) limit.Verdict {
	at := c.parts[p].at
	k := at[name]
	if k == nil {
		k = &counter{rule: rule}
		at[name] = k
	}
	if k.rule.ID() != rule.ID() {
		k.state, k.rule = rule.Carry(k.rule, k.state, now), rule
	}
	var v limit.Verdict
	k.state, v = rule.Take(k.state, now, 1)
	return v
}

// store is a node's counters as its core sees them.
type store struct{ n *node }

func (s *store) SetPhase(p int, ph owner.Phase) {
	part := &s.n.counts.parts[p]
	s.n.w.phase(s.n, p, part.phase, ph)
	if part.phase = ph; ph == owner.None {
		clear(part.at)
	}
}

func (s *store) Export(p int, now int64, from uint64) (c transfer.Chunk) {
	at := s.n.counts.parts[p].at
	var names []string
	for name := range at {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Compare(a, b) })
	end := min(len(names), int(from)+chunkSize)
	for _, name := range names[min(int(from), end):end] {
		k := at[name]
		c.Entries = append(c.Entries, transfer.Entry{Name: []byte(name), Rule: k.rule, State: k.rule.Ship(k.state, now)})
	}
	c.Next, c.More = uint64(end), end < len(names)
	return c
}

func (s *store) Import(p int, now int64, c transfer.Chunk) {
	at := s.n.counts.parts[p].at
	for _, e := range c.Entries {
		state := e.Rule.Receive(e.State, now)
		k := at[string(e.Name)]
		switch {
		case k == nil:
			at[string(e.Name)] = &counter{e.Rule, state}
		case k.rule.ID() == e.Rule.ID():
			k.state = k.rule.Merge(k.state, state, now)
		default:
			k.state = k.rule.Merge(k.state, k.rule.Carry(e.Rule, state, now), now)
		}
	}
}
