package ringlimit

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ringlimit/ringlimit/forward"
	"github.com/ringlimit/ringlimit/forward/peerrpc"
	"github.com/ringlimit/ringlimit/front/httpfront"
	"github.com/ringlimit/ringlimit/limit"
	"github.com/ringlimit/ringlimit/membership"
	"github.com/ringlimit/ringlimit/membership/gossip"
	"github.com/ringlimit/ringlimit/owner"
	"github.com/ringlimit/ringlimit/ring"
	"github.com/ringlimit/ringlimit/rules"
)

// Request is one check; see [limit.Request].
type Request = limit.Request

// Verdict is the answer to one; see [limit.Verdict].
type Verdict = limit.Verdict

// Node is one member of a cluster: it decides for the counters it owns and
// forwards the checks of the others. It is safe for concurrent use.
type Node struct {
	cfg    Config
	self   membership.Member // ID, boot and addresses; its state is the gossip's
	clock  *limit.Clock
	params ring.Params
	ring   *ring.Ring // the latest one; follow's alone

	table    *owner.Table
	fallback *owner.Table
	router   *forward.Router
	pool     *peerrpc.Pool
	server   *peerrpc.Server
	peer     net.Listener
	gossip   *gossip.Gossip
	metrics  *metrics
	scratch  sync.Pool // of *scratch

	view    atomic.Pointer[membership.View]
	serving chan struct{} // closed once the node stands in a ring of its own making, or may only forward
	leaving atomic.Bool

	background sync.WaitGroup
	stop       context.CancelFunc
	leave      sync.Once
	left       error
}

// scratch is what one check needs while it runs; pooled, so that a check on a
// counter of this node allocates nothing.
type scratch struct {
	req     Request
	match   rules.Match
	call    owner.Call
	verdict Verdict
}

// Start opens the node's listeners, joins the cluster and returns once checks
// are answered. If none of cfg.Join answers within cfg.JoinTimeout, the node
// logs so, serves alone and keeps trying.
func Start(ctx context.Context, cfg Config) (*Node, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("ringlimit: %w", err)
	}
	secrets, err := deriveKeys(cfg.Secret)
	if err != nil {
		return nil, fmt.Errorf("ringlimit: %w", err)
	}
	n, err := newNode(cfg, secrets)
	if err != nil {
		return nil, fmt.Errorf("ringlimit: %w", err)
	}
	if err := n.open(secrets); err != nil {
		n.close(ctx)
		return nil, fmt.Errorf("ringlimit: %w", err)
	}
	n.run()
	if err := n.join(ctx); err != nil {
		n.close(ctx)
		return nil, fmt.Errorf("ringlimit: %w", err)
	}
	return n, nil
}

// newNode assembles the parts that need no socket.
func newNode(cfg Config, secrets keys) (*Node, error) {
	nobody, err := ring.New(ring.Defaults(), nil)
	if err != nil {
		return nil, err
	}
	n := &Node{
		cfg:     cfg,
		clock:   limit.NewClock(),
		params:  ring.Defaults(),
		ring:    nobody,
		serving: make(chan struct{}),
		scratch: sync.Pool{New: func() any { return new(scratch) }},
	}
	n.table = owner.NewTable(owner.Config{Partitions: n.params.Partitions, Memory: cfg.Memory, Now: n.clock.Now})
	n.fallback = newFallbackTable(cfg.Memory, n.clock.Now)
	n.metrics = newMetrics(n)
	n.router = forward.NewRouter(forward.Config{
		Self:             membership.NodeID(cfg.Name),
		Local:            n.table,
		Fallback:         n.fallback,
		Seed:             secrets.seed,
		Now:              n.clock.Now,
		Deadline:         cfg.Deadline,
		FallbackCapacity: cfg.FallbackCapacity,
		Observer:         n.metrics,
		Logger:           cfg.Logger,
	})
	n.pool = peerrpc.NewPool(peerrpc.PoolConfig{
		Self:   membership.NodeID(cfg.Name),
		Token:  secrets.token,
		Now:    n.clock.Now,
		Dial:   cfg.dial,
		Logger: cfg.Logger,
	})
	n.server = peerrpc.NewServer(peerrpc.ServerConfig{
		Self:      membership.NodeID(cfg.Name),
		Token:     secrets.token,
		Table:     n.table,
		Seed:      secrets.seed,
		Partition: nobody.Partition, // the same in every ring
		Hint:      n.router.OwnerOf,
		Now:       n.clock.Now,
		Logger:    cfg.Logger,
	})
	for r := range cfg.Rules.Rules() {
		n.table.Learn(r)
	}
	n.router.Publish(nobody, n.peerIn(membership.View{}))
	return n, nil
}

