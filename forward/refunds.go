package forward

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/ringlimit/ringlimit/limit"
	"github.com/ringlimit/ringlimit/owner"
)

// mostRefunds bounds how many refunds are on their way. An owner that hangs keeps
// each of them for a whole deadline.
const mostRefunds = 1024

// lostRefund is what an Observer calls a refund that was not delivered.
const lostRefund = "refund"

// refunds gives back what a request was charged that another limit has refused.
// Nobody waits for that.
type refunds struct {
	router *Router
	free   chan struct{} // one a refund that may be sent
	closed sync.Once
}

func newRefunds(r *Router) *refunds {
	f := &refunds{router: r, free: make(chan struct{}, mostRefunds)}
	for range mostRefunds {
		f.free <- struct{}{}
	}
	return f
}

// send gives back what a call has taken that was sent at taken. It keeps nothing
// of the call.
func (f *refunds) send(c *owner.Call, taken int64) {
	select {
	case <-f.free:
	default:
		f.router.cfg.Observer.ForwardFailed(lostRefund)
		return
	}
	back := *c
	back.Mode, back.Joined, back.Counter = limit.Refund, false, slices.Clone(c.Counter)
	go func() {
		f.deliver(&back, taken)
		f.free <- struct{}{}
	}()
}

// deliver sends a refund once: again only to another node, or later, when it was
// not counted.
func (f *refunds) deliver(c *owner.Call, taken int64) {
	r := f.router
	s := search{router: r, deadline: r.cfg.Now() + int64(r.cfg.Deadline), taken: taken}
	err := s.run(context.Background(), r.routes.Load(), c, new(limit.Verdict), nil)
	r.forget(c.ID) // after an error too: it may have been given back
	if err != nil {
		r.cfg.Observer.ForwardFailed(lostRefund)
	}
}

// close waits for those that are on their way. Those that come later are lost.
func (f *refunds) close() {
	f.closed.Do(func() {
		for range mostRefunds {
			<-f.free
		}
	})
}

// age is how long ago, at most, a cost was taken that is given back now: twice the
// time since it was asked for, for the refund has its way still before it.
func age(now, taken int64) time.Duration { return 2 * time.Duration(now-taken) }
