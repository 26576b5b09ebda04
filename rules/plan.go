package rules

import "encoding/binary"

// plan is how the rules of an entity are searched: all about them but how much
// they admit. It is immutable. Entities that differ only in their limits share
// one, so that ten thousand clients with an override each have few plans, and
// these stay in the processor's caches.
type plan struct {
	dims   []dimensionSet
	levels [2]level // the most specific first
	first  room
	rules  []*rule // in the file's order
	client bool    // not of a tier
	sole   bool    // one rule, without a pattern
}

// room is for a plan's first rule and dimension. Most clients have no more, and to
// choose theirs then reads one piece of memory, not one after the other.
type room struct {
	dims  [1]dimensionSet
	plain [1]*rule
	rule  rule
}

// level is the rules of one degree of specificity, by the kind of their pattern.
type level struct {
	dims       [tracks]mask // of the enforced rules, and of all
	*patterned              // nil: no patterns
	plain      []*rule      // no pattern
}

// patterned is the rules of a level that have a pattern.
type patterned struct {
	paths *node              // nil: no path patterns
	names map[string][]*rule // by the route's name
	every []*rule            // pattern "*"
}

// rule is what the caller's side needs to know to choose it and to name its
// counter.
type rule struct {
	priority  int32
	text      int32 // equal for equal patterns of the entity
	order     int32 // in the file
	dim       uint8 // in plan.dims
	atLevel   uint8 // in plan.levels
	highest   bool  // of its level and dimension
	shadow    bool
	deny      bool // on_missing: deny
	unlimited bool
	byClient  bool // and by nothing else

	by      []dimension
	prefix  string // of its counters' names, behind whose they are
	pattern string // as written; empty: none
	name    string
}

// newRule is memory for the plan's next rule.
func (p *plan) newRule() *rule {
	if len(p.rules) == 0 {
		return &p.first.rule
	}
	return new(rule)
}

// key is equal for equal plans.
func (p *plan) key() []byte {
	key := []byte{flags(p.client)}
	for _, r := range p.rules {
		key = appendPart(key, r.prefix)
		key = appendPart(key, r.pattern)
		key = binary.AppendVarint(key, int64(r.priority))
		key = append(key, r.atLevel, flags(r.shadow, r.deny, r.unlimited))
	}
	return key
}

func flags(list ...bool) (set byte) {
	for i, f := range list {
		if f {
			set |= 1 << i
		}
	}
	return set
}
