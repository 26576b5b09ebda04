package forward

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/ringlimit/ringlimit/limit"
	"github.com/ringlimit/ringlimit/membership"
	"github.com/ringlimit/ringlimit/owner"
)

// DecideAll answers the calls of one request, which are of one mode, into verdicts
// of the same length. Takes are charged all or none: if one is refused whose rule
// is no shadow, nothing is taken for the others, or it is given back, and each
// verdict says what it would be by itself. Peeks and Refunds are many of Decide.
//
// What one owner has to decide it decides in one step; several owners are asked at
// once. What one of them takes before another refuses is given back, in the
// background and once: if that owner is lost just then, so is the refund, which
// errs to denying. Once this node knows of a denial, or gives one, the others are
// charged nothing: they are shown, as ViewAll does. So are those that have still to be
// looked for when an owner has refused.
//
// The caller fills in the Charge of each call; the rest is DecideAll's to change.
// The error of Refunds is a *limit.RefundError, else it is as Decide's.
func (r *Router) DecideAll(ctx context.Context, calls []owner.Call, verdicts []limit.Verdict) error {
	if len(calls) == 1 {
		return r.Decide(ctx, &calls[0], &verdicts[0])
	}
	return r.decideAll(ctx, calls, verdicts, false)
}

// ViewAll says what each call would come to by itself, for a request that is refused
// whatever they say. Nothing is taken or given back. The verdict of a Take may be a
// view, up to a second old: then its Source is none, or the deny cache if it
// refuses. Else the owner is asked, and if it cannot be, on_failure.
func (r *Router) ViewAll(ctx context.Context, calls []owner.Call, verdicts []limit.Verdict) error {
	return r.decideAll(ctx, calls, verdicts, true)
}

func (r *Router) decideAll(ctx context.Context, calls []owner.Call, verdicts []limit.Verdict, refused bool) error {
	if len(calls) == 0 {
		return nil
	}
	g := r.groups.get()
	defer r.groups.put(g)
	g.router, g.ctx, g.now, g.routes = r, ctx, r.cfg.Now(), r.routes.Load()
	g.caller, g.verdicts = calls, verdicts
	g.plan(refused)
	g.ask()
	err := g.settle()
	g.report()
	return err
}

// group is the calls of one request on their way.
type group struct {
	router   *Router
	ctx      context.Context
	now      int64 // when the request came
	routes   *routes
	caller   []owner.Call
	verdicts []limit.Verdict

	owners []int // of the caller's calls, by index; asked: it is in none of the parts any more

	calls   []owner.Call // those to ask for, by owner
	results []owner.Result
	places  []place // where each of them comes from, and whom it was sent to
	parts   []part
	open    []int // those of calls that nobody has counted yet
	refused bool  // by an owner that was asked for a part
}

// place is about one call of a group.
type place struct {
	at    int               // the caller's index
	asked membership.NodeID // the last node asked
	late  bool              // this node has charged it, and its copy did not come in time
}

// part is calls of one owner: Takes together, others one by one.
type part struct {
	from, to, owner int
	sent            Sent // nil: they are this node's, or there is no way to the owner
}

// asked marks, among owners, a call that needs no place in a part.
const asked = none - 1

type groups struct{ pool sync.Pool }

func (p *groups) get() *group {
	if g, ok := p.pool.Get().(*group); ok {
		return g
	}
	return new(group)
}

// put lets go of what is the caller's.
func (p *groups) put(g *group) {
	clear(g.calls)
	clear(g.results)
	clear(g.parts)
	*g = group{
		owners: g.owners[:0], calls: g.calls[:0], results: g.results[:0],
		places: g.places[:0], parts: g.parts[:0], open: g.open[:0],
	}
	p.pool.Put(g)
}

// plan finds out whom to ask for what. Of a request that is refused already, or that
// this node refuses, nothing is taken.
func (g *group) plan(refused bool) {
	refused = g.locate() || refused
	if !refused && g.caller[0].Mode == limit.Take {
		g.gather(g.routes.self)
		if refused = g.refusedHere(); !refused {
			g.gatherAll()
			return
		}
	}
	g.separate(refused)
}

// locate finds the owners, and says whether the request is known to be refused. A
// shadow that is known to refuse need not be asked for.
func (g *group) locate() (refused bool) {
	for i := range g.caller {
		c, v := &g.caller[i], &g.verdicts[i]
		*v = limit.Verdict{}
		c.ID, c.Shadow = g.router.cfg.Seed.ID(c.Counter), c.Rule.Shadow
		var to int
		c.Partition, to = g.routes.locate(c.ID.Hi)
		if c.Mode == limit.Take && to != none && to != g.routes.self && g.router.denied.find(g.now, c, v) {
			v.Rule, to = c.Rule, asked
			refused = refused || !c.Shadow
		}
		g.owners = append(g.owners, to)
	}
	return refused
}

// gather puts the calls of one owner together.
func (g *group) gather(to int) {
	from := len(g.calls)
	for i := range g.caller {
		if to != asked && g.owners[i] == to {
			g.enlist(i).Joined = len(g.calls)-1 > from
		}
	}
	if len(g.calls) > from {
		g.parts = append(g.parts, part{from: from, to: len(g.calls), owner: to})
	}
}

