package owner

import (
	"sync"
	"testing"
	"time"

	"github.com/ringlimit/ringlimit/limit"
)

func newRegistry(bound int) *registry {
	g := new(registry)
	g.init()
	g.bound = bound
	return g
}

func numbered(t testing.TB, n int64) *limit.Rule {
	return mustRule(t, per(n, time.Second, limit.FixedWindow))
}

func TestRegistrySameContentSameNumber(t *testing.T) {
	g := newRegistry(10)
	a, b := numbered(t, 1), numbered(t, 1)
	b.Name = "another name"
	if n, m := g.acquire(a), g.acquire(b); n != m || g.at(n) != a {
		t.Errorf("numbers %d and %d for rules with the same content", n, m)
	}
	if g.find(numbered(t, 2).ID()) != nil {
		t.Error("a rule is found that was never learned")
	}
}

// Rules that no counter uses are forgotten when there are too many; others keep
// their number.
func TestRegistryForgets(t *testing.T) {
	g := newRegistry(4)
	used := g.acquire(numbered(t, 1))
	dropped := g.acquire(numbered(t, 2))
	g.release(dropped)
	g.learn(numbered(t, 3))
	g.learn(numbered(t, 4))
	if g.find(numbered(t, 2).ID()) == nil {
		t.Fatal("a rule was forgotten though there was room")
	}
	n := g.acquire(numbered(t, 5))
	if g.find(numbered(t, 2).ID()) != nil || g.find(numbered(t, 3).ID()) != nil {
		t.Error("rules that no counter uses are still there")
	}
	if g.at(used).Limit != 1 || g.at(n).Limit != 5 || n == used {
		t.Errorf("number %d is %v, number %d is %v", used, g.at(used), n, g.at(n))
	}
	if m := g.acquire(numbered(t, 2)); g.at(m).Limit != 2 || m == used || m == n {
		t.Errorf("a forgotten rule comes back as number %d", m)
	}
}

// Who still sees the rule in an old set cannot take a reference to it any more:
// the number may be another rule's by now.
func TestRegistryForgottenIsNotRevived(t *testing.T) {
	g := newRegistry(2)
	n := g.acquire(numbered(t, 1))
	if old := g.current.Load().entries[n]; !old.retain() {
		t.Error("a rule in use refuses a reference")
	}
	g.release(n)
	g.release(n)
	old := g.current.Load().entries[n]
	g.learn(numbered(t, 2))
	g.learn(numbered(t, 3))
	if g.find(numbered(t, 1).ID()) != nil || old.retain() {
		t.Error("a rule that was forgotten takes a reference")
	}
}

// A rule is forgotten only where nobody has just taken a reference.
func TestRegistryAcquireWhileForgetting(t *testing.T) {
	g := newRegistry(3)
	rules := make([]*limit.Rule, 8)
	for i := range rules {
		rules[i] = numbered(t, int64(i+1))
	}
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range 2000 {
				r := rules[(i*(w+1)+w)%len(rules)]
				n := g.acquire(r)
				if got := g.at(n); got.ID() != r.ID() {
					t.Errorf("number %d of rule %d is rule %d", n, r.Limit, got.Limit)
				}
				g.release(n)
				g.mu.Lock()
				g.bound = 3
				g.mu.Unlock()
			}
		})
	}
	wg.Wait()
	if n := len(g.current.Load().entries); n > 1+len(rules) {
		t.Errorf("%d numbers for %d rules", n, len(rules))
	}
}

// Many rules are learnt for the cost of one, also into the room of forgotten ones.
func TestRegistryLearnsManyAtOnce(t *testing.T) {
	g := newRegistry(unusedRules)
	many := func(from int64) (rules []*limit.Rule) {
		for i := range int64(100) {
			rules = append(rules, numbered(t, from+i))
		}
		return append(rules, rules[0])
	}
	first := many(1)
	g.learn(first...)
	used := g.acquire(numbered(t, 50))
	g.bound = 100
	second := many(1000)
	before := g.current.Load()
	g.learn(second...)
	if g.current.Load() == before || before.numbers[second[0].ID()] != 0 {
		t.Fatal("the ruleset that readers have was changed")
	}
	for _, r := range second {
		if g.find(r.ID()) == nil {
			t.Errorf("rule %d was not learnt", r.Limit)
		}
	}
	if g.at(used).Limit != 50 || g.find(first[0].ID()) != nil {
		t.Errorf("number %d is %v; the first one is known: %v", used, g.at(used), g.find(first[0].ID()) != nil)
	}
	set := g.current.Load()
	if len(set.numbers) != 101 || len(set.entries) != 102 {
		t.Errorf("%d rules under %d numbers", len(set.numbers), len(set.entries)-1)
	}
	for id, n := range set.numbers {
		if set.entries[n].rule.ID() != id {
			t.Errorf("number %d is another rule", n)
		}
	}
	published := set
	if g.learn(second...); g.current.Load() != published {
		t.Error("what is known already was learnt again")
	}
}

// BenchmarkLearn is 10,000 rules that come together; ratio is what one of them costs
// against one that comes alone into a list of as many.
func BenchmarkLearn(b *testing.B) {
	rules := make([]*limit.Rule, 10_001)
	for i := range rules {
		rules[i] = numbered(b, int64(i+1))
	}
	var together, alone time.Duration
	for b.Loop() {
		g := newRegistry(unusedRules)
		began := time.Now()
		g.learn(rules[1:]...)
		together += time.Since(began)
		began = time.Now()
		g.learn(rules[0])
		alone += time.Since(began)
	}
	b.ReportMetric(float64(together.Microseconds())/float64(b.N), "µs/10,000")
	b.ReportMetric(float64(alone.Microseconds())/float64(b.N), "µs/one")
	b.ReportMetric(float64(together)/10_000/float64(alone), "ratio")
}
