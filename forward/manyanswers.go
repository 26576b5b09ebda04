package forward

import (
	"sync"
	"time"

	"github.com/ringlimit/ringlimit/limit"
	"github.com/ringlimit/ringlimit/membership"
	"github.com/ringlimit/ringlimit/owner"
)

// receive waits for all that the inbox is to have. Others see to it that their
// answers come by the deadline; this node's own may never come.
func (m *many) receive() {
	if m.waiting == 0 {
		return
	}
	var overdue <-chan time.Time
	if m.late {
		t := time.NewTimer(time.Duration(m.deadline - m.router.cfg.Now()))
		defer t.Stop()
		overdue = t.C
	}
	for m.waiting > 0 {
		select {
		case <-m.inbox.Rung():
			m.drain()
		case <-overdue:
			m.giveUp(ErrTimeout)
			return
		case <-m.ctx.Done():
			m.giveUp(m.ctx.Err())
			return
		}
	}
}

// drain answers what has arrived.
func (m *many) drain() {
	arrived := m.inbox.Take(m.room)
	var now int64
	if len(arrived) > 0 {
		now = m.router.cfg.Now()
	}
	for i := range arrived {
		a := &arrived[i]
		m.open[a.Index] = false
		m.waiting--
		if a.Err == nil {
			m.heard(a.Index, time.Duration(now-m.now))
		}
		m.settle(a.Index, &a.Result)
	}
	clear(arrived)
	m.room = arrived[:0]
}

// heard notes that an owner has decided a call that was waited for.
func (m *many) heard(k int, took time.Duration) {
	r := m.router
	r.outage.answered(m.now)
	if m.isHere(k) {
		r.cfg.Observer.Waited(took)
	} else {
		r.cfg.Observer.Forwarded(took)
	}
}

// giveUp answers all that is still awaited. Who has answers after that puts them into
// the inbox, which nobody else may have then.
func (m *many) giveUp(why error) {
	m.drain() // it came before
	for k, open := range m.open {
		if open {
			m.fail(k, m.nodeOf(k), why)
		}
	}
	m.inbox = NewInbox()
}

// settle answers a call as the node does that was asked, or has it looked for.
func (m *many) settle(k int, r *owner.Result) {
	here := m.isHere(k)
	switch err := r.Err; {
	case err == nil:
		m.decided(k, &r.Verdict, here)
	case err == owner.ErrLater:
		m.late = true
		m.await(k)
	case err == ErrNoGroup:
		m.search(k, nil)
	case uncounted(err):
		if !here {
			m.router.compare(m.routes, err)
		}
		m.search(k, err)
	default:
		m.fail(k, m.nodeOf(k), err)
	}
}

// decided answers with an owner's verdict.
func (m *many) decided(k int, v *limit.Verdict, here bool) {
	c := &m.calls[k]
	v.Rule = c.Rule
	m.router.note(m.now, c, v, here)
	m.tell(k, v, nil)
}

// fail answers a call that no owner has decided.
func (m *many) fail(k int, asked membership.NodeID, why error) {
	c := &m.calls[k]
	rule := c.Rule // on_failure counts by another
	v, err := m.router.fail(m.now, c, asked, why)
	if err != nil {
		m.tell(k, nil, err)
		return
	}
	v.Rule = rule
	m.tell(k, &v, nil)
}

func (m *many) tell(k int, v *limit.Verdict, err error) {
	m.answering.Lock()
	defer m.answering.Unlock()
	m.answer(m.places[k], v, err)
}

// maxSeekers is how many counters of one batch are looked for at once, each by a
// goroutine of its own. When an owner is gone, that may be all of them, until the
// deadline.
const maxSeekers = 128

// queues are the calls that are looked for, by counter: side by side those of
// different ones, in their order those of the same.
type queues struct {
	mu      sync.Mutex
	of      map[owner.ID][]stray // there while somebody looks, or will
	next    []owner.ID           // nobody looks for them yet
	seekers int
}

// stray is a call that nobody has counted. answered is what the node has said that
// it was handed to; nil when that is still to be asked, or again.
type stray struct {
	call     int
	answered error
}

// search has a call decided in the background, wherever its counter is.
func (m *many) search(k int, answered error) {
	if id := m.calls[k].ID; m.queues.add(id, stray{k, answered}) {
		m.searches.Go(func() { m.searchAll(id) })
	}
}

// searchAll looks for the calls of one counter until there are no more, and then for
// those of others.
func (m *many) searchAll(id owner.ID) {
	for s, ok := m.queues.take(&id); ok; s, ok = m.queues.take(&id) {
		m.seek(s.call, s.answered)
	}
}

// add says whether there is to be one more seeker, who begins with that counter.
func (q *queues) add(id owner.ID, s stray) (seek bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.of == nil {
		q.of = map[owner.ID][]stray{}
	}
	ahead, sought := q.of[id]
	q.of[id] = append(ahead, s)
	switch {
	case sought:
	case q.seekers == maxSeekers:
		q.next = append(q.next, id)
	default:
		q.seekers++
		seek = true
	}
	return seek
}

// take returns the next call of a seeker's counter, or the first one of a counter that
// nobody looks for, which id is from then on. Not ok: the seeker is not needed any more.
func (q *queues) take(id *owner.ID) (s stray, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.of[*id]) == 0 {
		delete(q.of, *id)
		if len(q.next) == 0 {
			q.seekers--
			return s, false
		}
		*id, q.next = q.next[0], q.next[1:]
	}
	waiting := q.of[*id]
	q.of[*id] = waiting[1:]
	return waiting[0], true
}

func (m *many) seek(k int, answered error) {
	r, c := m.router, &m.calls[k]
	s := search{router: r, deadline: m.deadline, asked: r.cfg.Self, here: true}
	if answered != nil {
		s.asked, s.here = m.nodeOf(k), m.isHere(k)
	}
	var v limit.Verdict
	if err := s.run(m.ctx, m.routes, c, &v, answered); err != nil {
		m.fail(k, s.asked, err)
		return
	}
	r.heard(m.now, s.here)
	m.decided(k, &v, s.here)
}
