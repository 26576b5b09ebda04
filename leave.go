package ringlimit

import (
	"context"
	"errors"

	"github.com/ringlimit/ringlimit/membership"
)

// ErrLeft is the answer of a node that has left its cluster.
var ErrLeft = errors.New("ringlimit: the node has left its cluster")

// Leave says goodbye to the cluster, lets the peers' checks finish and returns
// when every goroutine of the node has ended. Until the others have heard it the
// node goes on deciding; afterwards its checks fail with ErrLeft. Calls after
// the first return what it returned.
func (n *Node) Leave(ctx context.Context) error {
	n.leave.Do(func() {
		n.leaving.Store(true)
		n.left = errors.Join(n.gossip.Announce(membership.Draining, 1), n.gossip.Leave(ctx))
		n.close(ctx)
	})
	return n.left
}

// close ends what was started, in the reverse order, as far as Start came.
func (n *Node) close(ctx context.Context) {
	n.gone.Store(true)
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
	n.left = errors.Join(n.left, n.pool.Close())
	n.metrics.unregister()
}
