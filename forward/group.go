package forward

import (
	"context"
	"errors"
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
// errs to denying. A denial that this node knows of, or gives, ends it before
// others are asked; calls of those who were not have the zero Verdict.
//
// The caller fills in the Charge of each call; the rest is DecideAll's to change.
// The error is as Decide's.
func (r *Router) DecideAll(ctx context.Context, calls []owner.Call, verdicts []limit.Verdict) error {
	switch {
	case len(calls) == 0:
		return nil
	case len(calls) == 1:
		return r.Decide(ctx, &calls[0], &verdicts[0])
	case calls[0].Mode != limit.Take:
		return r.decideEach(ctx, calls, verdicts)
	}
	g := r.groups.get()
	defer r.groups.put(g)
	g.router, g.ctx, g.now, g.routes = r, ctx, r.cfg.Now(), r.routes.Load()
	if g.locate(calls, verdicts) {
		return nil
	}
	g.gather(calls)
	if !g.refusedHere() {
		g.ask()
	}
	err := g.settle()
	g.report(calls, verdicts)
	return err
}

func (r *Router) decideEach(ctx context.Context, calls []owner.Call, verdicts []limit.Verdict) error {
	errs := make([]error, len(calls))
	parallel(len(calls), func(i int) { errs[i] = r.Decide(ctx, &calls[i], &verdicts[i]) })
	return errors.Join(errs...)
}

// parallel calls f with 0 to n-1, the first of them in the caller's goroutine.
func parallel(n int, f func(int)) {
	if n == 0 {
		return
	}
	var others sync.WaitGroup
	for i := 1; i < n; i++ {
		others.Go(func() { f(i) })
	}
	f(0)
	others.Wait()
}

// group is the Takes of one request on their way.
type group struct {
	router *Router
	ctx    context.Context
	now    int64 // when the request came
	routes *routes

	owners []int // of the caller's calls, by index; asked: it is in none of the parts any more

	calls   []owner.Call // those to ask for, by owner
	results []owner.Result
	places  []place // where each of them comes from, and whom it was sent to
	parts   []part
	open    []int // those of calls that nobody has counted yet
}

// place is about one call of a group.
type place struct {
	at    int               // the caller's index
	asked membership.NodeID // the last node asked
}

// part is the calls of one owner.
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

// locate finds the owners, and says whether the request is known to be refused. A
// shadow that is known to be needs not be asked for.
func (g *group) locate(calls []owner.Call, verdicts []limit.Verdict) (refused bool) {
	for i := range calls {
		c, v := &calls[i], &verdicts[i]
		*v = limit.Verdict{}
		c.ID, c.Shadow = g.router.cfg.Seed.ID(c.Counter), c.Rule.Shadow
		var to int
		c.Partition, to = g.routes.locate(c.ID.Hi)
		if to != none && to != g.routes.self && g.router.denied.find(g.now, c, v) {
			v.Rule, to = c.Rule, asked
			refused = refused || !c.Shadow
		}
		g.owners = append(g.owners, to)
	}
	return refused
}

// gather puts the calls of each owner together: this node's first.
func (g *group) gather(calls []owner.Call) {
	g.gatherFor(g.routes.self, calls)
	for _, to := range g.owners {
		g.gatherFor(to, calls)
	}
}

func (g *group) gatherFor(to int, calls []owner.Call) {
	from := len(g.calls)
	for i := range calls {
		if to == asked || g.owners[i] != to {
			continue
		}
		g.owners[i] = asked
		g.calls = append(g.calls, calls[i])
		g.calls[len(g.calls)-1].Joined = len(g.calls)-1 > from
		g.results = append(g.results, owner.Result{})
		g.places = append(g.places, place{at: i})
	}
	if len(g.calls) > from {
		g.parts = append(g.parts, part{from: from, to: len(g.calls), owner: to})
	}
}

// refusedHere looks, before others are asked, whether this node refuses: a client
// who is over a limit that is counted here costs no hop. Then that is all there is
// of the group.
func (g *group) refusedHere() bool {
	if len(g.parts) < 2 || g.parts[0].owner != g.routes.self {
		return false
	}
	n := g.parts[0].to
	calls, results := g.calls[:n], g.results[:n]
	setMode(calls, limit.Peek)
	g.router.cfg.Local.DecideGroup(g.ctx, g.now, g.now, calls, results)
	setMode(calls, limit.Take)
	if results[0].Err != nil || !owner.Refused(calls, results) {
		return false
	}
	for i := range calls {
		g.router.note(g.now, &calls[i], &results[i].Verdict, true)
	}
	g.router.heard(g.now, true)
	g.places = g.places[:n] // the others have nothing to report
	return true
}

func setMode(calls []owner.Call, m limit.Mode) {
	for i := range calls {
		calls[i].Mode = m
	}
}

// settle has on_failure answer for those that no owner has, and gives everything
// back if the request is refused. Its error is that of a caller who has gone; what
// was taken for him is given back as well.
func (g *group) settle() error {
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
		onFailure := c.Rule.OnFailure
		v, _ := r.fail(g.now, c, g.places[i].asked, result.Err)
		*result = owner.Result{Verdict: v, Taken: v.Allowed && c.Mode == limit.Take && onFailure == limit.FailLocal}
		refused = refused || !v.Allowed && !c.Shadow
	}
}

// giveBack undoes what was taken. The verdicts are as if it never had been.
func (g *group) giveBack() {
	for i := range g.calls {
		c, result := &g.calls[i], &g.results[i]
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

// report hands the verdicts to the caller.
func (g *group) report(calls []owner.Call, verdicts []limit.Verdict) {
	for i, p := range g.places {
		verdicts[p.at] = g.results[i].Verdict
		verdicts[p.at].Rule = calls[p.at].Rule // on_failure counts by another
	}
}
