package owner

import (
	"fmt"
	"testing"
	"time"

	"github.com/ringlimit/ringlimit/limit"
)

// start is when tests begin: away from the boundary of any usual window.
const start = int64(1_700_000_007_000_000_000)

func mustRule(t testing.TB, s limit.Spec) *limit.Rule {
	t.Helper()
	r, err := limit.NewRule(s)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func per(n int64, window time.Duration, a limit.Algorithm) limit.Spec {
	return limit.Spec{Algorithm: a, Limit: n, Window: window}
}

// holding is a table that holds all its partitions.
func holding(cfg Config) *Table {
	t := NewTable(cfg)
	for p := range t.partitions {
		t.SetPhase(p, Holding)
	}
	return t
}

// on is a charge of one unit to the counter with that name.
func on(t *Table, name string, r *limit.Rule) *Call {
	c := &Call{Charge: limit.Charge{Counter: []byte(name), Rule: r, Cost: 1}}
	c.ID = Seed(7).ID(c.Counter)
	c.Partition = int(c.ID.Hi % uint64(len(t.partitions)))
	return c
}

// answer is Decide with the verdict as a value.
func answer(t *Table, now int64, c *Call) (v limit.Verdict, err error) {
	err = t.Decide(now, c, &v)
	return v, err
}

func key(i int) string { return fmt.Sprintf("client-%d", i) }

// fataler is a *testing.T or a *rapid.T.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

// check fails the test unless the table's invariants hold: what is counted
// equals what is there.
func check(t fataler, tab *Table) {
	t.Helper()
	var bytes int64
	refs := map[uint32]int64{}
	for i := range tab.partitions {
		p := &tab.partitions[i]
		p.mu.Lock()
		checkSlots(t, &p.slots)
		checkNames(t, &p.counters)
		checkLogs(t, tab, p)
		for k := range p.slots.at {
			if n := p.slots.at[k].rule; n != 0 {
				refs[n]++
			}
		}
		bytes += p.bytes()
		p.mu.Unlock()
	}
	if used := tab.memory.used.Load(); used != bytes {
		t.Fatalf("%d bytes are accounted for, there are %d", used, bytes)
	}
	for n, e := range tab.rules.current.Load().entries {
		if e != nil && e.refs.Load() != refs[uint32(n)] {
			t.Fatalf("rule %d has %d references, %d slots bear it", n, e.refs.Load(), refs[uint32(n)])
		}
		if e == nil && refs[uint32(n)] != 0 {
			t.Fatalf("rule %d was forgotten, %d slots bear it", n, refs[uint32(n)])
		}
	}
}

func checkSlots(t fataler, s *slots) {
	t.Helper()
	used, end, lo := 0, 0, uint64(0)
	for i := range s.at {
		c := &s.at[i]
		if c.rule == 0 {
			if *c != (slot{}) {
				t.Fatalf("the empty place %d is not clean: %+v", i, *c)
			}
			end = i + 1
			continue
		}
		used++
		if home := s.home(c.id.Lo); home > i || home < end {
			t.Fatalf("the counter at %d with home %d is cut off by the gap before %d", i, home, end)
		}
		if c.id.Lo < lo {
			t.Fatalf("the counter at %d is out of order", i)
		}
		lo = c.id.Lo
		if at, ok := s.find(c.id); !ok || at != i {
			t.Fatalf("find says %d, %v for the counter at %d", at, ok, i)
		}
	}
	if used != s.used {
		t.Fatalf("%d counters are there, %d are counted", used, s.used)
	}
}

func checkNames(t fataler, c *counters) {
	t.Helper()
	live := 0
	for i := range c.slots.at {
		if s := &c.slots.at[i]; s.rule != 0 {
			name := c.names.at(s.name)
			if id := Seed(7).ID(name); id != s.id {
				t.Fatalf("the counter at %d has the name of another, %q", i, name)
			}
			live += nameSize(name)
		}
	}
	if got := len(c.names.text) - c.names.garbage; got != live {
		t.Fatalf("%d bytes of names are counted as used, %d are", got, live)
	}
}

func checkLogs(t fataler, tab *Table, p *partition) {
	t.Helper()
	blocks := 0
	for i := range p.slots.at {
		s := &p.slots.at[i]
		if s.rule == 0 {
			continue
		}
		if b := logOf(s, tab.rules.at(s.rule)); b != 0 {
			blocks++
			if owner := p.logs.classes[b.class()].owners[b.index()]; owner != s.id {
				t.Fatalf("the log of the counter at %d belongs to another", i)
			}
		}
	}
	for k := range p.logs.classes {
		blocks -= len(p.logs.classes[k].owners)
	}
	if blocks != 0 {
		t.Fatalf("%d more logs are used than there are", blocks)
	}
}
