package rules

import (
	"maps"
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

// searched is the same Set without the shortcut for entities of one rule.
func searched(s *Set) *Set {
	c := s.copied()
	for _, m := range []map[string]entity{c.tiers, c.clients} {
		for name, e := range maps.Clone(m) {
			p := *e.plan
			p.sole, e.plan = false, &p
			m[name] = e
		}
	}
	c.link()
	return c
}

// A tier or client of one rule has the limits that the search for any number of
// rules finds, whatever stands beside it.
func TestLawSoleRuleAsSearched(t *testing.T) {
	var asked model
	asked.ask()
	sole, beside := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		m := drawModel(t, asked)
		most := rapid.SampledFrom([]int{1, 1, 1, 2, 7})
		for _, lists := range []map[string][]modelRule{m.tiers, m.clients} {
			for _, name := range []string{"free", "default", "other", "a"} {
				if list := lists[name]; len(list) > 0 {
					lists[name] = list[:min(len(list), most.Draw(t, "rules at most"))]
				}
			}
		}
		s := m.parse(t)
		all := searched(s)
		for range 12 {
			req := drawRequest(t)
			var got, want Matches
			if err := s.Match(&req, &got); err != nil {
				t.Fatal(err)
			}
			if err := all.Match(&req, &want); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got.Winners, want.Winners) {
				t.Fatalf("%+v in\n%s\nhas the limits %+v, searched for %+v", req, s.LimitsJSON(), got.Winners, want.Winners)
			}
			client, tier, standard, _ := s.entitiesOf(&req, new([2]entity))
			n := 0
			for _, e := range []*entity{client, tier, standard} {
				if e != nil && e.sole {
					n++
				}
			}
			sole, beside = sole+min(n, 1), beside+n/2
		}
	})
	if sole == 0 || beside == 0 {
		t.Errorf("%d requests met a sole rule, %d two of them", sole, beside)
	}
}