func (g *group) gatherAll() {
	for _, to := range g.owners {
		g.gather(to)
	}
}

// enlist has one of the caller's calls decided.
func (g *group) enlist(i int) *owner.Call {
	g.owners[i] = asked
	g.calls = append(g.calls, g.caller[i])
	g.results = append(g.results, owner.Result{})
	g.places = append(g.places, place{at: i})
	return &g.calls[len(g.calls)-1]
}

// separate has each call decided by itself. Of a request that is refused nothing is
// taken, and what a fresh view shows is not asked for.
func (g *group) separate(refused bool) {
	for i, to := range g.owners {
		c := &g.caller[i]
		if to == asked || refused && c.Mode == limit.Take && to != g.routes.self && g.router.views.find(g.now, c, &g.verdicts[i]) {
			continue
		}
		if c = g.enlist(i); refused {
			c.Mode = limit.Peek
		}
		g.parts = append(g.parts, part{from: len(g.calls) - 1, to: len(g.calls), owner: to})
	}
}

// refusedHere looks, before others are asked, whether this node refuses: a client
// who is over a limit that is counted here is charged nowhere, and mostly costs no
// hop. Its own calls are answered then.
func (g *group) refusedHere() bool {
	others := func(to int) bool { return to != asked }
	if len(g.parts) == 0 || g.routes.self == none || !slices.ContainsFunc(g.owners, others) {
		return false
	}
	setMode(g.calls, limit.Peek)
	g.router.cfg.Local.DecideGroup(g.ctx, g.now, g.now, g.calls, g.results)
	setMode(g.calls, limit.Take)
	if g.results[0].Err != nil || !owner.Refused(g.calls, g.results) {
		return false
	}
	for i := range g.calls {
		g.router.note(g.now, &g.calls[i], &g.results[i].Verdict, true)
	}
	g.router.heard(g.now, true)
	g.parts = g.parts[:0]
	return true
}

func setMode(calls []owner.Call, m limit.Mode) {
	for i := range calls {
		calls[i].Mode = m
	}
}

// settle has on_failure answer for those that no owner has, and gives everything
// back if the request is refused. Its error is that of a caller who has gone; what
// was taken for him is given back as well. Lost refunds are an error.
func (g *group) settle() error {
	if len(g.calls) > 0 && g.calls[0].Mode == limit.Refund {
		return g.settleRefunds()
	}
	for i := range g.results {
		if err := g.results[i].Err; errors.Is(err, context.Canceled) {
			g.giveBack()
			return err
		}
	}
	g.fallBack()
	if owner.Refused(g.calls, g.results) {
		g.giveBack()
	}
	return nil
}

func (g *group) settleRefunds() error {
	var lost []error
	for i := range g.calls {
		c, result := &g.calls[i], &g.results[i]
		g.router.forget(c.ID) // after an error too: it may have been given back
		if result.Err != nil {
			_, err := g.router.fail(g.now, c, g.places[i].asked, result.Err)
			lost = append(lost, err)
		}
	}
	if lost == nil {
		return nil
	}
	return &limit.RefundError{Returned: len(g.calls) - len(lost), Of: len(g.calls), Err: errors.Join(lost...)}
}

// fallBack takes nothing any more once the request is refused.
func (g *group) fallBack() {
	r := g.router
	refused := owner.Refused(g.calls, g.results)
	for i := range g.calls {
		c, result := &g.calls[i], &g.results[i]
		if result.Err == nil {
			continue
		}
		if refused {
			c.Mode = limit.Peek
		}
		g.places[i].late = result.Taken
		onFailure := c.Rule.OnFailure
		v, _ := r.fail(g.now, c, g.places[i].asked, result.Err)
		*result = owner.Result{Verdict: v, Taken: v.Allowed && c.Mode == limit.Take && onFailure == limit.FailLocal}
		refused = refused || !v.Allowed && !c.Shadow
	}
}

// giveBack undoes what was taken. The verdicts are as if it never had been.
func (g *group) giveBack() {
	for i := range g.calls {
		c, result, place := &g.calls[i], &g.results[i], &g.places[i]
		if place.late { // c may have been changed by on_failure
			g.router.refunds.send(&g.caller[place.at], g.now)
		}
		if !result.Taken {
			continue
		}
		result.Taken = false
		v := &result.Verdict
		if v.Remaining = min(v.Limit, v.Remaining+c.Cost); v.Remaining == v.Limit {
			v.ResetAfter = 0
		}
		if v.Source == limit.SourceFallback {
			g.router.fallback.refund(g.router.cfg.Now(), g.now, c)
			continue
		}
		g.router.refunds.send(c, g.now)
	}
}

// report hands the verdicts to the caller, and keeps views of those that others have
// given. Their rules are the caller's: on_failure counts by others.
func (g *group) report() {
	var now int64 // once it is wanted
	for i, p := range g.places {
		v, c, result := &g.verdicts[p.at], &g.caller[p.at], &g.results[i]
		*v = result.Verdict
		v.Rule = c.Rule
		if c.Mode == limit.Refund || result.Err != nil || v.Source == limit.SourceOwner {
			continue
		}
		if now == 0 {
			now = g.router.cfg.Now()
		}
		g.router.views.add(g.now, now, c, v, result.Taken)
	}
}
