package rules

import (
	"slices"
	"unique"
)

// entityDraft is a tier or a client while it is read.
type entityDraft struct {
	name     EntityName
	tier     string // of a client
	tierAt   place
	at       place
	path     string
	rules    []*draft
	patterns []pattern // of each rule that has one; else its zero value
}

// compile makes the entity of a draft that has no problems.
func (r *reader) compile(ed *entityDraft) *entity {
	e := newEntity(ed)
	texts := map[string]int32{}
	for i, d := range ed.rules {
		c := e.newRule()
		*c = d.compile(ed.name)
		c.order, c.text = int32(i), textNumber(texts, d.pattern)
		c.dim, c.atLevel = e.dimension(d.by), levelOf(ed.name, d.pattern)
		e.levels[c.atLevel].add(c, ed.patterns[i])
		e.rules = append(e.rules, c)
	}
	e.markHighest()
	e.body = ed.render()
	before := len(r.warnings)
	ed.warn(e)
	for _, w := range r.warnings[before:] {
		e.warnings = append(e.warnings, w.String())
	}
	return e
}

// newEntity is an entity without rules.
func newEntity(ed *entityDraft) *entity {
	e := &entity{of: ed.name, tier: unique.Make(ed.tier).Value()}
	if ed.name.Kind == ClientEntity {
		e.of.Name = ""
	}
	e.dims = e.first.dims[:0]
	e.levels[levelOf(ed.name, "")].plain = e.first.plain[:0]
	return e
}

// newRule is memory for the entity's next rule.
func (e *entity) newRule() *rule {
	if len(e.rules) == 0 {
		return &e.first.rules[0]
	}
	return new(rule)
}

// levelNames are those of an entity's levels, the most specific first. In the
// tier "default", the last resort, the rules with a pattern and those without
// are of one level.
func levelNames(of EntityName) [2]string {
	switch {
	case of.Kind == ClientEntity:
		return [2]string{"client and route", "client"}
	case of.Name == DefaultTier:
		return [2]string{DefaultTier}
	}
	return [2]string{"tier and route", "tier"}
}

func levelOf(name EntityName, pattern string) uint8 {
	if pattern == "" && name != (EntityName{TierEntity, DefaultTier}) {
		return 1
	}
	return 0
}

func textNumber(texts map[string]int32, text string) int32 {
	n, known := texts[text]
	if !known {
		n = int32(len(texts))
		texts[text] = n
	}
	return n
}

// dimension is the number of a dimension in the entity.
func (e *entity) dimension(by []dimension) uint8 {
	set := newDimensionSet(by)
	i := slices.Index(e.dims, set)
	if i < 0 {
		i = len(e.dims)
		e.dims = append(e.dims, set)
	}
	return uint8(i)
}

func (l *level) add(r *rule, p pattern) {
	bit := mask(1) << r.dim
	l.dims[all] |= bit
	if !r.shadow {
		l.dims[enforced] |= bit
	}
	l.file(r, p)
}

func (l *level) file(r *rule, p pattern) {
	switch {
	case r.pattern == "":
		l.plain = append(l.plain, r)
	case p.kind == everyRoute:
		l.every = append(l.every, r)
	case p.kind == routeName:
		if l.names == nil {
			l.names = map[string][]*rule{}
		}
		l.names[r.pattern] = append(l.names[r.pattern], r)
	default:
		if l.paths == nil {
			l.paths = &node{}
		}
		l.paths.insert(p, r)
	}
}

// markHighest finds the rules that no later one can beat: a later pattern is
// less specific, and no priority is higher.
func (e *entity) markHighest() {
	type contest struct{ level, dim uint8 }
	top := map[contest]int32{}
	for _, r := range e.rules {
		c := contest{r.atLevel, r.dim}
		if p, known := top[c]; !known || r.priority > p {
			top[c] = r.priority
		}
	}
	for _, r := range e.rules {
		r.highest = r.priority == top[contest{r.atLevel, r.dim}]
	}
}

// compile completes the rule, which nobody else has seen yet.
func (d *draft) compile(of EntityName) rule {
	r := rule{name: d.name, pattern: d.pattern, by: d.by, priority: d.priority, shadow: d.shadow, deny: d.deny, client: of.Kind == ClientEntity}
	if d.unlimited {
		return r
	}
	r.limit = d.rule
	r.limit.Name, r.limit.Tier, r.limit.OnFailure, r.limit.Jitter, r.limit.Shadow = d.name, ruleTier(of), d.onFailure, d.jitter, d.shadow
	r.prefix = unique.Make(string(counterPrefix(of, d.name, d.spec.Algorithm, d.by))).Value() // thousands of clients have one
	return r
}

// ruleTier is the Tier of an entity's limit.Rules. It labels metrics, where a
// client's id must not stand.
func ruleTier(of EntityName) string {
	if of.Kind == ClientEntity {
		return string(ClientEntity)
	}
	return of.Name
}
