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
