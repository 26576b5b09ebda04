package ringlimit

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/ringlimit/ringlimit/forward"
	"github.com/ringlimit/ringlimit/forward/peerrpc"
	"github.com/ringlimit/ringlimit/limit"
	"github.com/ringlimit/ringlimit/membership"
	"github.com/ringlimit/ringlimit/membership/gossip"
	"github.com/ringlimit/ringlimit/owner"
	"github.com/ringlimit/ringlimit/owner/transfer"
	"github.com/ringlimit/ringlimit/ring"
)

// Start opens the node's listeners, joins the cluster and returns once checks
// are answered. If none of cfg.Join answers within cfg.JoinTimeout, the node
// logs so, serves alone and keeps trying. What is wrong with cfg comes as one or
// more *ConfigError.
func Start(ctx context.Context, cfg Config) (*Node, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	secrets, err := deriveKeys(cfg.Secret)
	if err != nil {
		return nil, err
	}
	n, err := newNode(cfg, secrets)
	if err != nil {
		return nil, err
	}
	if err := n.open(secrets); err != nil {
		n.close(ctx)
		return nil, err
	}
	n.run()
	if err := n.join(ctx); err != nil {
		// Some have us in their ring already, and must not wait for a dead node.
		bye, cancel := context.WithTimeout(context.WithoutCancel(ctx), goodbye)
		defer cancel()
		return nil, errors.Join(err, n.Leave(bye))
	}
	return n, nil
}

// goodbye is how long a node that could not start takes to say so.
const goodbye = 2 * time.Second

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
		settled: make(chan struct{}),
		scratch: sync.Pool{New: func() any { return new(scratch) }},
	}
	n.table = owner.NewTable(owner.Config{Partitions: n.params.Partitions, Memory: cfg.Memory, Now: n.clock.Now})
	n.fallback = newFallbackTable(cfg.Memory, n.clock.Now)
	n.metrics = newMetrics(n)
	for r := range cfg.Rules.Rules() {
		n.table.Learn(r)
	}
	n.router = n.newRouter(secrets)
	n.router.Publish(nobody, "", n.peerIn(membership.View{}))
	n.pool = n.newPool(secrets)
	n.server = n.newServer(secrets)
	return n, nil
}

func (n *Node) newRouter(secrets keys) *forward.Router {
	return forward.NewRouter(forward.Config{
		Self:             membership.NodeID(n.cfg.Name),
		Local:            tableLocal{n.table},
		Fallback:         n.fallback,
		Seed:             secrets.seed,
		Now:              n.clock.Now,
		Deadline:         n.cfg.Deadline,
		FallbackCapacity: n.cfg.FallbackCapacity,
		Observer:         n.metrics,
		Logger:           n.cfg.Logger,
	})
}

// tableLocal answers at once: so far no counter changes hands.
type tableLocal struct{ table *owner.Table }

func (l tableLocal) Decide(_ context.Context, now, _ int64, c *owner.Call, v *limit.Verdict) error {
	return l.table.Decide(now, c, v)
}

func (n *Node) newPool(secrets keys) *peerrpc.Pool {
	return peerrpc.NewPool(peerrpc.PoolConfig{
		Self:    membership.NodeID(n.cfg.Name),
		Boot:    n.cfg.boot,
		Token:   secrets.token,
		Now:     n.clock.Now,
		Dial:    n.cfg.dial,
		Refused: func(membership.NodeID) {}, // so far gossip alone says who is gone
		Logger:  n.cfg.Logger,
	})
}

func (n *Node) newServer(secrets keys) *peerrpc.Server {
	return peerrpc.NewServer(peerrpc.ServerConfig{
		Self:       membership.NodeID(n.cfg.Name),
		Token:      secrets.token,
		Decider:    tableDecider{n.table, n.router},
		Receive:    func(membership.NodeID, membership.BootID, transfer.Message) {}, // so far nobody says anything
		Partitions: n.params.Partitions,
		Seed:       secrets.seed,
		Partition:  n.ring.Partition, // the same in every ring
		Now:        n.clock.Now,
		Logger:     n.cfg.Logger,
	})
}

// tableDecider puts nothing off: so far no counter changes hands.
type tableDecider struct {
	*owner.Table
	router *forward.Router
}

func (d tableDecider) DecideFrame(now, _ int64, calls []owner.Call, results []owner.Result, _ owner.Late, _ uint64) {
	d.Table.DecideFrame(now, calls, results)
	for i := range results {
		if results[i].Err == owner.ErrNotHolder {
			hint, ring := d.router.OwnerOf(calls[i].Partition)
			results[i].Err = &transfer.NotMine{Hint: hint, Ring: ring}
		}
	}
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
		return &ConfigError{"peer", err}
	}
	n.self = n.cfg.self(n.cfg.boot, n.cfg.advertised(n.peer.Addr()), n.params.Placement())
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
	if n.gossip, err = gossip.Start(cfg); err != nil {
		return &ConfigError{"gossip", errors.New(strings.TrimPrefix(err.Error(), "gossip: "))}
	}
	return nil
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
	if err := n.gossip.Announce(membership.Serving, 0); err != nil {
		return err
	}
	select {
	case <-n.settled:
	case <-ctx.Done():
		return ctx.Err()
	}
	if n.superseded.Load() {
		return &ConfigError{"name", errSuperseded}
	}
	return nil
}
