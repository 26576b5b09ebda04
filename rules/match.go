package rules

import (
	"unique"

	"github.com/ringlimit/ringlimit/limit"
)

// Winner is one limit that a request must pass.
type Winner struct {
	Rule    *limit.Rule // with Name, Tier, OnFailure, Jitter and Shadow set
	Missing string      // not empty: refuse, the request lacks this dimension and on_missing is deny
	Counter []byte      // the counter's name; nil if something is Missing
}

// Matches are the limits that apply to a request. They are reused: Match writes
// over them, and then does not allocate. The zero value is ready.
type Matches struct {
	Winners []Winner // the most specific level first, within it in the file's order

	names   []byte    // the winners' counters
	own     [2]entity // the client and the tier, as the Set's maps have them
	found   []*rule   // the winners by search and, while a level is searched, who led once
	decided []decision
	lead    [tracks][MaxEntityDimensions]standing
}

// Two tracks choose among the rules of a dimension: the enforced rules as if
// there were no others, and all of them. A rule in shadow has to win among all;
// it then applies beside the enforced winner. So to try a rule in shadow never
// lifts the limit that it is to replace.
const (
	enforced = iota
	all
	tracks
)

// MaxEntityDimensions bounds how many different dimensions (`by`) one tier or
// client has.
const MaxEntityDimensions = 32

// mask is a set of an entity's dimensions.
type mask uint32

// decision is a dimension that a level has decided, for those behind it.
type decision struct {
	dim unique.Handle[string]
	by  int // the track enforced decides for both, all for itself
}

// standing is what has to be beaten in a dimension: a later pattern is less
// specific, so it needs the higher priority.
type standing struct{ priority, text int32 }

// Match finds the limits of a request that has passed Validate. It writes over
// m: with Matches that were used before it does not allocate, if the path is in
// its canonical spelling.
//
// In each dimension the rules of one level apply: the most specific level that
// has a rule for the request, there the highest priority, there the most
// specific pattern; several rules that are equal in all that, all of them. No
// winner: the request is not limited.
//
// The route's path has to be percent-encoded as it came from the client. The
// error is an *limit.InputError for a tier that does not exist.
func (s *Set) Match(req *limit.Request, m *Matches) error {
	m.Winners, m.names, m.found, m.decided = m.Winners[:0], m.names[:0], m.found[:0], m.decided[:0]
	client, tier, standard, err := s.entitiesOf(req, &m.own)
	if err != nil {
		return err
	}
	q := search{req: req, m: m}
	q.in(client)
	q.in(tier)
	q.in(standard)
	return nil
}

// entitiesOf finds those whose rules the request is looked up in; nil where there is
// none. The client and the tier are copied to own, if there are any.
func (s *Set) entitiesOf(req *limit.Request, own *[2]entity) (client, tier, standard *entity, err error) {
	if s.standard.exists() {
		standard = &s.standard
	}
	if e, known := s.clients[req.Key]; known {
		own[0] = e
		client = &own[0]
	}
	var e entity
	switch {
	case req.Tier != "":
		if e = s.tiers[req.Tier]; !e.exists() {
			return nil, nil, nil, s.unknownTier(req.Tier)
		}
	case client != nil:
		e = s.byHandle[client.tier] // "" is none's
	default:
		return nil, nil, standard, nil
	}
	if e.exists() && e.origin != s.standard.origin {
		own[1] = e
		tier = &own[1]
	}
	return client, tier, standard, nil
}

// search is one run of Match.
type search struct {
	req   *limit.Request
	read  bool  // route was read
	route route // of req, once a rule wants to know it
	m     *Matches

	done  [tracks]mask // decided before this level
	has   [tracks]mask // has a leader in this level
	open  [tracks]mask // can change hands yet in this level
	trace *[]*rule     // not nil: note who matches the route, and choose nobody
}

func (q *search) parsedRoute() *route {
	if !q.read {
		q.read, q.route = true, parseRoute(q.req.Route)
	}
	return &q.route
}

// in searches an entity, if there is one.
func (q *search) in(e *entity) {
	switch {
	case e == nil:
	case e.sole:
		q.alone(e)
	default:
		q.entity(e)
	}
}

