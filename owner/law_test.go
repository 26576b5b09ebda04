package owner

import (
	"maps"
	"slices"
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
	if s.rule.ID() != c.Rule.ID() {
		state = c.Rule.Carry(s.rule, state, now)
	}
	var v limit.Verdict
	switch c.Mode {
	case limit.Peek:
		return c.Rule.Peek(state, now, c.Cost), nil
	case limit.Refund:
		state, v = c.Rule.Refund(state, now, c.Cost)
	default:
		state, v = c.Rule.Take(state, now, c.Cost)
	}
	m.state[string(c.Counter)] = modelled{c.Partition, c.Rule, state}
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

// Law: whatever is swept, compacted, grown and shrunk, the table's verdicts are
// those of a map that drops nothing.
func TestTableEqualsMap(t *testing.T) {
	rules := rulesFor(t)
	rapid.Check(t, func(t *rapid.T) {
		tab := holding(Config{Partitions: 2})
		m := &model{phase: []Phase{Holding, Holding}, state: map[string]modelled{}}
		now := start
		keys := rapid.SampledFrom([]int{3, 40, 400}).Draw(t, "keys")
		call := func() *Call {
			i := rapid.IntRange(0, keys-1).Draw(t, "key")
			c := on(tab, key(i), rapid.SampledFrom(rules[i%len(rules)]).Draw(t, "rule"))
			c.Cost = rapid.Int64Range(1, 4).Draw(t, "cost")
			c.Mode = rapid.SampledFrom([]limit.Mode{limit.Take, limit.Take, limit.Take, limit.Peek, limit.Refund}).Draw(t, "mode")
			return c
		}
		t.Repeat(map[string]func(*rapid.T){
			"decide": func(t *rapid.T) {
				for range rapid.IntRange(1, 50).Draw(t, "calls") {
					c := call()
					got, err := tab.Decide(now, c)
					want, wantErr := m.decide(now, c)
					if got != want || err != wantErr {
						t.Fatalf("%q %+v: %+v, %v; want %+v, %v", c.Counter, c.Charge, got, err, want, wantErr)
					}
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
					want, err := m.decide(now, &calls[i])
					if results[i] != (Result{want, err}) {
						t.Fatalf("call %d: %+v; want %+v, %v", i, results[i], want, err)
					}
				}
			},
			"wait": func(t *rapid.T) {
				now += rapid.Int64Range(0, int64(2*time.Second)).Draw(t, "ns")
			},
			"sweep": func(t *rapid.T) { tab.Sweep(now, rapid.IntRange(1, 2).Draw(t, "partitions")) },
			"phase": func(t *rapid.T) {
				p := rapid.IntRange(0, 1).Draw(t, "partition")
				ph := rapid.SampledFrom([]Phase{Holding, Holding, Holding, Released, Acquiring, None}).Draw(t, "phase")
				tab.SetPhase(p, ph)
				m.phase[p] = ph
				if ph == None {
					m.leave(p)
				}
			},
			"": func(t *rapid.T) { check(t, tab) },
		})
	})
}
