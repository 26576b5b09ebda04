package ringlimit

import (
	"context"
	"errors"
	"net"
	"strings"
	"time"

	"github.com/ringlimit/ringlimit/forward"
	"github.com/ringlimit/ringlimit/forward/peerrpc"
	"github.com/ringlimit/ringlimit/limit"
	"github.com/ringlimit/ringlimit/membership"
	"github.com/ringlimit/ringlimit/membership/gossip"
	"github.com/ringlimit/ringlimit/owner"
	"github.com/ringlimit/ringlimit/owner/driver"
	"github.com/ringlimit/ringlimit/ring"
	"github.com/ringlimit/ringlimit/rules/live"
)

// Start opens the node's listeners, joins the cluster, takes over the counters
// that the node owns from now on, and returns once checks are answered. If none
// of cfg.Join answers within cfg.JoinTimeout, the node logs so, serves alone and
// keeps trying. What is wrong with cfg comes as one or more *ConfigError.
func Start(ctx context.Context, cfg Config) (*Node, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	secrets, err := deriveKeys(cfg.Secret)
	if err != nil {
		return nil, err
	}
	n, err := begin(ctx, cfg, secrets)
	if later, ok := errors.AsType[*driver.LaterRunError](err); ok {
		cfg.boot = later.Boot + 1
		cfg.Logger.Warn("the clock was set back since this node ran last; starting over with a boot id that the others take for later",
			"known", later.Boot.String(), "boot", cfg.boot.String())
		return begin(ctx, cfg, secrets)
	}
	return n, err
}

