package forward

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ringlimit/ringlimit/limit"
	"github.com/ringlimit/ringlimit/membership"
	"github.com/ringlimit/ringlimit/owner"
	"github.com/ringlimit/ringlimit/ring"
)

// DefaultDeadline is how long a check may take when Config does not say.
const DefaultDeadline = 50 * time.Millisecond

// Config is what a Router needs. Fields without a default are required.
type Config struct {
	Self     membership.NodeID
	Local    Local    // the counters that this node holds
	Fallback Fallback // those it keeps while it cannot ask: partition 0 always holds
	Seed     owner.Seed
	Now      func() int64 // Unix nanoseconds
	// Deadline is how long a check may take, from the call of Decide to
	// on_failure; a context that ends sooner shortens it. 0 means
	// DefaultDeadline.
	Deadline time.Duration
	// DenyCacheSize is how many denials are remembered, and how many views of
	// several limits; 0 means DefaultDenyCacheSize.
	DenyCacheSize int
	// FallbackCapacity is how many checks a second on_failure: local may admit
	// in the whole cluster; a node admits its share. 0 means
	// DefaultFallbackCapacity.
	FallbackCapacity int64
	Observer         Observer
	Logger           *slog.Logger
}

// Router decides charges, here or one hop away.
type Router struct {
	cfg      Config
	routes   atomic.Pointer[routes]
	denied   *denyCache
	views    *views
	fallback *fallback
	outage   *outage
	groups   groups
	manies   sync.Pool // of *many
	refunds  *refunds
}

// NewRouter makes a router that knows no ring yet: it has no owner to ask. Close it.
func NewRouter(cfg Config) *Router {
	if cfg.Deadline <= 0 {
		cfg.Deadline = DefaultDeadline
	}
	r := &Router{
		cfg:      cfg,
		denied:   newDenyCache(cfg.DenyCacheSize),
		views:    newViews(cfg.DenyCacheSize),
		fallback: newFallback(cfg.Fallback, cfg.FallbackCapacity),
		outage:   &outage{observer: cfg.Observer, log: cfg.Logger},
	}
	r.refunds = newRefunds(r)
	r.routes.Store(&routes{self: none}) // so far nobody owns anything, and nobody is asked
	return r
}

// Close waits until the refunds that DecideAll has sent are through or lost: within
// a deadline. Later ones are lost; else the router goes on.
func (r *Router) Close() { r.refunds.close() }

// Publish replaces the ring. Checks under way see the new one when they look
// again. self is this node's name: the ring may lack it, and this node may still
// hold what it is giving away. It is empty when a later process has the name. peer
// is the way to another node, of the ring or, later on, of a hint; nil when there
// is no way that this node knows of. It must be safe for concurrent use and quick.
func (r *Router) Publish(rg *ring.Ring, self membership.NodeID, peer func(membership.NodeID) Peer) {
	r.routes.Store(newRoutes(rg, self, peer))
}

// Locate says which partition a counter lies in and who owns that in this
// node's ring; not ok: nobody does.
func (r *Router) Locate(counter []byte) (partition int, id membership.NodeID, ok bool) {
	t := r.routes.Load()
	partition, i := t.locate(r.cfg.Seed.ID(counter).Hi)
	if i == none {
		return partition, "", false
	}
	return partition, t.ring.Nodes()[i], true
}

// OwnerOf names the owner of a partition in this node's ring, and the ring: a
// hint for a node whose ring differs. The owner is empty when there is none.
func (r *Router) OwnerOf(partition int) (id membership.NodeID, fingerprint uint64) {
	t := r.routes.Load()
	if t.ring == nil {
		return "", 0
	}
	if i := t.ring.Owner(partition); i != none {
		id = t.ring.Nodes()[i]
	}
	return id, t.ring.Fingerprint()
}

