package rules

import (
	"testing"

	"github.com/ringlimit/ringlimit/limit"
)

// Matches that were used for several requests, as for a batch, let go of the rules of
// all, and of those that were beaten.
func TestForgetLetsGoOfAllRules(t *testing.T) {
	s := parse(t, levels)
	var m Matches
	for i, tier := range []string{"", "default", "any"} { // many winners first, one last
		req := limit.Request{Key: "k", Tier: tier, Route: "GET /v1/x", Cost: 1}
		if err := s.Match(&req, &m); err != nil {
			t.Fatal(err)
		}
		if i == 0 && len(m.Winners) < 2 {
			t.Fatalf("%d winners: the test tests nothing", len(m.Winners))
		}
	}
	m.Forget()
	for i, w := range m.Winners[:cap(m.Winners)] {
		if w.Rule != nil || w.Missing != "" || w.Counter != nil {
			t.Errorf("winner %d is kept: %+v", i, w)
		}
	}
	for i, r := range m.found[:cap(m.found)] {
		if r != nil {
			t.Errorf("rule %d that was found is kept: %s", i, r.name)
		}
	}
	for i, e := range m.own {
		if e.exists() {
			t.Errorf("entity %d is kept", i)
		}
	}
}
