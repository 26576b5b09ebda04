package rules

import (
	"slices"
	"unique"

	"github.com/ringlimit/ringlimit/limit"
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
func (r *reader) compile(ed *entityDraft) entity {
	tier := ed.tier
	if ed.name.Kind == TierEntity {
		tier = ed.name.Name
	}
	e := entity{plan: ed.plan(), limits: make([]limit.Rule, len(ed.rules)), tier: unique.Make(tier), origin: &origin{body: ed.render()}}
	e.heads = headsOf(ed.name, e.rules)
	for i, d := range ed.rules {
		if !d.unlimited {
			e.limits[i] = d.limit(ed.name)
		}
	}
	before := len(r.warnings)
	ed.warn(&e)
	for _, w := range r.warnings[before:] {
		e.warnings = append(e.warnings, w.String())
	}
	return e
}

// plan compiles all but the limits.
func (ed *entityDraft) plan() *plan {
	p := &plan{client: ed.name.Kind == ClientEntity}
	p.dims = p.first.dims[:0]
	p.levels[levelOf(ed.name, "")].plain = p.first.plain[:0]
	texts := map[string]int32{}
	for i, d := range ed.rules {
		c := p.newRule()
		*c = d.compile()
		c.order, c.text = int32(i), textNumber(texts, d.pattern)
		c.dim, c.atLevel = p.dimension(d.by), levelOf(ed.name, d.pattern)
		p.levels[c.atLevel].add(c, ed.patterns[i])
		p.rules = append(p.rules, c)
	}
	p.markHighest()
	p.sole = len(p.rules) == 1 && p.rules[0].pattern == ""
	return p
}

// levelNames are those of an entity's levels, the most specific first. In the
// tier "default", the last resort, the rules with a pattern and those without
// are of one level.
func (e *entity) levelNames() [2]string {
	switch {
	case e.client:
		return [2]string{"client and route", "client"}
	case e.tierName() == DefaultTier:
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

// dimension is the number of a dimension in the plan.
func (p *plan) dimension(by []dimension) uint8 {
	set := newDimensionSet(by)
	i := slices.Index(p.dims, set)
	if i < 0 {
		i = len(p.dims)
		p.dims = append(p.dims, set)
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
	if r.pattern == "" {
		l.plain = append(l.plain, r)
		return
	}
	if l.patterned == nil {
		l.patterned = &patterned{}
	}
	switch p.kind {
	case everyRoute:
		l.every = append(l.every, r)
	case routeName:
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
func (p *plan) markHighest() {
	type contest struct{ level, dim uint8 }
	top := map[contest]int32{}
	for _, r := range p.rules {
		c := contest{r.atLevel, r.dim}
		if t, known := top[c]; !known || r.priority > t {
			top[c] = r.priority
		}
	}
	for _, r := range p.rules {
		r.highest = r.priority == top[contest{r.atLevel, r.dim}]
	}
}

// compile is the rule without its place among the others.
func (d *draft) compile() rule {
	return rule{
		name: d.name, pattern: d.pattern, by: d.by, priority: d.priority,
		shadow: d.shadow, deny: d.deny, unlimited: d.unlimited,
		byClient: len(d.by) == 1 && d.by[0].kind == byClient,
		prefix:   string(appendPrefix(nil, d.name, d.spec.Algorithm, d.by)),
	}
}

// limit completes the limit.
func (d *draft) limit(of EntityName) limit.Rule {
	l := *d.rule
	l.Name, l.Tier, l.OnFailure, l.Jitter, l.Shadow = d.name, ruleTier(of), d.onFailure, d.jitter, d.shadow
	return l
}

// ruleTier is the Tier of an entity's limit.Rules. It labels metrics, where a
// client's id must not stand: what a client has of its own is of no tier. No tier
// has an empty name.
func ruleTier(of EntityName) string {
	if of.Kind == ClientEntity {
		return ""
	}
	return of.Name
}
