package ringlimit

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/ringlimit/ringlimit/forward"
	"github.com/ringlimit/ringlimit/limit"
	"github.com/ringlimit/ringlimit/owner"
)

// ErrLeft is the answer of a node that has left its cluster. Nothing was counted.
var ErrLeft error = hasLeft{}

type hasLeft struct{}

func (hasLeft) Error() string { return "ringlimit: the node has left its cluster" }

// Unavailable has doors answer 503, for another node can be asked, and not 500.
func (hasLeft) Unavailable() bool { return true }

// Drain gives every counter of this node to the node that is to own it next, and
// returns when the others have them, or when there is no other. Until then it
// goes on deciding, and afterwards it forwards. A member that only joins is waited
// for, and one that crashed, until gossip has noticed: it might be back. When ctx
// ends before that, the error says how many partitions were left: their counters
// go with this node, but for the copies that others have. To drain again is to go
// on waiting.
func (n *Node) Drain(ctx context.Context) error {
	n.leaving.Store(true)
	if n.gone.Load() {
		return ErrLeft
	}
	return n.driver.Drain(ctx)
}

// Leave drains the node (see Drain), says goodbye to the cluster, lets the
// peers' checks finish and returns when every goroutine of the node has ended;
// afterwards its checks fail with ErrLeft. When ctx ends before, the rest is cut
// short, and the error says what was lost. Calls after the first return what it
// returned.
func (n *Node) Leave(ctx context.Context) error {
	n.leave.Do(func() {
		drained := n.Drain(ctx)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), goodbye)
		defer cancel()
		n.driver.Depart()
		if err := n.gossip.Leave(ctx); err != nil { // when a whole cluster stops, nobody may be left to hear it
			n.cfg.Logger.Info("nobody heard the goodbye; who is left will find out by probing", "error", err)
		}
		n.left = drained
		n.close(ctx)
	})
	return n.left
}

// close ends what was started, in the reverse order, as far as Start came.
func (n *Node) close(ctx context.Context) {
	n.gone.Store(true)
	if n.router != nil {
		n.router.end(ctx)
	}
	if n.stop != nil {
		n.server.Stop(ctx)
	}
	if n.peer != nil {
		n.peer.Close() // the server has closed it, unless it never served
	}
	if n.gossip != nil {
		n.left = errors.Join(n.left, n.gossip.Close())
	}
	if n.stop != nil {
		n.stop()
	}
	n.background.Wait()
	if n.pool != nil {
		n.left = errors.Join(n.left, n.pool.Close())
	}
	n.metrics.unregister()
}

// router is that of a node which may leave at any moment: what it sends in the
// background for a request, it sends before the node is gone.
type router struct {
	*forward.Router
	running atomic.Int64 // requests with several limits: others send nothing later
	ending  atomic.Bool
	idle    chan struct{} // receives when the last of them has ended
}

func newRouter(r *forward.Router) *router { return &router{Router: r, idle: make(chan struct{}, 1)} }

// DecideAll is forward's, until the end.
func (r *router) DecideAll(ctx context.Context, calls []owner.Call, verdicts []limit.Verdict) error {
	r.running.Add(1)
	defer r.done()
	if r.ending.Load() {
		return ErrLeft
	}
	return r.Router.DecideAll(ctx, calls, verdicts)
}

func (r *router) done() {
	if r.running.Add(-1) == 0 && r.ending.Load() {
		select {
		case r.idle <- struct{}{}:
		default:
		}
	}
}

// end waits for the requests that are under way, and for what is given back after
// them, until ctx ends. What is left then ends within the deadline of checks.
func (r *router) end(ctx context.Context) {
	r.ending.Store(true)
	for r.running.Load() > 0 {
		select {
		case <-r.idle:
		case <-ctx.Done():
			return
		}
	}
	through := make(chan struct{})
	go func() {
		r.Close()
		close(through)
	}()
	select {
	case <-through:
	case <-ctx.Done():
	}
}
