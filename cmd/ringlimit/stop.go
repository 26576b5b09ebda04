package main

import (
	"cmp"
	"context"
	"time"

	"github.com/ringlimit/ringlimit"
)

// Bounds on a stop besides --drain-timeout: on waiting for requests, and on the
// goodbye after it, which must not suffer from a request that takes too long.
const (
	requestsTimeout = 20 * time.Second
	goodbyeTimeout  = 5 * time.Second
)

// departing is a node that is to stop: a *ringlimit.Node.
type departing interface {
	// Drain gives all counters to other nodes, or says how many are left when
	// ctx ends. The node goes on answering.
	Drain(ctx context.Context) error
	// Leave ends the node.
	Leave(ctx context.Context) error
}

// end stops a node in order: load balancers are told, the counters go to other
// nodes, the doors close, the node leaves. Until the doors close it answers. The
// error says that counters were left when the time for them was over.
func (r *running) end(ctx context.Context, node departing) error {
	r.log.Info("draining")
	r.stand.draining.Store(true)
	r.health.setReady(false)
	noticed := time.After(r.notice)
	left := r.handOver(ctx, node)
	<-noticed
	r.closeDoors(ctx) // before the node goes: a request under way needs it
	r.leave(ctx, node)
	return left
}

func (r *running) handOver(ctx context.Context, node departing) error {
	patience := r.settings.drainTimeout
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	began := time.Now()
	if err := node.Drain(ctx); err != nil {
		r.log.Error("stopping before all counters were handed over: the nodes that take over what is left begin from their copies, which may lack 1 % of a limit, and where there is no copy afresh",
			"drain_timeout", patience, "error", err)
		return r.from.wrong("drain-timeout", "not all counters were handed over in %v: %w", patience, err)
	}
	r.log.Info("drained", "took", time.Since(began).Round(time.Millisecond))
	return nil
}

func (r *running) closeDoors(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(r.requests, requestsTimeout))
	defer cancel()
	for _, s := range r.servers {
		s.stop(ctx)
	}
}

// leave ends the node. A goodbye that nobody hears is no failure of ours: when
// a whole cluster stops, there may be nobody left to hear it.
func (r *running) leave(ctx context.Context, node departing) {
	ctx, cancel := context.WithTimeout(ctx, goodbyeTimeout)
	defer cancel()
	if err := node.Leave(ctx); err != nil {
		r.log.Info("left without an orderly goodbye; the others will find out by probing", "error", err)
		return
	}
	r.log.Info("left")
}

// bare is a node that does not hand over: its counters end with it.
type bare struct{ *ringlimit.Node }

func (bare) Drain(context.Context) error { return nil }
