package peerrpc

import (
	"github.com/ringlimit/ringlimit/forward"
	"github.com/ringlimit/ringlimit/owner"
)

// seat is where the answer to one check of a frame goes: to who waits for it alone,
// or to a place among the answers of many.
type seat struct {
	waiter   *waiter
	inbox    *forward.Inbox
	index    int
	deadline int64 // Unix nanoseconds
}

func seatOf(w *waiter) seat { return seat{waiter: w, deadline: w.Deadline} }

func (s *seat) empty() bool { return s.waiter == nil && s.inbox == nil }

// answer is called once. An inbox has to be rung afterwards.
func (s *seat) answer(p *waiters, a *answer) {
	if s.inbox == nil {
		p.Finish(s.waiter, a)
		return
	}
	s.inbox.Put(s.index, &owner.Result{Verdict: a.verdict, Err: alone(a.err)})
}

// alone has a check asked for by itself whose rule the owner lacks: it then brings
// the rule.
func alone(err error) error {
	if err == errUnknownRule {
		return forward.ErrNoGroup
	}
	return err
}

func (s *seat) ring() {
	if s.inbox != nil {
		s.inbox.Ring()
	}
}

// ringer wakes each caller of many once for the answers that came together, as long
// as they lie side by side.
type ringer struct{ inbox *forward.Inbox }

// after notes that a seat has its answer.
func (r *ringer) after(s *seat) {
	if s.inbox == r.inbox {
		return
	}
	r.ring()
	r.inbox = s.inbox
}

func (r *ringer) ring() {
	if r.inbox != nil {
		r.inbox.Ring()
	}
}
