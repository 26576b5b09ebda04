package forward

import (
	"context"
	"slices"
	"sort"
	"sync"

	"github.com/ringlimit/ringlimit/limit"
	"github.com/ringlimit/ringlimit/membership"
	"github.com/ringlimit/ringlimit/owner"
)

// DecideEach answers calls that have nothing to do with each other, as Decide would
// each of them: Takes and Peeks. It calls answer once for each index, one call at a
// time and in the order in which the answers become known, perhaps from another
// goroutine, and returns when there are no more. The verdict is valid during that
// call; it is nil if there is an error, which is context.Canceled.
//
// All calls of one owner are handed over at once, so that they cost few wake-ups
// together. One that has to wait, or to be looked for, holds up no other; those of
// one counter are decided in their order, but while it changes hands.
//
// The caller fills in the Charge of each call; the rest is DecideEach's to change.
func (r *Router) DecideEach(ctx context.Context, calls []owner.Call, answer func(i int, v *limit.Verdict, err error)) {
	if len(calls) == 0 {
		return
	}
	m := r.many()
	m.ctx, m.now, m.routes, m.answer = ctx, r.cfg.Now(), r.routes.Load(), answer
	m.deadline = r.deadline(ctx, m.now)
	m.plan(calls)
	m.ask()
	m.receive()
	m.searches.Wait()
	m.release()
}

// many is independent calls on their way. What is known of a call lies at its own
// index, in the order of its owner; places leads to the caller's.
type many struct {
	router   *Router
	ctx      context.Context
	now      int64 // when they came
	deadline int64
	routes   *routes

	denial  limit.Verdict // of the deny cache
	owners  []int         // of the caller's calls; asked: it was answered at once
	ends    []int         // by owner + 1: how many calls; then, where its part ends
	calls   []owner.Call
	places  []int
	results []owner.Result // of this node's own

	inbox   *Inbox
	room    []Arrival // for the inbox
	open    []bool    // the inbox is to have the answer
	waiting int       // how many are
	late    bool      // one of them is this node's own

	answering sync.Mutex
	answer    func(i int, v *limit.Verdict, err error)
	searches  sync.WaitGroup
	queues    queues
}

func (r *Router) many() *many {
	m, ok := r.manies.Get().(*many)
	if !ok {
		m = &many{inbox: NewInbox()}
	}
	m.router = r
	return m
}

// release lets go of what is the caller's.
func (m *many) release() {
	clear(m.calls)
	clear(m.results)
	r := m.router
	*m = many{
		owners: m.owners[:0], ends: m.ends[:0], calls: m.calls[:0], places: m.places[:0],
		results: m.results[:0], inbox: m.inbox, room: m.room, open: m.open[:0],
	}
	r.manies.Put(m)
}

// plan finds the owners, puts the calls in their order, and answers what the deny
// cache knows.
func (m *many) plan(calls []owner.Call) {
	m.ends = append(m.ends, make([]int, 1+len(m.routes.peers))...)
	for i := range calls {
		to := m.locate(i, &calls[i])
		m.owners = append(m.owners, to)
		if to != asked {
			m.ends[to+1]++
		}
	}
	n := 0
	for at, own := range m.ends {
		m.ends[at] = n
		n += own
	}
	m.calls, m.places = slices.Grow(m.calls, n)[:n], slices.Grow(m.places, n)[:n]
	m.open = append(m.open, make([]bool, n)...)
	for i, to := range m.owners {
		if to != asked {
			k := m.ends[to+1]
			m.ends[to+1]++
			m.calls[k], m.places[k] = calls[i], i
		}
	}
}

func (m *many) locate(i int, c *owner.Call) (to int) {
	r := m.router
	c.ID = r.cfg.Seed.ID(c.Counter)
	c.Partition, to = m.routes.locate(c.ID.Hi)
	if to == none || to == m.routes.self || c.Mode != limit.Take {
		return to
	}
	if !r.denied.find(m.now, c, &m.denial) {
		return to
	}
	m.denial.Rule = c.Rule
	m.answer(i, &m.denial, nil)
	return asked
}

// ask hands all calls over, this node's own last: while it decides, the others do.
func (m *many) ask() {
	from := 0
	for at, to := range m.ends {
		if at-1 == none || at-1 != m.routes.self {
			m.send(at-1, from, to)
		}
		from = to
	}
	if m.routes.self != none {
		m.decideHere()
	}
}

// send asks another node, if there is time.
func (m *many) send(to, from, end int) {
	if from == end {
		return
	}
	if to == none || m.routes.peers[to] == nil {
		for k := from; k < end; k++ {
			m.search(k, nil)
		}
		return
	}
	err := m.ctx.Err()
	if err == nil && m.deadline <= m.now {
		err = ErrTimeout
	}
	if err != nil {
		for k := from; k < end; k++ {
			m.fail(k, m.nodeOf(k), err)
		}
		return
	}
	for k := from; k < end; k++ {
		m.await(k)
	}
	m.routes.peers[to].SendEach(m.calls[from:end], m.deadline, m.inbox, from)
}

// await leaves a call to the inbox.
func (m *many) await(k int) {
	m.open[k] = true
	m.waiting++
}

func (m *many) decideHere() {
	from, end := m.ends[m.routes.self], m.ends[m.routes.self+1]
	if from == end {
		return
	}
	m.results = slices.Grow(m.results, end-from)[:end-from]
	m.router.cfg.Local.DecideFrame(m.router.cfg.Now(), m.deadline, m.calls[from:end], m.results, m.inbox, uint64(from))
	for i := range m.results {
		m.settle(from+i, &m.results[i])
	}
	m.router.outage.answered(m.now)
}

// nodeOf is the node that a call was handed to.
func (m *many) nodeOf(k int) membership.NodeID {
	at := sort.SearchInts(m.ends, k+1)
	if at == 0 {
		return ""
	}
	return m.routes.ring.Nodes()[at-1]
}

// isHere says whether a call was handed to this node.
func (m *many) isHere(k int) bool {
	self := m.routes.self
	return self != none && m.ends[self] <= k && k < m.ends[self+1]
}
