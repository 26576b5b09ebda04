package owner

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ringlimit/ringlimit/limit"
)

// When the memory is full of live counters, new ones are refused and existing
// ones go on: a spray of keys cannot flush a victim's counter.
func TestFullRefusesOnlyNewCounters(t *testing.T) {
	tab := holding(Config{Partitions: 4, Memory: 64 << 10})
	rule := mustRule(t, per(3, time.Hour, limit.FixedWindow))
	victim := on(tab, "victim", rule)
	decide(t, tab, start, victim)
	refused := 0
	for i := range 5000 {
		if _, err := answer(tab, start, on(tab, key(i), rule)); err == ErrFull {
			refused++
		} else if err != nil {
			t.Fatal(err)
		}
	}
	s := tab.Stats()
	if s.Refused != int64(refused) || s.Counters != int64(5001-refused) || refused < 1000 || s.Counters < 500 || s.Bytes > 64<<10 {
		t.Fatalf("%d refused, %+v", refused, s)
	}
	if v := decide(t, tab, start, victim); v.Remaining != 1 {
		t.Errorf("the victim: %+v", v)
	}
	// To look at, or to give back to, a counter that is not there needs no memory.
	for _, mode := range []limit.Mode{limit.Peek, limit.Refund} {
		if v := decide(t, tab, start, with(on(tab, "another", rule), mode, 1)); v.Remaining != 3 {
			t.Errorf("mode %d: %+v", mode, v)
		}
	}
	if v := decide(t, tab, start, with(on(tab, "another", rule), limit.Take, 4)); v.Allowed {
		t.Errorf("a denied take: %+v", v)
	}
	check(t, tab)
}

// Counters that equal fresh ones make room at once, in the partition at hand.
func TestFullDropsFreshFirst(t *testing.T) {
	tab := holding(Config{Partitions: 1, Memory: 64 << 10})
	rule := mustRule(t, per(3, time.Minute, limit.SlidingWindowLog))
	fill := func(now int64, prefix string) (created int) {
		for i := range 5000 {
			if _, err := answer(tab, now, on(tab, prefix+key(i), rule)); err == nil {
				created++
			}
		}
		return created
	}
	first := fill(start, "a")
	if n := fill(start+int64(time.Minute)-1, "b"); n != 0 {
		t.Errorf("%d counters were created while the old ones still counted", n)
	}
	if second := fill(start+int64(2*time.Minute), "c"); second < first*9/10 {
		t.Errorf("%d counters were created in place of %d that had become fresh", second, first)
	}
	check(t, tab)
}

// A flood of new keys must not pay for a search each: after one in vain there
// is none for a while.
func TestFullSearchesNowAndThen(t *testing.T) {
	tab := holding(Config{Partitions: 1, Memory: 16 << 10})
	rule := mustRule(t, per(3, time.Minute, limit.SlidingWindowLog))
	for i := range 1000 {
		answer(tab, start, on(tab, key(i), rule))
	}
	fresh := start + int64(time.Minute)
	for _, step := range []struct {
		now  int64
		want error
	}{{fresh - 1, ErrFull}, {fresh, ErrFull}, {fresh - 2 + reclaimPause, ErrFull}, {fresh - 1 + reclaimPause, nil}} {
		if _, err := answer(tab, step.now, on(tab, "new", rule)); err != step.want {
			t.Errorf("%v after the counters became fresh: %v; want %v", time.Duration(step.now-fresh), err, step.want)
		}
	}
}

// A counter's log may outgrow the bound: to refuse would deny somebody who is
// within his limit. It is accounted for, and gone with the counter.
func TestExistingLogsGrowBeyondTheBound(t *testing.T) {
	tab := holding(Config{Partitions: 1, Memory: 8 << 10})
	rule := mustRule(t, per(1000, time.Minute, limit.SlidingWindowLog))
	c, now := on(tab, "a", rule), start
	for range 1000 {
		now++
		if v := decide(t, tab, now, c); !v.Allowed {
			t.Fatalf("%+v", v)
		}
	}
	check(t, tab)
	if s := tab.Stats(); s.Bytes < 16_000 {
		t.Errorf("%d bytes for a log of 1,000 stamps", s.Bytes)
	}
	if _, err := answer(tab, now, on(tab, "b", rule)); err != ErrFull {
		t.Errorf("a new counter beyond the bound: %v", err)
	}
	tab.Sweep(now+int64(time.Minute), 1)
	if s := tab.Stats(); s.Counters != 0 || s.Bytes != 0 || s.Dropped != 1 {
		t.Errorf("after the sweep: %+v", s)
	}
}

