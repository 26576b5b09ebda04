package ringlimit

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/ringlimit/ringlimit/forward/peerrpc"
	"github.com/ringlimit/ringlimit/front/httpfront"
	"github.com/ringlimit/ringlimit/limit"
	"github.com/ringlimit/ringlimit/membership"
	"github.com/ringlimit/ringlimit/membership/gossip"
	"github.com/ringlimit/ringlimit/owner"
	"github.com/ringlimit/ringlimit/owner/driver"
	"github.com/ringlimit/ringlimit/ring"
	"github.com/ringlimit/ringlimit/rules"
	"github.com/ringlimit/ringlimit/rules/live"
)

// Request is one check; see [limit.Request].
type Request = limit.Request

// Verdict is the answer to one; see [limit.Verdict].
type Verdict = limit.Verdict

// Node is one member of a cluster: it decides for the counters it owns and
// forwards the checks of the others. It is safe for concurrent use.
type Node struct {
	cfg    Config
	self   membership.Member // ID, boot and addresses; its state is the driver's
	clock  *limit.Clock
	params ring.Params
	nobody *ring.Ring // of no members

	table    *owner.Table
	fallback *owner.Table
	driver   *driver.Driver
	router   *router
	pool     *peerrpc.Pool
	server   *peerrpc.Server
	peer     net.Listener
	gossip   *gossip.Gossip
	store    *live.Store               // of the rules
	stopgap  atomic.Pointer[rules.Set] // what is enforced while the store lacks the cluster's rules; else nil
	behind   chan struct{}             // closed when there is a stopgap
	puller   *puller
	metrics  *metrics
	scratch  sync.Pool // of *scratch
	batches  sync.Pool // of *batch

	view  atomic.Pointer[membership.View]
	book  book
	words chan word // what is to be gossiped of this node

	joined  atomic.Bool // the node has served, and held what it owned
	leaving atomic.Bool // Drain or Leave has begun
	gone    atomic.Bool // nothing is answered any more

	background sync.WaitGroup
	stop       context.CancelFunc
	leave      sync.Once
	left       error
}

// scratch is what one check needs while it runs; pooled, so that a check on one
// counter of this node allocates nothing.
type scratch struct {
	req     Request
	matches rules.Matches
	call    owner.Call
	calls   []owner.Call // when there are several
	verdict Verdict
	stripe  int // of the metrics; a pool keeps what a core uses with that core
}

func (n *Node) newScratch() any { return &scratch{stripe: n.metrics.tallies.stripe()} }

// Name is the node's id.
func (n *Node) Name() string { return n.cfg.Name }

// PeerAddr is where other nodes send their checks.
func (n *Node) PeerAddr() string { return n.cfg.advertised(n.peer.Addr()) }

// GossipAddr is what another node gives as Join.
func (n *Node) GossipAddr() string { return n.gossip.Addr() }

// Ready is nil once the node serves and has taken over the counters that it owns,
// until it drains. It depends on no other node: one that has lost the others, or
// that is just taking over more, answers too, if need be by on_failure.
func (n *Node) Ready() error {
	switch {
	case n.driver.Superseded():
		return errSuperseded
	case n.leaving.Load():
		return errors.New("draining")
	case !n.joined.Load():
		return errors.New("joining")
	}
	return nil
}

var errSuperseded = errors.New("another process, started later, runs under this node's name; give one of them another")

// Members lists the cluster as this node sees it, itself included.
func (n *Node) Members() []membership.Member {
	if v := n.view.Load(); v != nil {
		return v.Members
	}
	return nil
}

// Middleware limits what reaches next: refused requests are answered 429 with
// the headers and the body that docs/gateways.md describes.
func (n *Node) Middleware(next http.Handler) http.Handler {
	return httpfront.Middleware(httpfront.Config{Checker: n, Identity: n.cfg.Identity, Logger: n.cfg.Logger})(next)
}
