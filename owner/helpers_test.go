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
		checkDirectory(t, p)
		for seg := range p.directory().all() {
			checkSlots(t, &seg.slots)
			checkNames(t, seg)
			for k := range seg.slots.at {
				if n := seg.slots.at[k].rule; n != 0 {
					refs[n]++
				}
			}
		}
		checkLogs(t, tab, p)
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

// checkDirectory sees that the segments cover all IDs, one after the other, and
// that each counter is in its own.
func checkDirectory(t fataler, p *partition) {
	t.Helper()
	used, low, d := 0, uint64(0), p.directory()
	for s := range d.all() {
		if s.low != low {
			t.Fatalf("a segment begins at %x; want %x", s.low, low)
		}
		for i := range len(d) >> s.slots.depth {
			if d[d.index(low)+i].Load() != s {
				t.Fatalf("an entry of the segment from %x on leads elsewhere", low)
			}
		}
		for i := range s.slots.at {
			if c := &s.slots.at[i]; c.rule != 0 && d.of(c.id.Lo) != s {
				t.Fatalf("a counter of %x is in the segment from %x on", c.id.Lo, s.low)
			}
		}
		used += s.slots.used
		low, _ = s.end()
	}
	if low != 0 || used != p.used {
		t.Fatalf("the segments end at %x and have %d counters; %d are counted", low, used, p.used)
	}
}

func checkNames(t fataler, seg *segment) {
	t.Helper()
	live := 0
	for i := range seg.slots.at {
		if s := &seg.slots.at[i]; s.rule != 0 {
			name := seg.names.at(s.name)
			if id := Seed(7).ID(name); id != s.id {
				t.Fatalf("the counter at %d has the name of another, %q", i, name)
			}
			live += nameSize(name)
		}
	}
	if got := seg.names.live(); got != live {
		t.Fatalf("%d bytes of names are counted as used, %d are", got, live)
	}
}

func checkLogs(t fataler, tab *Table, p *partition) {
	t.Helper()
	blocks := 0
	p.walk(0, func(_ *segment, s *slot) bool {
		if b := logOf(s, tab.rules.at(s.rule)); b != 0 {
			blocks++
			if owner := *p.logs.classes[b.class()].owner(b.class(), b.index()); owner != s.id {
				t.Fatalf("the log of %v belongs to another", s.id)
			}
		}
		return true
	})
	for k := range p.logs.classes {
		blocks -= p.logs.classes[k].blocks
	}
	if blocks != 0 {
		t.Fatalf("%d more logs are used than there are", blocks)
	}
}