// Under churn, memory follows the counters that are alive: arrays shrink, text
// is compacted, blocks come back.
func TestChurnIsBounded(t *testing.T) {
	tab := holding(Config{Partitions: 2})
	rules := make([]*limit.Rule, len(algorithms))
	for i, a := range algorithms {
		rules[i] = mustRule(t, per(20, time.Second, a))
	}
	now, most := start, int64(0)
	round := func(r, clients int) {
		for i := range clients {
			c := on(tab, fmt.Sprint("round ", r, " client ", i, strings.Repeat(" ", i%50)), rules[i%len(rules)])
			for range i % 7 {
				now += 1000
				decide(t, tab, now, c)
			}
		}
		now += int64(2 * time.Second)
		tab.Sweep(now, len(tab.partitions))
	}
	for r := range 3 {
		round(r, 1000)
		most = max(most, tab.Stats().Bytes)
	}
	for r := range 12 {
		round(r, 1000)
		if got := tab.Stats().Bytes; got > most {
			t.Fatalf("round %d: %d bytes; %d were enough before", r, got, most)
		}
		check(t, tab)
	}
	round(99, 50)
	now += int64(2 * time.Second)
	tab.Sweep(now, len(tab.partitions))
	if s := tab.Stats(); s.Counters != 0 || s.Bytes != 0 {
		t.Fatalf("all are fresh, and %+v are left", s)
	}
}

// A few counters that stay must not keep the room of many that went.
func TestSweepShrinks(t *testing.T) {
	tab := holding(Config{Partitions: 1})
	short, long := mustRule(t, per(5, time.Second, limit.FixedWindow)), mustRule(t, per(5, 1000*time.Hour, limit.SlidingWindowLog))
	for i := range 20_000 {
		rule := short
		if i%100 == 0 {
			rule = long
		}
		decide(t, tab, start, on(tab, key(i), rule))
	}
	before := tab.Stats().Bytes
	tab.Sweep(start+int64(time.Second), 1)
	s := tab.Stats()
	if s.Counters != 200 || s.Dropped != 19_800 || s.Bytes*40 > before {
		t.Fatalf("%+v, of %d bytes before", s, before)
	}
	check(t, tab)
}

// The sweep does not exceed the bound when it makes one segment of two.
func TestSweepKeepsTheBound(t *testing.T) {
	rule := mustRule(t, per(5, time.Hour, limit.FixedWindow))
	for counters := 260; counters < segmentCounters/4; counters += 7 {
		tab := holding(Config{Partitions: 1})
		tab.large = 256
		for i := range counters {
			decide(t, tab, start, on(tab, key(i), rule))
		}
		tab.large = segmentCounters // all of them would fit into one
		tab.memory.max = tab.Stats().Bytes
		tab.Sweep(start, 1)
		if s := tab.Stats(); s.Bytes > tab.memory.max || s.Counters != int64(counters) {
			t.Errorf("%+v of %d bytes for %d counters", s, tab.memory.max, counters)
		}
		check(t, tab)
	}
}

// What was announced, and may never come, takes no room from a counter that is here.
func TestAnnouncedIsNotInTheWay(t *testing.T) {
	tab := holding(Config{Partitions: 1, Memory: 16 << 10})
	rule := mustRule(t, per(5, time.Hour, limit.FixedWindow))
	tab.Expect(0, 2000, 100_000)
	if v, err := answer(tab, start, on(tab, "a", rule)); err != nil || v.Remaining != 4 {
		t.Errorf("%+v, %v", v, err)
	}
	check(t, tab)
}

// Room that counters have left in one partition is there for those of another.
func TestPressedSweepGivesBack(t *testing.T) {
	for _, gone := range []int{4, 5} { // one of so many
		tab := holding(Config{Partitions: 2, Memory: 1 << 20})
		long, short := mustRule(t, per(5, time.Hour, limit.FixedWindow)), mustRule(t, per(5, time.Minute, limit.FixedWindow))
		for i, full := 0, false; !full; i++ {
			c := on(tab, key(i), long)
			if i%gone == 0 {
				c.Rule = short
			}
			c.Partition = 0
			_, err := answer(tab, start, c)
			if full = err == ErrFull; i > 50_000 {
				t.Fatalf("%+v: nobody is refused", tab.Stats())
			}
		}
		now := start + int64(time.Minute)
		tab.Sweep(now, 2)
		if s := tab.Stats(); s.Dropped < 1000 {
			t.Fatalf("%+v: this tests little", s)
		}
		for i := range 1000 {
			c := on(tab, "new"+key(i), long)
			c.Partition = 1
			if _, err := answer(tab, now, c); err != nil {
				t.Fatalf("one of %d counters has gone, and there is no room for %d; %+v", gone, i+1, tab.Stats())
			}
		}
		check(t, tab)
	}
}