// entity searches the entity's levels for the dimensions that are not decided.
func (q *search) entity(e *entity) {
	start := len(q.m.found)
	before := q.decidedOf(e)
	q.done = before
	for i := range e.levels {
		q.choose(&e.levels[i])
	}
	for i, dim := range e.dims {
		bit := mask(1) << i
		switch {
		case (q.done[enforced]&^before[enforced])&bit != 0:
			q.m.decided = append(q.m.decided, decision{dim, enforced})
		case (q.done[all]&^before[all])&bit != 0:
			q.m.decided = append(q.m.decided, decision{dim, all})
		}
	}
	for _, r := range q.m.found[start:] {
		q.win(e, r)
	}
}

// alone is what entity comes to where there is but one rule, for every route: it
// applies, unless a level before has decided its dimension or it is passed over.
// Most clients and many tiers have no more, and to look for levels, patterns and
// rivals takes longer than all the rest of a search.
func (q *search) alone(e *entity) {
	r := e.rules[0]
	for i := range q.m.decided {
		if d := &q.m.decided[i]; d.dim == e.dims[0] && d.by <= r.track() {
			return
		}
	}
	if !r.deny && q.missing(r) != "" {
		return
	}
	q.m.decided = append(q.m.decided, decision{e.dims[0], r.track()})
	q.win(e, r)
}

// decidedOf is the entity's view of what is decided.
func (q *search) decidedOf(e *entity) (done [tracks]mask) {
	for i, dim := range e.dims {
		for _, d := range q.m.decided {
			if d.dim != dim {
				continue
			}
			for track := d.by; track < tracks; track++ {
				done[track] |= 1 << i
			}
		}
	}
	return done
}

// choose finds the level's winners in the dimensions that it decides.
func (q *search) choose(l *level) {
	q.has = [tracks]mask{}
	for track := range q.open {
		q.open[track] = l.dims[track] &^ q.done[track]
	}
	if q.settled() {
		return
	}
	start := len(q.m.found)
	q.walk(l)
	q.m.found = q.keepLeaders(start)
	for track := range q.done {
		q.done[track] |= q.has[track]
	}
}

func (q *search) settled() bool { return q.open[enforced]|q.open[all] == 0 }

// walk tries the level's rules, the most specific pattern first, until all
// dimensions are settled.
func (q *search) walk(l *level) bool {
	return l.patterned != nil && (q.patterns(l.patterned) || q.try(l.every)) || q.try(l.plain)
}

// patterns tries the rules for a path or a route's name.
func (q *search) patterns(l *patterned) bool {
	switch {
	case l.paths == nil && l.names == nil:
		return false
	case !q.parsedRoute().http:
		return q.try(l.names[q.route.path])
	}
	return l.paths != nil && q.paths(l.paths)
}

// try considers all rules of one pattern. It reports whether no later rule can
// win.
func (q *search) try(rules []*rule) bool {
	if q.trace != nil {
		*q.trace = append(*q.trace, rules...)
		return false
	}
	for _, r := range rules {
		q.consider(r)
	}
	return q.settled()
}

// consider lets the rule lead its dimension if it beats or equals who leads. A
// rule that is passed over for what the request lacks is as if it were not in
// the file.
func (q *search) consider(r *rule) {
	track := r.track()
	if !q.contends(track, r) || !r.deny && q.missing(r) != "" {
		return
	}
	q.m.found = append(q.m.found, r)
	q.lead(track, r)
	if track == enforced && q.contends(all, r) {
		q.lead(all, r)
	}
	if r.highest {
		for ; track < tracks; track++ {
			q.open[track] &^= 1 << r.dim
		}
	}
}

func (r *rule) track() int {
	if r.shadow {
		return all
	}
	return enforced
}

func (q *search) contends(track int, r *rule) bool {
	bit := mask(1) << r.dim
	if q.done[track]&bit != 0 {
		return false
	}
	lead := &q.m.lead[track][r.dim]
	return q.has[track]&bit == 0 || r.priority > lead.priority || *lead == standing{r.priority, r.text}
}

func (q *search) lead(track int, r *rule) {
	q.has[track] |= 1 << r.dim
	q.m.lead[track][r.dim] = standing{r.priority, r.text}
}

// keepLeaders leaves of those found from start on the ones that nobody has
// beaten, in the file's order. One alone is such a one.
func (q *search) keepLeaders(start int) []*rule {
	if len(q.m.found) <= start+1 {
		return q.m.found
	}
	kept := q.m.found[:start]
	for _, r := range q.m.found[start:] {
		if q.m.lead[r.track()][r.dim] != (standing{r.priority, r.text}) {
			continue
		}
		kept = append(kept, r)
		for i := len(kept) - 1; i > start && kept[i-1].order > r.order; i-- {
			kept[i-1], kept[i] = kept[i], kept[i-1]
		}
	}
	return kept
}
