package rules

import "encoding/json"

// compile makes the Set of tiers that have no problems.
func (r *reader) compile(tiers []tierDraft) *Set {
	s := &Set{tiers: make(map[string]*tier, len(tiers))}
	all := map[string]json.RawMessage{}
	var names []string
	for _, td := range tiers {
		t := s.addTier(td)
		all[td.name] = t.json
		names = append(names, td.name)
	}
	s.standard = s.tiers[DefaultTier]
	s.known = knownTiers(names)
	s.json = encode(map[string]any{"tiers": all})
	for _, w := range r.warnings {
		w.Source = "" // one line a warning, for logs
		s.warnings = append(s.warnings, w.String())
	}
	return s
}

func (s *Set) addTier(td tierDraft) *tier {
	t := &tier{names: map[string][]*rule{}}
	body := tierJSON{Rules: []ruleJSON{}}
	for i, d := range td.rules {
		c := d.compile(td.name)
		t.add(c, td.patterns[i])
		s.rules = append(s.rules, c)
		body.Rules = append(body.Rules, d.render())
		d.warn()
	}
	t.json = encode(body)
	s.tiers[td.name] = t
	return t
}

func (t *tier) add(r *rule, p pattern) {
	switch {
	case r.pattern == "":
		t.plain = append(t.plain, r)
	case p.kind == everyRoute:
		t.every = append(t.every, r)
	case p.kind == routeName:
		t.names[r.pattern] = append(t.names[r.pattern], r)
	default:
		if t.paths == nil {
			t.paths = &node{}
		}
		t.paths.insert(p, r)
	}
}

// compile completes the rule, which nobody else has seen yet.
func (d *draft) compile(tier string) *rule {
	lr := d.rule
	lr.Name, lr.Tier, lr.OnFailure, lr.Jitter = d.name, tier, d.onFailure, d.jitter
	return &rule{
		Rule: lr, pattern: d.pattern, by: d.by, deny: d.deny,
		prefix: counterPrefix(tier, d.name, d.spec.Algorithm, d.by),
	}
}
