package forward

import (
	"sync"

	"github.com/ringlimit/ringlimit/limit"
	"github.com/ringlimit/ringlimit/owner"
)

// ask has all parts decided: each of them whole, or if its owner cannot, call by
// call. All owners are asked before one is waited for, and from this goroutine: to
// start another one would take half as long as a hop.
func (g *group) ask() {
	deadline := g.router.deadline(g.ctx, g.now)
	for i := range g.parts {
		g.send(&g.parts[i], deadline)
	}
	for i := range g.parts {
		g.receive(&g.parts[i], deadline)
	}
	if len(g.open) > 0 {
		g.searchAll(deadline)
	}
}

// searchAll has the open calls looked for side by side, the first of them from this
// goroutine. Of a request that an owner has refused nothing more is taken.
func (g *group) searchAll(deadline int64) {
	for _, i := range g.open {
		if c := &g.calls[i]; g.refused && c.Mode == limit.Take {
			c.Mode = limit.Peek
		}
	}
	var others sync.WaitGroup
	for _, i := range g.open[1:] {
		others.Go(func() { g.search(i, deadline) })
	}
	g.search(g.open[0], deadline)
	others.Wait()
}

// send asks another node, if there is time: what is charged for a caller who has
// given up already would be lost.
func (g *group) send(p *part, deadline int64) {
	if p.owner == none || p.owner == g.routes.self || deadline <= g.now {
		return
	}
	if way := g.routes.peers[p.owner]; way != nil {
		p.sent = way.Send(g.calls[p.from:p.to], g.results[p.from:p.to], deadline)
	}
}

// receive waits for the answers to a part. Of whatever nobody has counted, or was
// asked for, it makes open calls.
func (g *group) receive(p *part, deadline int64) {
	here := p.owner == g.routes.self && p.owner != none
	switch {
	case here:
		g.decideHere(p, deadline)
	case p.sent != nil:
		p.sent.Await(g.ctx)
	default:
		g.divide(p)
		return
	}
	asked := g.routes.ring.Nodes()[p.owner]
	for i := p.from; i < p.to; i++ {
		g.places[i].asked = asked
	}
	switch err := g.results[p.from].Err; {
	case p.to-p.from == 1 && uncounted(err):
		g.router.compare(g.routes, err)
		g.open = append(g.open, p.from)
	case p.to-p.from > 1 && divisible(err):
		g.divide(p)
	default:
		g.hear(p, here)
	}
}

func (g *group) decideHere(p *part, deadline int64) {
	calls, results := g.calls[p.from:p.to], g.results[p.from:p.to]
	if len(calls) > 1 {
		g.router.cfg.Local.DecideGroup(g.ctx, g.now, deadline, calls, results)
		return
	}
	r := &results[0]    // by itself it may wait while its partition changes hands
	*r = owner.Result{} // what refusedHere has seen is no word on what is taken
	r.Err = g.router.cfg.Local.Decide(g.ctx, g.now, deadline, &calls[0], &r.Verdict)
	r.Taken = r.Verdict.Allowed && calls[0].Mode == limit.Take // also when its copy is late
}

// divide has each call of a part asked for by itself, of its owner first.
func (g *group) divide(p *part) {
	for i := p.from; i < p.to; i++ {
		g.results[i], g.places[i].asked = owner.Result{}, ""
		g.open = append(g.open, i)
	}
}

// hear notes the verdicts of a part, and whether they refuse the request.
func (g *group) hear(p *part, here bool) {
	for i := p.from; i < p.to; i++ {
		if r := &g.results[i]; r.Err == nil {
			g.router.note(g.now, &g.calls[i], &r.Verdict, here)
		}
	}
	if g.results[p.from].Err == nil {
		g.router.heard(g.now, here)
	}
	g.refused = g.refused || owner.Refused(g.calls[p.from:p.to], g.results[p.from:p.to])
}

// search has an open call decided, wherever its counter is. Its owner may have
// answered already that it is not there.
func (g *group) search(i int, deadline int64) {
	r, c, result, place := g.router, &g.calls[i], &g.results[i], &g.places[i]
	s := search{router: r, deadline: deadline, asked: place.asked, here: place.asked == g.routes.id}
	answered := result.Err
	*result = owner.Result{}
	result.Err = s.run(g.ctx, g.routes, c, &result.Verdict, answered)
	place.asked = s.asked
	sure := result.Err == nil || s.here // this node knows what it has charged when its copy is late
	result.Taken = sure && result.Verdict.Allowed && c.Mode == limit.Take
	if result.Err == nil {
		r.heard(g.now, s.here)
		r.note(g.now, c, &result.Verdict, s.here)
	}
}
