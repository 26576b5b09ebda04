package rules

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestSpecificityAfterChanges holds each Set of a row of changes to the model of what
// was then in force: what its entities share with others, and with those of earlier
// Sets, decides nothing. Few kinds of rules, so that much is shared.
func TestSpecificityAfterChanges(t *testing.T) {
	var asked model
	asked.ask()
	rapid.Check(t, func(t *rapid.T) {
		now := &asked
		now.tiers, now.clients, now.tierOf = map[string][]modelRule{}, map[string][]modelRule{}, map[string]string{}
		kinds := drawKinds(t)
		s := new(Set)
		type moment struct {
			m *model
			s *Set
		}
		var past []moment
		for range rapid.IntRange(1, 8).Draw(t, "changes") {
			now = now.copied()
			s = drawChange(t, now, kinds)(s)
			past = append(past, moment{now, s})
		}
		var found Matches
		for _, then := range past {
			for range 6 {
				req := drawRequest(t)
				if _, exists := then.m.tiers[req.Tier]; !exists {
					req.Tier = ""
				}
				if err := then.s.Match(&req, &found); err != nil {
					t.Fatal(err)
				}
				then.m.check(t, then.s, req, found.Winners)
			}
		}
	})
}

// drawKinds is lists of rules that differ in little: of those that differ, two in one
// thing alone.
func drawKinds(t *rapid.T) [][]modelRule {
	one := drawRules(t, "kind")
	kinds := [][]modelRule{one, drawRules(t, "other kind"), {}}
	for i := range one {
		near := slices.Clone(one)
		switch r := &near[i]; rapid.IntRange(0, 4).Draw(t, "differs in") {
		case 0:
			r.Priority = 1 - r.Priority
		case 1:
			r.Shadow = !r.Shadow && !r.Unlimited
		case 2:
			r.Pattern = rapid.SampledFrom(modelPatterns).Draw(t, "pattern")
		case 3:
			r.By = []string{"attribute x"}
		case 4:
			r.Name += "x"
		}
		kinds = append(kinds, near)
	}
	return kinds
}

func (m *model) copied() *model {
	c := *m
	c.tiers, c.clients, c.tierOf = maps.Clone(m.tiers), maps.Clone(m.clients), maps.Clone(m.tierOf)
	return &c
}

// drawChange changes the model, and returns what makes the same change of a Set: one
// that is refused to its writer is made as if another node had accepted it.
func drawChange(t *rapid.T, m *model, kinds [][]modelRule) func(*Set) *Set {
	changes := map[EntityName][]byte{}
	for range rapid.IntRange(1, 4).Draw(t, "at once") {
		name := rapid.SampledFrom([]EntityName{
			{TierEntity, DefaultTier}, {TierEntity, "free"}, {TierEntity, "other"},
			{ClientEntity, "a"}, {ClientEntity, "b"}, {ClientEntity, "c"},
		}).Draw(t, "entity")
		if rapid.IntRange(0, 4).Draw(t, "delete") == 0 {
			changes[name] = nil
			m.delete(name)
			continue
		}
		tier := ""
		if name.Kind == ClientEntity {
			tier = rapid.SampledFrom([]string{"", "free", "other"}).Draw(t, "tier")
		}
		changes[name] = m.put(name, tier, drawLimits(t, name, rapid.SampledFrom(kinds).Draw(t, "kind")))
	}
	accepted := rapid.Bool().Draw(t, "accepted elsewhere")
	return func(s *Set) *Set {
		if next, err := s.With(changes); err == nil && !accepted {
			return next
		}
		next, _ := s.WithLenient(changes)
		return next
	}
}

// drawLimits is rules of this kind for an entity, perhaps with other limits.
func drawLimits(t *rapid.T, of EntityName, kind []modelRule) []modelRule {
	list := slices.Clone(kind)
	other := rapid.Bool().Draw(t, "other limits")
	for i := range list {
		list[i].of = of.String()
		if other && !list[i].Unlimited {
			n := rapid.IntRange(0, 2).Draw(t, "limit")
			list[i].Limit = &n
		}
	}
	return list
}

func (m *model) delete(name EntityName) {
	if name.Kind == TierEntity {
		delete(m.tiers, name.Name)
		return
	}
	delete(m.clients, name.Name)
	delete(m.tierOf, name.Name)
}

// put returns the body of what it puts.
func (m *model) put(name EntityName, tier string, list []modelRule) []byte {
	if name.Kind == TierEntity {
		m.tiers[name.Name] = list
	} else {
		m.clients[name.Name], m.tierOf[name.Name] = list, tier
	}
	body, _ := json.Marshal(struct {
		Tier  string      `json:"tier,omitempty"`
		Rules []modelRule `json:"rules"`
	}{tier, list})
	return body
}
