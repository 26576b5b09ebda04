package forward

import (
	"context"
	"errors"
	"time"

	"github.com/ringlimit/ringlimit/limit"
	"github.com/ringlimit/ringlimit/membership"
	"github.com/ringlimit/ringlimit/owner"
	"github.com/ringlimit/ringlimit/owner/transfer"
)

// lookAgain is how long to wait before asking again who holds a counter: about
// as long as a partition takes to change hands.
const lookAgain = 5 * time.Millisecond

// search looks for the holder of a counter until one decides. Views differ for
// a while after a change, so the node that the ring names may not hold it.
type search struct {
	router   *Router
	deadline int64
	hinted   bool              // a hint was followed
	asked    membership.NodeID // the last node asked
	here     bool              // it is this very process
}

// run follows one hint, then waits and looks again, for as long as nobody has
// counted the call and there is time.
func (s *search) run(ctx context.Context, c *owner.Call) (limit.Verdict, error) {
	for {
		// The ring may have been replaced meanwhile: ownership is looked up anew.
		t := s.router.routes.Load()
		v, err := s.round(ctx, t, c)
		if !errors.Is(err, owner.ErrNotHolder) {
			return v, err
		}
		if s.router.routes.Load() != t {
			continue
		}
		if err := s.wait(ctx, err); err != nil {
			return limit.Verdict{}, err
		}
	}
}

// round asks the owner, and the node it hints at.
func (s *search) round(ctx context.Context, t *routes, c *owner.Call) (limit.Verdict, error) {
	var to int
	if c.Partition, to = t.locate(c.ID.Hi); to == none {
		return limit.Verdict{}, ErrNoOwner
	}
	v, err := s.ask(ctx, t, to, c)
	if err == nil || s.hinted {
		return v, err
	}
	hint := t.index(hintOf(err))
	if hint == none || hint == to {
		return v, err
	}
	s.hinted = true
	return s.ask(ctx, t, hint, c)
}

// hintOf is the node that a NotMine names, or "".
func hintOf(err error) membership.NodeID {
	if elsewhere, ok := errors.AsType[*transfer.NotMine](err); ok {
		return elsewhere.Hint
	}
	return ""
}

func (s *search) ask(ctx context.Context, t *routes, to int, c *owner.Call) (limit.Verdict, error) {
	s.asked, s.here = t.ring.Nodes()[to], to == t.self
	now := s.router.cfg.Now()
	switch {
	case s.here:
		var v limit.Verdict
		err := s.router.cfg.Local.Decide(now, c, &v)
		return v, err
	case now >= s.deadline:
		return limit.Verdict{}, ErrTimeout
	}
	return t.peers[to].Check(ctx, c, s.deadline)
}

// wait returns the error to give up with, if there is no time to look again.
func (s *search) wait(ctx context.Context, why error) error {
	if s.router.cfg.Now()+int64(lookAgain) >= s.deadline {
		return why
	}
	t := time.NewTimer(lookAgain)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