// fallbackShare is the part of the memory bound that fallback counters may use
// on top of it: they exist only while owners cannot be asked.
const fallbackShare = 16

func newFallbackTable(memory int64, now func() int64) *owner.Table {
	t := owner.NewTable(owner.Config{Partitions: 1, Memory: max(memory/fallbackShare, 1<<20), Now: now})
	t.SetPhase(0, owner.Holding)
	return t
}

// open binds the sockets. Nothing runs yet but the gossip's own listeners.
func (n *Node) open(secrets keys) error {
	if err := n.metrics.register(n.cfg.Registerer); err != nil {
		return err
	}
	var err error
	if n.peer, err = n.cfg.listen("tcp", n.cfg.Peer); err != nil {
		return fmt.Errorf("peer: %w", err)
	}
	n.self = n.cfg.self(newBootID(), n.cfg.advertised(n.peer.Addr()), n.params.Placement())
	cfg := gossip.Config{
		Self:    n.self,
		Bind:    n.cfg.Gossip,
		Join:    n.cfg.Join,
		Key:     secrets.gossip,
		Cluster: n.cfg.Cluster,
		Logger:  n.cfg.Logger,
	}
	if n.cfg.Advertise != "" {
		_, port, _ := net.SplitHostPort(n.cfg.Gossip)
		cfg.Advertise = net.JoinHostPort(n.cfg.Advertise, port)
	}
	if n.cfg.tuneGossip != nil {
		n.cfg.tuneGossip(&cfg)
	}
	n.gossip, err = gossip.Start(cfg)
	return err
}

// newBootID is larger for a later run: the wall clock orders the runs of a node.
func newBootID() membership.BootID { return membership.BootID(time.Now().UnixNano()) }

// run starts the node's goroutines; close waits for them.
func (n *Node) run() {
	ctx, stop := context.WithCancel(context.Background())
	n.stop = stop
	n.background.Go(func() { n.table.Run(ctx) })
	n.background.Go(func() { n.fallback.Run(ctx) })
	n.background.Go(func() { n.follow(ctx) })
	n.background.Go(func() {
		if err := n.server.Serve(n.peer); err != nil {
			n.cfg.Logger.Error("the peer port stopped", "error", err)
		}
	})
}

// join finds the cluster and waits until this node's ring stands.
func (n *Node) join(ctx context.Context) error {
	if len(n.cfg.Join) > 0 {
		joining, cancel := context.WithTimeout(ctx, n.cfg.JoinTimeout)
		err := n.gossip.Join(joining)
		cancel()
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, gossip.ErrPlacement):
			return err // two rings would give each counter two owners
		case err != nil:
			n.cfg.Logger.Warn("no member answered; serving alone and trying on", "error", err)
		}
	}
	if err := n.gossip.SetState(membership.Serving); err != nil {
		return err
	}
	select {
	case <-n.serving:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Name is the node's id.
func (n *Node) Name() string { return n.cfg.Name }

// PeerAddr is where other nodes send their checks.
func (n *Node) PeerAddr() string { return n.cfg.advertised(n.peer.Addr()) }

// GossipAddr is what another node gives as Join.
func (n *Node) GossipAddr() string { return n.gossip.Addr() }

// Ready is nil while the node serves, else says why it does not.
func (n *Node) Ready() error {
	if n.leaving.Load() {
		return errors.New("draining")
	}
	select {
	case <-n.serving:
		return nil
	default:
		return errors.New("joining")
	}
}

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

// Leave says goodbye to the cluster, lets the peers' checks finish and returns
// when every goroutine of the node has ended. The node answers no check
// afterwards. Calls after the first return what it returned.
func (n *Node) Leave(ctx context.Context) error {
	n.leave.Do(func() {
		n.leaving.Store(true)
		n.left = errors.Join(n.gossip.SetState(membership.Draining), n.gossip.Leave(ctx))
		n.close(ctx)
	})
	return n.left
}

// close ends what was started, in the reverse order, as far as Start came.
func (n *Node) close(ctx context.Context) {
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
