package rules

import (
	"fmt"
	"strconv"

	"github.com/ringlimit/ringlimit/limit"
)

// Explanation says which limits a request has, and why.
type Explanation struct {
	Tier   string          `json:"tier"`             // whose rules apply before those of the tier default
	Client string          `json:"client,omitempty"` // the key, when it has an entry
	Rules  []Consideration `json:"rules"`            // all that were considered: by level, then in the file's order
}

// Consideration is what became of one rule.
type Consideration struct {
	Level        string   `json:"level"` // client and route, client, tier and route, tier, default
	Of           string   `json:"of"`    // tier/free or client/cust_42
	Name         string   `json:"name"`
	RoutePattern string   `json:"route_pattern,omitempty"`
	By           []string `json:"by"`
	Priority     int32    `json:"priority"`
	Unlimited    bool     `json:"unlimited,omitempty"`
	Shadow       bool     `json:"shadow,omitempty"`
	Applies      bool     `json:"applies"`
	Outcome      string   `json:"outcome"` // "applies", or why not
}

// Explain says of each rule that could apply to the request, which has passed
// Validate, whether it does, and why not. The error is that of Match.
func (s *Set) Explain(req *limit.Request) (Explanation, error) {
	client, tier, standard, err := s.entitiesOf(req, new([2]entity))
	if err != nil {
		return Explanation{}, err
	}
	x := explainer{q: search{req: req}, Explanation: Explanation{Tier: DefaultTier, Rules: []Consideration{}}}
	for _, e := range []*entity{client, tier, standard} {
		switch {
		case e == nil:
			continue
		case e.client:
			x.Client = req.Key
		case e.tierName() != DefaultTier:
			x.Tier = e.tierName()
		}
		for i := range e.levels {
			x.level(e, i)
		}
	}
	return x.Explanation, nil
}

// explainer does what search does, in no hurry: it looks at all rules, and
// remembers by whom each dimension was decided.
type explainer struct {
	Explanation
	q       search
	decided [tracks]map[dimensionSet]verdict
}

// verdict is who has won a dimension, and at which level.
type verdict struct {
	by    *rule
	level string
}

func (x *explainer) level(e *entity, i int) {
	rank := x.ranks(&e.levels[i])
	leaders := x.leaders(e, rank, i)
	for _, r := range e.rules {
		if int(r.atLevel) == i {
			c := x.consideration(e, r)
			c.Applies, c.Outcome = x.outcome(e, r, rank, leaders[r.track()][r.dim])
			x.Rules = append(x.Rules, c)
		}
	}
	for track := range leaders {
		for dim, leader := range leaders[track] {
			x.decide(track, e.dims[dim], verdict{leader, e.levelNames()[i]})
		}
	}
}

// ranks are the level's rules whose pattern matches: 0 for the most specific.
func (x *explainer) ranks(l *level) map[*rule]int {
	var visited []*rule
	x.q.trace = &visited
	x.q.walk(l)
	rank := make(map[*rule]int, len(visited))
	for i, r := range visited {
		rank[r] = i
	}
	return rank
}

// leaders are the winners of the dimensions that are not decided yet, one for
// all that are its equals.
func (x *explainer) leaders(e *entity, rank map[*rule]int, level int) (leaders [tracks]map[uint8]*rule) {
	for track := range leaders {
		leaders[track] = map[uint8]*rule{}
		for _, r := range e.rules {
			at, matches := rank[r]
			if int(r.atLevel) != level || !matches || r.track() > track || !r.deny && x.q.missing(r) != "" {
				continue
			}
			if _, decided := x.decided[track][e.dims[r.dim]]; decided {
				continue
			}
			best := leaders[track][r.dim]
			if best == nil || r.priority > best.priority || r.priority == best.priority && at < rank[best] {
				leaders[track][r.dim] = r
			}
		}
	}
	return leaders
}

func (x *explainer) decide(track int, dim dimensionSet, v verdict) {
	if x.decided[track] == nil {
		x.decided[track] = map[dimensionSet]verdict{}
	}
	x.decided[track][dim] = v
}

// outcome is what became of a rule, whose dimension leader has won if it was not
// decided before.
func (x *explainer) outcome(e *entity, r *rule, rank map[*rule]int, leader *rule) (applies bool, why string) {
	_, matches := rank[r]
	missing := x.q.missing(r)
	before, decided := x.decided[r.track()][e.dims[r.dim]]
	switch {
	case !matches:
		return false, "the route does not match"
	case missing != "" && !r.deny:
		return false, fmt.Sprintf("skipped: the request has no %s", missing)
	case decided:
		return false, fmt.Sprintf("the level %q has decided this dimension, by %s", before.level, quoteName(before.by))
	case leader.priority != r.priority:
		return false, quoteName(leader) + " has a higher priority"
	case leader.text != r.text:
		return false, quoteName(leader) + " has a more specific route_pattern"
	case missing != "":
		return true, fmt.Sprintf("applies, and refuses: the request has no %s", missing)
	case r.unlimited:
		return true, "applies: no limit"
	case r.shadow:
		return true, "applies in shadow: refuses nothing"
	}
	return true, "applies"
}

func quoteName(r *rule) string { return strconv.Quote(r.name) }

func (x *explainer) consideration(e *entity, r *rule) Consideration {
	of := EntityName{TierEntity, e.tierName()}
	if e.client {
		of = EntityName{ClientEntity, x.Client}
	}
	c := Consideration{
		Level: e.levelNames()[r.atLevel], Of: of.String(), Name: r.name, RoutePattern: r.pattern,
		Priority: r.priority, Unlimited: r.unlimited, Shadow: r.shadow,
	}
	for _, d := range r.by {
		c.By = append(c.By, d.label)
	}
	return c
}
