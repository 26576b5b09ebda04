package rules

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// With is the Set after the changes: each is a new body of a tier or a client,
// or nil to delete it. What is not changed is shared, not compiled again. The
// error is an *Error that lists every problem, by entity and field: also a client
// whose tier does not exist, and a tier that is deleted while clients have it.
func (s *Set) With(changes map[EntityName][]byte) (*Set, error) {
	next, problems := s.apply(changes)
	if len(problems) == 0 { // a tier that could not be read is missing for that reason
		problems = slices.Concat(next.checkTiers(s, changes), next.checkSize(s))
	}
	if len(problems) > 0 {
		return nil, newError(problems)
	}
	return next, nil
}

// WithLenient is With for changes that somebody has accepted elsewhere. A client
// whose tier does not exist, perhaps because it was deleted there at the same
// time, belongs to the default tier; a tier or client whose body this version
// cannot read is left out. The warnings say so.
func (s *Set) WithLenient(changes map[EntityName][]byte) (next *Set, warnings []string) {
	next, problems := s.apply(changes)
	for _, p := range problems {
		p.Text += "; left out"
		warnings = append(warnings, p.String())
	}
	for _, w := range next.misfits {
		if _, old := slices.BinarySearch(s.misfits, w); !old {
			warnings = append(warnings, w)
		}
	}
	return next, warnings
}

// apply makes the changes, and leaves out what it cannot read.
func (s *Set) apply(changes map[EntityName][]byte) (next *Set, problems []Problem) {
	next = s.copied()
	for _, name := range sortedNames(changes) {
		old := s.of(name.Kind)[name.Name]
		switch body := changes[name]; {
		case body == nil:
			next.remove(name)
		case old.exists() && bytes.Equal(body, old.body):
		default:
			e, bad := compileBody(name, body)
			if len(bad) > 0 {
				problems = append(problems, bad...)
				next.remove(name)
				continue
			}
			next.put(name, e)
		}
	}
	next.link()
	return next, problems
}

func sortedNames(changes map[EntityName][]byte) []EntityName {
	return slices.SortedFunc(maps.Keys(changes), func(a, b EntityName) int {
		return cmp.Or(cmp.Compare(b.Kind, a.Kind), cmp.Compare(a.Name, b.Name)) // tiers first
	})
}

// findMisfits warns of clients whose tier does not exist or says nothing, in
// order.
func (s *Set) findMisfits() (warnings []string) {
	limited := s.standard.exists() && len(s.standard.rules) > 0
	for id, e := range s.clients {
		if e.tierName() == "" {
			continue
		}
		at := EntityName{ClientEntity, id}
		switch tier := s.tiers[e.tierName()]; {
		case !tier.exists():
			warnings = append(warnings, fmt.Sprintf("%s: tier: %q does not exist; the tier %s applies", at.label(), e.tierName(), DefaultTier))
		case len(tier.rules)+len(e.rules) == 0 && !limited:
			warnings = append(warnings, fmt.Sprintf("%s: tier: %q has no rules, and nor has the tier %s: nothing limits the client", at.label(), e.tierName(), DefaultTier))
		}
	}
	slices.Sort(warnings)
	return warnings
}

// checkTiers refuses what leaves a client without its tier. Where that was so
// before, the changes are not to blame.
func (s *Set) checkTiers(before *Set, changes map[EntityName][]byte) (problems []Problem) {
	users := map[string][]string{}
	for id, e := range s.clients {
		if e.tierName() == "" || s.tiers[e.tierName()].exists() {
			continue
		}
		name := EntityName{ClientEntity, id}
		if _, changed := changes[name]; changed {
			problems = append(problems, Problem{File: name.label(), Line: 1, Column: 1, Field: "tier",
				Text: fmt.Sprintf("%q is unknown; %s", e.tierName(), s.known)})
		} else if before.tiers[e.tierName()].exists() {
			users[e.tierName()] = append(users[e.tierName()], id)
		}
	}
	for tier, clients := range users {
		problems = append(problems, Problem{File: EntityName{TierEntity, tier}.label(), Line: 1, Column: 1,
			Text: fmt.Sprintf("is the tier of %.64q and %d more clients; give them another one first", slices.Min(clients), len(clients)-1)})
	}
	return problems
}

// Clients is how many clients have the tier in their entry. It looks at all of
// them.
func (s *Set) Clients(tier string) (n int) {
	for _, e := range s.clients {
		if e.tierName() == tier {
			n++
		}
	}
	return n
}

// checkSize refuses what makes the Set too large. One that is too large already, as
// the two sides of a partition may together be, can be changed and made smaller.
func (s *Set) checkSize(before *Set) (problems []Problem) {
	if n := len(s.tiers); n > max(MaxTiers, len(before.tiers)) {
		problems = append(problems, Problem{File: "tiers", Line: 1, Column: 1, Text: fmt.Sprintf("would be %d; at most %d are allowed", n, MaxTiers)})
	}
	if n := len(s.clients); n > max(MaxClients, len(before.clients)) {
		problems = append(problems, Problem{File: "clients", Line: 1, Column: 1, Text: fmt.Sprintf("would be %d; at most %d are allowed", n, MaxClients)})
	}
	return problems
}
