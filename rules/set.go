package rules

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/ringlimit/ringlimit/limit"
)

// DefaultTier is the tier of requests that name none, and the one that is
// looked at when a request's own tier has no rule for it.
const DefaultTier = "default"

// Set is a rule file, compiled. It is immutable and safe for concurrent use.
// The zero Set has no rules.
type Set struct {
	tiers    map[string]*tier
	standard *tier // the default tier; nil when there is none
	known    string
	rules    []*rule // in the file's order
	json     []byte
	warnings []string
}

// tier is one tier's rules by the kind of their pattern.
type tier struct {
	paths *node              // nil: no path patterns
	names map[string][]*rule // by the route's name
	every []*rule            // pattern "*"
	plain []*rule            // no pattern
	json  []byte
}

// rule is what the caller's side needs to know to charge a counter.
type rule struct {
	*limit.Rule
	pattern string // as written; empty: none
	by      []dimension
	prefix  []byte // of its counters' names
	deny    bool   // on_missing: deny
}

// Match is the rule that applies to a request.
type Match struct {
	Rule    *limit.Rule // nil: no rule applies
	Missing string      // not empty: refuse, the request lacks this dimension and on_missing is deny
	Counter []byte      // the counter's name, if there is a Rule and nothing is Missing
}

// Match finds the rule for a request that has passed Validate. It writes over
// m, and over what m.Counter holds: with a Match that was used before it does
// not allocate, if the path is in its canonical spelling.
//
// The route's path has to be percent-encoded as it came from the client. The
// error is an *limit.InputError for a tier that does not exist.
func (s *Set) Match(req *limit.Request, m *Match) error {
	*m = Match{Counter: m.Counter[:0]}
	own := s.standard
	if req.Tier != "" {
		if own = s.tiers[req.Tier]; own == nil {
			return s.unknownTier(req.Tier)
		}
	}
	q := search{req: req, match: m}
	if own == nil || !q.tier(own) {
		if s.standard != nil && s.standard != own {
			q.tier(s.standard)
		}
	}
	return nil
}

func (s *Set) unknownTier(name string) error {
	return &limit.InputError{Field: "tier", Problem: fmt.Sprintf("%q is unknown; %s", clip(name, maxNameBytes), cmp.Or(s.known, "there are no tiers"))}
}

// search is one run of Match.
type search struct {
	req   *limit.Request
	read  bool  // route was read
	route route // of req, once a rule wants to know it
	match *Match
}

func (q *search) parsedRoute() *route {
	if !q.read {
		q.read, q.route = true, parseRoute(q.req.Route)
	}
	return &q.route
}

// tier tries the tier's rules, the most specific pattern first.
func (q *search) tier(t *tier) bool {
	return q.patterns(t) || q.try(t.every) || q.try(t.plain)
}

// patterns tries the rules for a path or a route's name.
func (q *search) patterns(t *tier) bool {
	switch {
	case t.paths == nil && len(t.names) == 0:
		return false
	case !q.parsedRoute().http:
		return q.try(t.names[q.route.path])
	}
	return t.paths != nil && q.paths(t.paths)
}

// try takes the first rule that can judge the request. A rule whose dimension
// is missing either decides by that, or is passed over.
func (q *search) try(rules []*rule) bool {
	for _, r := range rules {
		missing := q.counter(r)
		if missing == "" || r.deny {
			q.match.Rule, q.match.Missing = r.Rule, missing
			return true
		}
	}
	return false
}

// counter writes the name of the rule's counter, or returns the dimension that
// the request lacks.
func (q *search) counter(r *rule) (missing string) {
	name := append(q.match.Counter[:0], r.prefix...)
	for i := range r.by {
		var ok bool
		if name, ok = q.appendValue(name, r, &r.by[i]); !ok {
			return r.by[i].label
		}
	}
	q.match.Counter = name
	return ""
}

// Rules are all rules, in the file's order.
func (s *Set) Rules() iter.Seq[*limit.Rule] {
	return func(yield func(*limit.Rule) bool) {
		for _, r := range s.rules {
			if !yield(r.Rule) {
				return
			}
		}
	}
}

// Warnings are what is allowed but probably not meant, each with its file, line
// and field.
func (s *Set) Warnings() []string { return slices.Clone(s.warnings) }

// maxKnownTiers bounds how many tiers an error names.
const maxKnownTiers = 10

// knownTiers says which tiers there are.
func knownTiers(names []string) string {
	slices.Sort(names)
	listed := names[:min(len(names), maxKnownTiers)]
	text := "known are " + strings.Join(listed, ", ")
	if more := len(names) - len(listed); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
