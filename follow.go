package ringlimit

import (
	"context"
	"time"

	"github.com/ringlimit/ringlimit/forward"
	"github.com/ringlimit/ringlimit/membership"
	"github.com/ringlimit/ringlimit/owner/transfer"
	"github.com/ringlimit/ringlimit/ring"
)

// follow hands the gossip's views on until ctx ends, in their order.
func (n *Node) follow(ctx context.Context) {
	for {
		select {
		case v := <-n.gossip.Views():
			n.adopt(v)
		case <-ctx.Done():
			return
		}
	}
}

// adopt takes over a view. The addresses come first: the driver sends messages
// to the members, and has the ring published, before it returns. Connections are
// closed last, when nobody is given them any more.
func (n *Node) adopt(v membership.View) {
	n.book.update(v, time.Now())
	n.view.Store(&v)
	n.driver.Members(v)
	n.pool.Retain(n.book.members())
	n.puller.notice()
}

// publish is the driver's: it is called under its lock, so in order.
func (n *Node) publish(r *ring.Ring) {
	n.router.Publish(r, n.standing(), n.way)
}

// standing is which node this process is: none if a later process has taken its
// name, or both would decide. It then asks that one.
func (n *Node) standing() membership.NodeID {
	if m, ok := n.book.find(n.self.ID); ok && m.Boot > n.self.Boot {
		return ""
	}
	return n.self.ID
}

// way is how to reach a node; nil when its address is not known (yet): others
// may have told us of a member that gossip has not.
func (n *Node) way(id membership.NodeID) forward.Peer {
	if m, ok := n.book.find(id); ok {
		return n.pool.Peer(m)
	}
	return nil
}

// send is the driver's. To a node whose address is not known the message is
// lost, as one on the way can be.
func (n *Node) send(to membership.NodeID, m transfer.Message) {
	if member, ok := n.book.find(to); ok {
		n.pool.Post(member, m)
	}
}

// dial is the driver's.
func (n *Node) dial(id membership.NodeID) {
	if m, ok := n.book.find(id); ok {
		n.pool.Probe(m)
	}
}

// word is what this node says of itself.
type word struct {
	state membership.State
	seq   uint64
}

// announce is the driver's. The latest word wins, as it does at those who hear it.
func (n *Node) announce(state membership.State, seq uint64) {
	select {
	case <-n.words:
	default:
	}
	n.words <- word{state, seq}
}

// spread gossips what the driver announces: gossip takes its time, which the
// driver does not have.
func (n *Node) spread(ctx context.Context) {
	for {
		select {
		case w := <-n.words:
			if err := n.gossip.Announce(w.state, w.seq); err != nil {
				n.cfg.Logger.Debug("the others were not told", "state", w.state.String(), "error", err)
			}
		case <-ctx.Done():
			return
		}
	}
}
