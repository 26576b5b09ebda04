package owner

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ringlimit/ringlimit/limit"
)

var algorithms = []limit.Algorithm{
	limit.TokenBucket, limit.LeakyBucket, limit.FixedWindow, limit.SlidingWindowLog, limit.SlidingWindowCounter,
}

// decide fails the test on an error.
func decide(t testing.TB, tab *Table, now int64, c *Call) limit.Verdict {
	t.Helper()
	v, err := answer(tab, now, c)
	if err != nil {
		t.Fatalf("%q: %v", c.Counter, err)
	}
	return v
}

func with(c *Call, mode limit.Mode, cost int64) *Call {
	c.Mode, c.Cost = mode, cost
	return c
}

func TestDecideOnlyWhileHolding(t *testing.T) {
	tab := NewTable(Config{Partitions: 1})
	c := on(tab, "a", mustRule(t, per(5, time.Minute, limit.FixedWindow)))
	for _, ph := range []Phase{None, Acquiring, Released, Holding} {
		tab.SetPhase(0, ph)
		if tab.Phase(0) != ph {
			t.Fatalf("phase is %v; want %v", tab.Phase(0), ph)
		}
		for _, mode := range []limit.Mode{limit.Take, limit.Peek, limit.Refund} {
			_, err := answer(tab, start, with(c, mode, 1))
			results := make([]Result, 1)
			tab.DecideFrame(start, []Call{*c}, results)
			if want := ph != Holding; (err == ErrNotHolder) != want || (results[0].Err == ErrNotHolder) != want {
				t.Errorf("mode %d in phase %v: %v and in a frame %v", mode, ph, err, results[0].Err)
			}
		}
	}
	c.Partition = 1
	if _, err := answer(tab, start, c); err != ErrNotHolder {
		t.Errorf("in a partition that does not exist: %v", err)
	}
}

func TestPhaseNoneDropsCounters(t *testing.T) {
	tab := holding(Config{Partitions: 1})
	for i := range 3000 {
		decide(t, tab, start, on(tab, key(i), mustRule(t, per(5, time.Minute, algorithms[i%5]))))
	}
	tab.SetPhase(0, Released) // keeps its frozen copy
	if s := tab.Stats(); s.Counters != 3000 || s.Holding != 0 {
		t.Fatalf("released: %+v", s)
	}
	tab.SetPhase(0, None)
	if s := tab.Stats(); s.Counters != 0 || s.Bytes != 0 || s.Dropped != 0 {
		t.Fatalf("none: %+v", s)
	}
	tab.SetPhase(0, Holding)
	if v := decide(t, tab, start, on(tab, key(0), mustRule(t, per(5, time.Minute, limit.FixedWindow)))); v.Remaining != 4 {
		t.Errorf("remaining %d; want 4 of a fresh counter", v.Remaining)
	}
	check(t, tab)
}

// Case A1: to look at an unseen counter creates none; nor does a refund, nor a
// Take that is denied.
func TestUnseenCounters(t *testing.T) {
	for _, a := range algorithms {
		t.Run(a.String(), func(t *testing.T) {
			tab := holding(Config{Partitions: 4})
			rule := mustRule(t, per(5, time.Hour, a))
			most := rule.Capacity()
			if v := decide(t, tab, start, with(on(tab, "a", rule), limit.Peek, 1)); !v.Allowed || v.Remaining != most {
				t.Errorf("peek: %+v", v)
			}
			if v := decide(t, tab, start, with(on(tab, "a", rule), limit.Refund, 1)); v.Remaining != most {
				t.Errorf("refund: %+v", v)
			}
			if v := decide(t, tab, start, with(on(tab, "a", rule), limit.Take, most+1)); v.Allowed || v.Reason != limit.CostExceedsLimit {
				t.Errorf("a cost above the limit: %+v", v)
			}
			if v := decide(t, tab, start, on(tab, "a", mustRule(t, per(0, time.Hour, a)))); v.Allowed {
				t.Errorf("limit 0: %+v", v)
			}
			if s := tab.Stats(); s.Counters != 0 || s.Bytes != 0 {
				t.Errorf("counters came to be: %+v", s)
			}
			decide(t, tab, start, on(tab, "a", rule))
			for range 100 {
				if v := decide(t, tab, start, with(on(tab, "a", rule), limit.Peek, 1)); v.Remaining != most-1 {
					t.Fatalf("peek after a take: %+v", v)
				}
			}
			check(t, tab)
		})
	}
}

// Case G49: the same counter twice in one frame is charged in order, however
// far apart the calls stand.
func TestFrameChargesInOrder(t *testing.T) {
	tab := holding(Config{Partitions: 64})
	rule := mustRule(t, per(100, time.Minute, limit.FixedWindow))
	var calls []Call
	for i := range 40 {
		calls = append(calls, *on(tab, "twice", rule), *on(tab, key(i), rule))
	}
	calls = append(calls, Call{Partition: 64, Charge: calls[0].Charge}, Call{Partition: -1, Charge: calls[0].Charge})
	results := make([]Result, len(calls))
	tab.DecideFrame(start, calls, results)
	for i := range 40 {
		if r := results[2*i]; r.Err != nil || r.Verdict.Remaining != int64(99-i) {
			t.Fatalf("charge %d: %+v", i, r)
		}
		if r := results[2*i+1]; r.Err != nil || r.Verdict.Remaining != 99 {
			t.Fatalf("the counter beside it: %+v", r)
		}
	}
	if results[80].Err != ErrNotHolder || results[81].Err != ErrNotHolder {
		t.Errorf("partitions that do not exist: %+v", results[80:])
	}
}

