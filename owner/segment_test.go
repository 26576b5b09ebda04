package owner

import (
	"strings"
	"testing"
	"time"

	"github.com/ringlimit/ringlimit/limit"
)

// divide is a table of one partition whose counters are in many small segments.
func divide(t *testing.T, counters int) *Table {
	t.Helper()
	tab := holding(Config{Partitions: 1})
	tab.large = 32
	rule := mustRule(t, per(5, time.Hour, limit.FixedWindow))
	for i := range counters {
		decide(t, tab, start, on(tab, key(i), rule))
	}
	if n := len(tab.partitions[0].directory()); n < counters/64 {
		t.Fatalf("%d counters are in %d segments: this tests little", counters, n)
	}
	check(t, tab)
	return tab
}

// A chunk may end where a segment ends, and the next one begins behind it.
func TestExportFromSegmentToSegment(t *testing.T) {
	const counters = 500
	tab := divide(t, counters)
	for _, most := range []int{1, 7, 512} {
		seen, chunks := map[string]bool{}, 0
		for from, done := Cursor(0), false; !done; chunks++ {
			var entries []Entry
			if entries, from, done = tab.Export(0, start, from, most); len(entries) > most {
				t.Fatalf("%d entries; %d at most were wanted", len(entries), most)
			}
			for _, e := range entries {
				seen[string(e.Name)] = true
			}
		}
		if len(seen) != counters || chunks > counters/most+1 {
			t.Errorf("by %d: %d of %d counters in %d chunks", most, len(seen), counters, chunks)
		}
	}
	visited := 0
	tab.Each(0, func([]byte, *limit.Rule, limit.State) bool { visited++; return visited < 100 })
	if visited != 100 {
		t.Errorf("Each went on to %d counters after the hundredth", visited)
	}
}

// Each step of the sweep looks at one segment at most, and what is left of many
// becomes one.
func TestSweepFromSegmentToSegment(t *testing.T) {
	tab := divide(t, 500)
	stays := on(tab, "stays", mustRule(t, per(5, 2*time.Hour, limit.FixedWindow)))
	decide(t, tab, start, stays)
	p, steps, later := &tab.partitions[0], 0, start+int64(time.Hour)
	for from, more := uint64(0), true; more; steps++ {
		var n int
		if n, from, more = tab.sweepStep(p, later, from); n > 2*tab.large {
			t.Fatalf("%d counters were dropped in one step", n)
		}
	}
	if s := tab.Stats(); s.Counters != 1 || steps < 8 {
		t.Errorf("%+v after %d steps; want all but one dropped", s, steps)
	}
	if s := p.segment(0); s.slots.depth != 0 {
		t.Errorf("the last counter shares the range with other segments, of depth %d", s.slots.depth)
	}
	if v := decide(t, tab, later, stays); v.Remaining != 3 {
		t.Errorf("the one that stays: %+v", v)
	}
	check(t, tab)
}

// To split where nearly all counters agree in their leading bits would be of no
// use: such a segment grows instead.
func TestCrowdIsNotSplit(t *testing.T) {
	tab := holding(Config{Partitions: 1})
	tab.large = 32
	rule := mustRule(t, per(5, time.Hour, limit.FixedWindow))
	for i := range uint64(500) {
		c := on(tab, key(int(i)), rule)
		c.ID.Lo = i << 35
		decide(t, tab, start, c)
	}
	p := &tab.partitions[0]
	if n := len(p.directory()); n > 500 {
		t.Errorf("%d entries lead to 500 counters", n)
	}
	checkDirectory(t, p)
	for i := range uint64(500) {
		if _, found := p.find(ID{on(tab, key(int(i)), rule).ID.Hi, i << 35}); !found {
			t.Fatalf("counter %d is lost", i)
		}
	}
}

// A sweep that has made all as it should be leaves it so the next time, be there
// little memory or much.
func TestSweepMakesNothingTwice(t *testing.T) {
	rule := mustRule(t, per(5, time.Hour, limit.FixedWindow))
	for _, size := range []int{1, 15, 100} {
		tab := holding(Config{Partitions: 1})
		for i := range 1000 {
			decide(t, tab, start, on(tab, key(i)+strings.Repeat("x", size), rule))
			if i > 20 && i%9 > 0 {
				continue
			}
			for _, max := range []int64{DefaultMemory, tab.Stats().Bytes} {
				tab.memory.max = max
				tab.Sweep(start, 1)
				s := tab.partitions[0].segment(0)
				if tab.Sweep(start, 1); tab.partitions[0].segment(0) != s {
					t.Errorf("%d counters with names of %d bytes more are built anew by each sweep", i+1, size)
				}
			}
			tab.memory.max = DefaultMemory
		}
	}
}

// What was split for its long names is not merged for its few counters.
func TestLongNamesStayDivided(t *testing.T) {
	tab := holding(Config{Partitions: 1})
	rule := mustRule(t, per(5, time.Hour, limit.FixedWindow))
	for i := range 400 {
		decide(t, tab, start, on(tab, key(i)+strings.Repeat("x", 1000), rule))
	}
	p := &tab.partitions[0]
	for range 2 {
		tab.Sweep(start, 1)
		for s := range p.directory().all() {
			if text := s.names.live(); text > segmentText {
				t.Errorf("a segment has %d bytes of names", text)
			}
		}
	}
	tab.Sweep(start+int64(time.Hour), 1)
	check(t, tab)
}
