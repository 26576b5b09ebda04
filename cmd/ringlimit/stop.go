package main

import (
	"cmp"
	"context"
	"sync"
	"time"
)

// requestsTimeout is how long a stop waits for requests under way. Others bound
// the rest: --drain-timeout the hand-over, the node its goodbye.
const requestsTimeout = 20 * time.Second

// departing is a node that is to stop: a *ringlimit.Node.
type departing interface {
	// Drain gives all counters to other nodes, or says how many are left when
	// ctx ends. The node goes on answering.
	Drain(ctx context.Context) error
	// Leave ends the node; what Drain has left is lost when ctx ends.
	Leave(ctx context.Context) error
}

// end stops a node in order: load balancers are told, the counters go to other
// nodes, the doors close, the node leaves. Until the doors close it answers. The
// error says that counters were left when the time for them was over.
func (r *running) end(ctx context.Context, node departing) error {
	r.log.Info("draining")
	r.stand.draining.Store(true)
	r.grpc.SetReady(false)
	noticed := time.After(r.notice)
	draining, cancel := context.WithTimeout(ctx, r.settings.drainTimeout)
	defer cancel()
	left := r.handOver(draining, node)
	<-noticed
	r.closeDoors(ctx) // before the node goes: a request under way needs it
	err := node.Leave(draining)
	if err != nil && left == nil {
		r.log.Warn("the node did not end in order", "error", err)
	}
	r.log.Info("left")
	return left
}

func (r *running) handOver(ctx context.Context, node departing) error {
	began := time.Now()
	if err := node.Drain(ctx); err != nil {
		patience := r.settings.drainTimeout
		r.log.Error("stopping before all counters were handed over: the nodes that take over what is left begin from their copies, which may lack 1 % of a limit, and where there is no copy afresh",
			"drain_timeout", patience, "error", err)
		return r.from.wrong("drain-timeout", "not all counters were handed over in %v: %w", patience, err)
	}
	r.log.Info("drained", "took", time.Since(began).Round(time.Millisecond))
	return nil
}

// closeDoors closes them together: a client who keeps one open must not take the
// time of the others.
func (r *running) closeDoors(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(r.requests, requestsTimeout))
	defer cancel()
	var closing sync.WaitGroup
	for _, s := range r.servers {
		closing.Go(func() { s.stop(ctx) })
	}
	closing.Wait()
}