// Cases E35 and E37: a raised limit is seen at the next check, and what was
// used stays used.
func TestRuleChanges(t *testing.T) {
	for _, a := range []limit.Algorithm{limit.FixedWindow, limit.SlidingWindowLog, limit.SlidingWindowCounter, limit.TokenBucket} {
		t.Run(a.String(), func(t *testing.T) {
			tab := holding(Config{Partitions: 1})
			old, raised := mustRule(t, per(5, 1000*time.Hour, a)), mustRule(t, per(7, 1000*time.Hour, a))
			now := start
			for range 5 {
				now++
				if v := decide(t, tab, now, on(tab, "a", old)); !v.Allowed {
					t.Fatalf("%+v", v)
				}
			}
			if v := decide(t, tab, now, with(on(tab, "a", raised), limit.Peek, 1)); v.Limit != 7 || v.Remaining != 2 {
				t.Errorf("a peek under the new rule: %+v", v)
			}
			if v := decide(t, tab, now, on(tab, "a", old)); v.Allowed || v.Limit != 5 {
				t.Errorf("a peek changed the counter's rule: %+v", v)
			}
			for want := int64(1); want >= 0; want-- {
				now++
				if v := decide(t, tab, now, on(tab, "a", raised)); !v.Allowed || v.Remaining != want {
					t.Errorf("under the new rule: %+v; want %d left", v, want)
				}
			}
			if v := decide(t, tab, now, on(tab, "a", raised)); v.Allowed {
				t.Errorf("the eighth: %+v", v)
			}
			check(t, tab)
		})
	}
}

// The same content under another pointer, as after a rule file was read again,
// is no change.
func TestSameRuleReadAgain(t *testing.T) {
	tab := holding(Config{Partitions: 1})
	for i := range 5 {
		c := on(tab, "a", mustRule(t, per(5, time.Minute, limit.SlidingWindowLog)))
		if v := decide(t, tab, start, c); v.Remaining != int64(4-i) {
			t.Fatalf("%+v", v)
		}
	}
	if n := len(tab.rules.current.Load().numbers); n != 1 {
		t.Errorf("%d rules are known; want 1", n)
	}
}

func TestLearn(t *testing.T) {
	tab := NewTable(Config{Partitions: 1})
	r := mustRule(t, per(5, time.Minute, limit.FixedWindow))
	if tab.Rule(r.ID()) != nil {
		t.Error("an unknown rule is known")
	}
	tab.Learn(r)
	tab.Learn(mustRule(t, r.Spec))
	if tab.Rule(r.ID()) != r {
		t.Error("a rule that was learned is not the one that is found")
	}
}

// Counters with one Lo, as no two will have, stay apart and are each listed once.
func TestEachAcrossChunks(t *testing.T) {
	tab := holding(Config{Partitions: 1})
	rule := mustRule(t, per(5, time.Hour, limit.SlidingWindowLog))
	var want []string
	for i := range 3*eachSlots + 7 {
		c := on(tab, key(i), rule)
		c.ID = ID{Hi: uint64(i), Lo: uint64(i / 600)}
		decide(t, tab, start+int64(i), c)
		want = append(want, fmt.Sprint(key(i), start+int64(i)))
	}
	var got []string
	tab.Each(0, func(name []byte, r *limit.Rule, s limit.State) bool {
		got = append(got, fmt.Sprint(string(name), s.Log[s.B].At))
		return r == rule
	})
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%d counters are listed; want %d", len(got), len(want))
	}
	if n := tab.Sweep(start, 1); n != 0 { // and the sweep comes to an end
		t.Errorf("%d counters dropped", n)
	}
	calls := 0
	tab.Each(0, func([]byte, *limit.Rule, limit.State) bool { calls++; return calls < 3 })
	if calls != 3 {
		t.Errorf("Each went on after false: %d calls", calls)
	}
}

// A name is kept to the last byte, whatever is in it.
func TestNamesAreExact(t *testing.T) {
	tab := holding(Config{Partitions: 1})
	rule := mustRule(t, per(5, time.Hour, limit.FixedWindow))
	names := []string{"", "\x00", "\x01a\x03b_c", "\x03a_b\x01c", "line\r\nend", strings.Repeat("é", 6000)}
	for _, n := range names {
		decide(t, tab, start, on(tab, n, rule))
	}
	var got []string
	tab.Each(0, func(name []byte, _ *limit.Rule, _ limit.State) bool { got = append(got, string(name)); return true })
	slices.Sort(got)
	slices.Sort(names)
	if !slices.Equal(got, names) {
		t.Errorf("listed %q; want %q", got, names)
	}
}

func TestDecideAllocatesNothing(t *testing.T) {
	for _, a := range algorithms {
		tab := holding(Config{Partitions: 4})
		rule := mustRule(t, per(100_000, time.Hour, a))
		c, now := on(tab, "a", rule), start
		for range 1100 { // the log has room for 2,000 then
			now++
			decide(t, tab, now, c)
		}
		calls, results := []Call{*c, *c, *c}, make([]Result, 3)
		if n := testing.AllocsPerRun(100, func() {
			now++
			decide(t, tab, now, c)
			tab.DecideFrame(now, calls, results)
		}); n != 0 {
			t.Errorf("%v: %v allocations", a, n)
		}
	}
}
