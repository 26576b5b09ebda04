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
	asked    membership.NodeID // the last node asked; empty while nobody owns anything
	here     bool              // it is this very process
	taken    int64             // when what a Refund gives back was asked for; 0 if nobody knows
	fresh    int64             // the time, if it was read just now: spares a reading; else 0
}

// run looks by t, then waits and looks again, for as long as nobody has counted
// the call and there is time. answered is what the owner by t, being s.asked, has
// answered already; nil when it was not asked. The verdict is in v unless there is an
// error.
func (s *search) run(ctx context.Context, t *routes, c *owner.Call, v *limit.Verdict, answered error) error {
	for {
		err := s.look(ctx, t, c, v, answered)
		if !uncounted(err) {
			return err
		}
		// The ring may be replaced meanwhile: ownership is looked up anew.
		if t, err = s.again(ctx, t, err); err != nil {
			return err
		}
		answered = nil
	}
}

// look asks the owner, unless it has answered, and the node that it hints at.
func (s *search) look(ctx context.Context, t *routes, c *owner.Call, v *limit.Verdict, answered error) error {
	err := answered
	if err == nil {
		var to int
		if c.Partition, to = t.locate(c.ID.Hi); to == none {
			s.asked, s.here = "", false
			return ErrNoOwner
		}
		if err = s.ask(ctx, t, t.ring.Nodes()[to], t.peers[to], c, v); err == nil {
			return nil
		}
	}
	elsewhere, ok := errors.AsType[*transfer.NotMine](err)
	if !ok || elsewhere.Hint == "" || elsewhere.Hint == s.asked {
		return err
	}
	return s.ask(ctx, t, elsewhere.Hint, t.way(elsewhere.Hint), c, v)
}

// ask lets one node decide.
func (s *search) ask(ctx context.Context, t *routes, id membership.NodeID, way Peer, c *owner.Call, v *limit.Verdict) (err error) {
	s.asked, s.here = id, id == t.id
	now := s.now()
	if s.taken != 0 {
		c.Age = age(now, s.taken)
	}
	switch {
	case now >= s.deadline:
		return ErrTimeout
	case s.here:
		*v = limit.Verdict{}
		return s.router.cfg.Local.Decide(ctx, now, s.deadline, c, v)
	case way == nil:
		return ErrAbsent
	}
	if *v, err = way.Check(ctx, c, s.deadline); err != nil {
		s.router.compare(t, err)
	}
	return err
}

func (s *search) now() int64 {
	if now := s.fresh; now != 0 {
		s.fresh = 0
		return now
	}
	return s.router.cfg.Now()
}

// compare tells the observer of a refusal by another ring than t's.
func (r *Router) compare(t *routes, answer error) {
	if elsewhere, ok := errors.AsType[*transfer.NotMine](answer); ok && elsewhere.Ring != t.ring.Fingerprint() {
		r.cfg.Observer.RingMismatch()
	}
}

// again returns the ring to look by next: one that has replaced t at once, else
// the one that there is in a while. Its error is the one to give up with: why,
// when there is no time left.
func (s *search) again(ctx context.Context, t *routes, why error) (*routes, error) {
	now := s.router.cfg.Now()
	if next := s.router.routes.Load(); next != t && now < s.deadline {
		return next, nil
	}
	if now+int64(lookAgain) >= s.deadline {
		return nil, why
	}
	pause := time.NewTimer(lookAgain)
	defer pause.Stop()
	select {
	case <-pause.C:
		return s.router.routes.Load(), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