// Decide answers a call into v: the owner's verdict, or on_failure's. The caller
// fills in the call's Charge; the rest of the call is Decide's to change.
//
// The error of a Take or a Peek is context.Canceled, and nothing else: a
// deadline that passes is a failure like another. A Refund that cannot be
// delivered is lost, and a *limit.RefundError says why; to make up a verdict would
// hide that.
func (r *Router) Decide(ctx context.Context, c *owner.Call, v *limit.Verdict) error {
	rule := c.Rule // on_failure counts by another
	c.ID = r.cfg.Seed.ID(c.Counter)
	err := r.decide(ctx, c, v)
	v.Rule = rule
	return err
}

func (r *Router) decide(ctx context.Context, c *owner.Call, v *limit.Verdict) (err error) {
	now := r.cfg.Now()
	t := r.routes.Load()
	var to int
	switch c.Partition, to = t.locate(c.ID.Hi); {
	case to == none:
	case to == t.self:
		// The context ends the wait by itself: its deadline is not worth a look.
		err = r.cfg.Local.Decide(ctx, now, now+int64(r.cfg.Deadline), c, v)
		if err == nil {
			r.outage.answered(now)
			v.Source = limit.SourceOwner
			return nil
		}
	case c.Mode == limit.Take:
		if r.denied.find(now, c, v) {
			return nil
		}
	}
	return r.forward(ctx, now, t, c, v, err)
}

// forward asks until somebody decides, or the time is up. ours is what this node
// has answered as the owner by t, perhaps after a while; nil when it is not.
func (r *Router) forward(ctx context.Context, now int64, t *routes, c *owner.Call, v *limit.Verdict, ours error) error {
	s := search{router: r, deadline: r.deadline(ctx, now), asked: r.cfg.Self, here: true}
	if ours == nil {
		s.fresh = now
	}
	err := s.run(ctx, t, c, v, ours)
	if c.Mode == limit.Refund {
		r.forget(c.ID) // after an error too: it may have been given back
	}
	if err == nil {
		r.heard(now, s.here)
		r.note(now, c, v, s.here)
		return nil
	}
	if *v, err = r.fail(now, c, s.asked, err); err != nil && c.Mode == limit.Refund {
		err = &limit.RefundError{Of: 1, Err: err}
	}
	return err
}

// forget drops what was said of a counter, for it has been given something back.
func (r *Router) forget(id owner.ID) {
	now := r.cfg.Now()
	r.denied.forget(now, id)
	r.views.forget(now, id)
}

// heard notes that an owner has decided what was asked at sent: here or elsewhere.
func (r *Router) heard(sent int64, here bool) {
	r.outage.answered(sent)
	if !here {
		r.cfg.Observer.Forwarded(time.Duration(r.cfg.Now() - sent))
	}
}

// note completes a verdict, and remembers it if another node denies.
func (r *Router) note(sent int64, c *owner.Call, v *limit.Verdict, here bool) {
	if here {
		v.Source = limit.SourceOwner
		return
	}
	v.Source = limit.SourceForwarded
	if c.Mode == limit.Take && !v.Allowed {
		r.denied.add(sent, r.cfg.Now(), c, v)
	}
}

// deadline is when the call has to be answered, in Unix nanoseconds.
func (r *Router) deadline(ctx context.Context, now int64) int64 {
	deadline := now + int64(r.cfg.Deadline)
	if d, ok := ctx.Deadline(); ok {
		deadline = min(deadline, r.cfg.Now()+int64(time.Until(d)))
	}
	return deadline
}

// fail answers a charge that no owner has decided.
func (r *Router) fail(now int64, c *owner.Call, asked membership.NodeID, err error) (limit.Verdict, error) {
	if errors.Is(err, context.Canceled) {
		return limit.Verdict{}, err // nobody waits for an answer
	}
	r.cfg.Observer.ForwardFailed(Reason(err))
	r.outage.failed(now, asked, err)
	if c.Mode == limit.Refund {
		return limit.Verdict{}, err
	}
	return r.fallback.decide(now, c, r.routes.Load().nodes()), nil
}
