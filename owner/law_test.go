package owner

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ringlimit/ringlimit/limit"
	"pgregory.net/rapid"
)

// model is the obvious table: nothing is ever dropped, packed or bounded.
type model struct {
	phase []Phase
	state map[string]modelled
}

type modelled struct {
	partition int
	rule      *limit.Rule
	limit.State
}

func (m *model) decide(now int64, c *Call) (limit.Verdict, error) {
	if m.phase[c.Partition] != Holding {
		return limit.Verdict{}, ErrNotHolder
	}
	s, ok := m.state[string(c.Counter)]
	if !ok {
		s = modelled{c.Partition, c.Rule, limit.State{}}
	}
	state := s.State
	state.Log = slices.Clone(state.Log)
	var v limit.Verdict
	switch {
	case s.rule.ID() == c.Rule.ID():
		c.Rule.Apply(&c.Charge, &state, &v, now)
	case c.Rule.ApplyCarried(s.rule, &c.Charge, &state, &v, now):
		s.rule = c.Rule
	}
	if ok || v.Allowed && c.Mode == limit.Take {
		m.state[string(c.Counter)] = modelled{c.Partition, s.rule, state}
	}
	return v, nil
}

// leave is a partition that goes to phase None.
func (m *model) leave(p int) {
	maps.DeleteFunc(m.state, func(_ string, s modelled) bool { return s.partition == p })
}

// rulesFor lists, for each algorithm, rules that one counter may be under in turn.
func rulesFor(t testing.TB) [][]*limit.Rule {
	specs := [][]limit.Spec{
		{{Algorithm: limit.TokenBucket, Limit: 10, Window: time.Second, Burst: 3}, {Algorithm: limit.TokenBucket, Limit: 7, Window: time.Second}},
		{{Algorithm: limit.LeakyBucket, Limit: 5, Window: time.Second, Burst: 4}, {Algorithm: limit.LeakyBucket, Limit: 5, Window: time.Second, Burst: 9}},
		{per(5, time.Second, limit.FixedWindow), per(8, 3*time.Second, limit.FixedWindow), per(0, time.Second, limit.FixedWindow)},
		{per(5, time.Second, limit.SlidingWindowLog), per(7, time.Second, limit.SlidingWindowLog), per(40, 2*time.Second, limit.SlidingWindowLog), per(3, time.Second, limit.SlidingWindowLog)},
		{per(6, time.Second, limit.SlidingWindowCounter), per(20, 2*time.Second, limit.SlidingWindowCounter)},
	}
	rules := make([][]*limit.Rule, len(specs))
	for i := range specs {
		for _, s := range specs[i] {
			rules[i] = append(rules[i], mustRule(t, s))
		}
	}
	return rules
}

// judge compares an answer of the table with the model's. A counter may be
// refused for want of memory only where losing it loses nothing: it would be
// new, and was not counted.
func (m *model) judge(t *rapid.T, now int64, c *Call, got limit.Verdict, err error) {
	before, existed := m.state[string(c.Counter)]
	fresh := !existed || before.rule.FreshAt(before.State) <= now
	before.Log = slices.Clone(before.Log)
	want, wantErr := m.decide(now, c)
	if err == ErrFull && fresh && c.Mode == limit.Take && want.Allowed {
		m.state[string(c.Counter)] = before
		if !existed {
			delete(m.state, string(c.Counter))
		}
		return
	}
	if got != want || err != wantErr {
		t.Fatalf("%q %+v: %+v, %v; want %+v, %v", c.Counter, c.Charge, got, err, want, wantErr)
	}
}

// list compares what the table lists with the model.
func (m *model) list(t *rapid.T, tab *Table, now int64) {
	listed := map[string]bool{}
	for p := range tab.partitions {
		tab.Each(p, func(name []byte, r *limit.Rule, s limit.State) bool {
			want, ok := m.state[string(name)]
			if !ok || listed[string(name)] {
				t.Fatalf("%q is listed, but is not there or was listed before", name)
			}
			listed[string(name)] = true
			if want.partition != p || want.rule.ID() != r.ID() || !equal(s, want.State, r) {
				t.Fatalf("%q is listed as %+v; want %+v", name, s, want)
			}
			return true
		})
	}
	for name, s := range m.state {
		if !listed[name] && s.rule.FreshAt(s.State) > now {
			t.Fatalf("%q is lost", name)
		}
	}
}

// equal compares what states say, not where in its ring a log begins.
func equal(a, b limit.State, r *limit.Rule) bool {
	if r.Algorithm != limit.SlidingWindowLog {
		return a.A == b.A && a.B == b.B && a.C == b.C
	}
	return a.A == b.A && slices.Equal(stamps(a), stamps(b))
}

func stamps(s limit.State) (list []limit.Stamp) {
	for i := range s.C {
		list = append(list, s.Log[(s.B+i)%int64(len(s.Log))])
	}
	return list
}

// move hands a partition over to the table that had it, which has forgotten it
// meanwhile, or goes on with it and merges what it has given.
func (m *model) move(t *rapid.T, tab *Table, now int64) {
	p := rapid.IntRange(0, 1).Draw(t, "partition")
	if !tab.Freeze(p) {
		t.Skip("not held")
	}
	entries := exported(t, tab, p, now, rapid.IntRange(1, 300).Draw(t, "chunk"))
	counters, names := tab.Size(p)
	goesOn := rapid.Bool().Draw(t, "goes on")
	if goesOn {
		tab.Thaw(p)
	} else {
		tab.SetPhase(p, None)
		tab.SetPhase(p, Acquiring)
		tab.Expect(p, counters*rapid.IntRange(0, 2).Draw(t, "half of it expected")/2, names)
	}
	again := entries[:rapid.IntRange(0, len(entries)).Draw(t, "again")]
	if rapid.Bool().Draw(t, "in disorder") {
		entries = slices.Clone(entries)
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		rng.Shuffle(len(entries), func(i, k int) { entries[i], entries[k] = entries[k], entries[i] })
	}
	imported(t, tab, p, now, entries)
	imported(t, tab, p, now, again)
	tab.SetPhase(p, Holding)
	for name, s := range m.state {
		if s.partition == p && s.rule.FreshAt(s.State) > now {
			own := s.State
			if s.State = s.rule.Receive(s.rule.Ship(own, now), now); goesOn {
				s.State = s.rule.Merge(own, s.State, now)
			}
			m.state[name] = s
		}
	}
}