// begin is one attempt to start. It leaves nothing behind when it fails.
func begin(ctx context.Context, cfg Config, secrets keys) (*Node, error) {
	n, err := newNode(cfg)
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

// goodbye is how long a node takes, once it has nothing left to give away, to
// say so and to finish what it was asked.
const goodbye = 3 * time.Second

// newNode assembles the parts that need no address.
func newNode(cfg Config) (*Node, error) {
	nobody, err := ring.New(ring.Defaults(), nil)
	if err != nil {
		return nil, err
	}
	n := &Node{
		cfg:    cfg,
		clock:  limit.NewClock(),
		params: ring.Defaults(),
		nobody: nobody,
		book:   book{entries: map[membership.NodeID]entry{}},
		words:  make(chan word, 1),
		store:  live.NewStore(cfg.Name),
		behind: make(chan struct{}),
	}
	n.table = owner.NewTable(owner.Config{Partitions: n.params.Partitions, Memory: cfg.Memory, Now: n.clock.Now})
	n.fallback = newFallbackTable(cfg.Memory, n.clock.Now)
	n.metrics = newMetrics(n)
	n.scratch.New = n.newScratch
	return n, n.restore()
}

// fallbackShare is the part of the memory bound that fallback counters may use
// on top of it: they exist only while owners cannot be asked.
const fallbackShare = 16

func newFallbackTable(memory int64, now func() int64) *owner.Table {
	t := owner.NewTable(owner.Config{Partitions: 1, Memory: max(memory/fallbackShare, 1<<20), Now: now})
	t.SetPhase(0, owner.Holding)
	return t
}

// open binds the sockets and connects the parts. Nothing runs yet but the
// gossip's own listeners.
func (n *Node) open(secrets keys) error {
	var err error
	if n.peer, err = n.cfg.listen("tcp", n.cfg.Peer); err != nil {
		return &ConfigError{"peer", err}
	}
	n.self = n.cfg.self(n.cfg.boot, n.cfg.advertised(n.peer.Addr()), n.params.Placement())
	n.self.Rules = n.RulesSummary()
	n.assemble(secrets)
	if err := n.metrics.register(n.cfg.Registerer); err != nil { // whoever scrapes now reads the parts
		return err
	}
	if n.gossip, err = gossip.Start(n.gossipConfig(secrets)); err != nil {
		return &ConfigError{"gossip", errors.New(strings.TrimPrefix(err.Error(), "gossip: "))}
	}
	return nil
}

// assemble makes the parts that need to know each other.
func (n *Node) assemble(secrets keys) {
	n.pool = n.newPool(secrets)
	n.driver = driver.New(driver.Config{
		Self:     n.self,
		Table:    n.table,
		Ring:     n.params,
		Now:      n.clock.Now,
		Send:     n.send,
		Dial:     n.dial,
		Announce: n.announce,
		Publish:  n.publish,
		Observer: n.metrics,
		Logger:   n.cfg.Logger,
	})
	n.router = newRouter(n.newRouter(secrets))
	n.server = n.newServer(secrets)
	n.puller = newPuller(n)
}

func (n *Node) newRouter(secrets keys) *forward.Router {
	return forward.NewRouter(forward.Config{
		Self:             membership.NodeID(n.cfg.Name),
		Local:            n.driver,
		Fallback:         n.fallback,
		Seed:             secrets.seed,
		Now:              n.clock.Now,
		Deadline:         n.cfg.Deadline,
		FallbackCapacity: n.cfg.FallbackCapacity,
		Observer:         n.metrics,
		Logger:           n.cfg.Logger,
	})
}

func (n *Node) newPool(secrets keys) *peerrpc.Pool {
	return peerrpc.NewPool(peerrpc.PoolConfig{
		Self:    n.self.ID,
		Boot:    n.self.Boot,
		Token:   secrets.token,
		Now:     n.clock.Now,
		Dial:    n.cfg.dial,
		Refused: func(id membership.NodeID) { n.driver.Refused(id) },
		Logger:  n.cfg.Logger,
	})
}

func (n *Node) newServer(secrets keys) *peerrpc.Server {
	return peerrpc.NewServer(peerrpc.ServerConfig{
		Self:       n.self.ID,
		Token:      secrets.token,
		Decider:    n.driver,
		Receive:    n.driver.Receive,
		Rules:      n.store,
		Seed:       secrets.seed,
		Partitions: n.params.Partitions,
		Partition:  n.nobody.Partition, // the same in every ring
		Now:        n.clock.Now,
		Logger:     n.cfg.Logger,
	})
}

func (n *Node) gossipConfig(secrets keys) gossip.Config {
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
	return cfg
}

// newBootID is larger for a later run: the wall clock orders the runs of a node.
func newBootID() membership.BootID { return membership.BootID(time.Now().UnixNano()) }

// run starts the node's goroutines; close waits for them.
func (n *Node) run() {
	ctx, stop := context.WithCancel(context.Background())
	n.stop = stop
	n.adopt(<-n.gossip.Views()) // there is one at once
	n.background.Go(func() { n.table.Run(ctx) })
	n.background.Go(func() { n.fallback.Run(ctx) })
	n.background.Go(func() { n.driver.Run(ctx) })
	n.background.Go(func() { n.follow(ctx) })
	n.background.Go(func() { n.spread(ctx) })
	n.background.Go(func() { n.followRules(ctx) })
	n.background.Go(func() { n.puller.run(ctx, n.Members) })
	n.background.Go(func() { n.endStopgap(ctx) })
	n.background.Go(func() {
		if err := n.server.Serve(n.peer); err != nil {
			n.cfg.Logger.Error("the peer port stopped", "error", err)
		}
	})
}

// join finds the cluster, and returns when this node has its part in it.
func (n *Node) join(ctx context.Context) error {
	if err := n.find(ctx); err != nil {
		return err
	}
	n.beginRules(ctx)
	if err := n.driver.Serve(ctx); err != nil {
		return err
	}
	n.joined.Store(true)
	if n.driver.Superseded() {
		return &ConfigError{"name", errSuperseded}
	}
	return nil
}

// find looks for members, and for its turn to serve. Alone, or with others that
// do not get on with it, a node serves after JoinTimeout: a cluster that is found
// later is a partition that heals.
func (n *Node) find(ctx context.Context) error {
	if len(n.cfg.Join) == 0 {
		return nil
	}
	joining, cancel := context.WithTimeout(ctx, n.cfg.JoinTimeout)
	defer cancel()
	err := n.gossip.Join(joining)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, gossip.ErrPlacement):
		return err // two rings would give each counter two owners
	case err != nil:
		n.cfg.Logger.Warn("no member answered; serving alone and trying on", "error", err)
		return nil
	}
	err = n.driver.Enter(joining)
	if _, outdated := errors.AsType[*driver.LaterRunError](err); outdated {
		return err
	}
	if err != nil && ctx.Err() == nil {
		n.cfg.Logger.Warn("members that only join did not begin to serve; serving before them")
	}
	return ctx.Err()
}