// copying is an export that goes on while all else does.
type copying struct {
	partition int
	from      Cursor
	seen      map[string]int
	owed      []string // counters that were there when it began, and never equal fresh ones
}

func stays(i int) string { return fmt.Sprint("stays ", i) }

// copy begins an export or goes on with it. Each counter that is there all the while
// has to come exactly once.
func (m *model) copy(t *rapid.T, tab *Table, now int64, c *copying) *copying {
	if c == nil {
		c = &copying{partition: rapid.IntRange(0, 1).Draw(t, "partition"), seen: map[string]int{}}
		for name, s := range m.state {
			if s.partition == c.partition && strings.HasPrefix(name, "stays") {
				c.owed = append(c.owed, name)
			}
		}
	}
	entries, next, done := tab.Export(c.partition, now, c.from, rapid.IntRange(1, 100).Draw(t, "most"))
	for _, e := range entries {
		c.seen[string(e.Name)]++
	}
	if c.from = next; !done {
		return c
	}
	for _, name := range c.owed {
		if c.seen[name] != 1 {
			t.Fatalf("%q was exported %d times", name, c.seen[name])
		}
	}
	return nil
}

// Law: whatever is swept, compacted, grown, shrunk, moved and refused, the table's
// verdicts are those of a map that drops nothing.
func TestTableEqualsMap(t *testing.T) {
	rules := rulesFor(t)
	forever := mustRule(t, per(5, 10_000*time.Hour, limit.FixedWindow))
	rapid.Check(t, func(t *rapid.T) {
		memory := rapid.SampledFrom([]int64{6 << 10, 20 << 10, 1 << 30}).Draw(t, "memory")
		tab := holding(Config{Partitions: 2, Memory: memory})
		tab.large = rapid.SampledFrom([]int{32, 64, segmentCounters}).Draw(t, "large")
		m := &model{phase: []Phase{Holding, Holding}, state: map[string]modelled{}}
		now := start
		var copied *copying
		keys := rapid.SampledFrom([]int{5, 40, 400}).Draw(t, "keys")
		call := func() *Call {
			i := rapid.IntRange(0, keys-1).Draw(t, "key")
			c := on(tab, key(i), rapid.SampledFrom(rules[i%len(rules)]).Draw(t, "rule"))
			c.Cost = rapid.SampledFrom([]int64{1, 1, 1, 1, 1, 2, 4, 9}).Draw(t, "cost")
			c.Mode = rapid.SampledFrom([]limit.Mode{limit.Take, limit.Take, limit.Take, limit.Peek, limit.Refund}).Draw(t, "mode")
			return c
		}
		t.Repeat(map[string]func(*rapid.T){
			"decide": func(t *rapid.T) {
				for range rapid.IntRange(1, 200).Draw(t, "calls") {
					now += rapid.Int64Range(0, int64(20*time.Millisecond)).Draw(t, "ns")
					c := call()
					got, err := answer(tab, now, c)
					m.judge(t, now, c, got, err)
				}
			},
			"frame": func(t *rapid.T) {
				calls := make([]Call, rapid.IntRange(0, 40).Draw(t, "calls"))
				for i := range calls {
					calls[i] = *call()
				}
				results := make([]Result, len(calls))
				tab.DecideFrame(now, calls, results)
				for i := range calls {
					m.judge(t, now, &calls[i], results[i].Verdict, results[i].Err)
				}
			},
			"groups": func(t *rapid.T) {
				calls := m.groups(t, call)
				results := make([]Result, len(calls))
				tab.DecideFrame(now, calls, results)
				for i, end := 0, 0; i < len(calls); i = end {
					end = GroupEnd(calls, i)
					m.judgeGroup(t, now, calls[i:end], results[i:end])
				}
			},
			"wait": func(t *rapid.T) {
				now += rapid.Int64Range(0, int64(2*time.Second)).Draw(t, "ns")
			},
			"sweep": func(t *rapid.T) { tab.Sweep(now, rapid.IntRange(1, 2).Draw(t, "partitions")) },
			"stay": func(t *rapid.T) {
				first := rapid.IntRange(0, 300).Draw(t, "first")
				for i := range rapid.IntRange(1, 100).Draw(t, "calls") {
					c := on(tab, stays(first+i), forever)
					got, err := answer(tab, now, c)
					m.judge(t, now, c, got, err)
				}
			},
			"move": func(t *rapid.T) { m.move(t, tab, now) },
			"copy": func(t *rapid.T) { copied = m.copy(t, tab, now, copied) },
			"list": func(t *rapid.T) { m.list(t, tab, now) },
			"phase": func(t *rapid.T) {
				p := rapid.IntRange(0, 1).Draw(t, "partition")
				ph := rapid.SampledFrom([]Phase{Holding, Holding, Holding, Released, Acquiring, None}).Draw(t, "phase")
				tab.SetPhase(p, ph)
				m.phase[p] = ph
				if ph == None {
					copied = nil
					m.leave(p)
				}
			},
			"": func(t *rapid.T) { check(t, tab) },
		})
	})
}
