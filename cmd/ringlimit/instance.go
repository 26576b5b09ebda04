package main

import (
	"cmp"
	"context"
	"log/slog"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/ringlimit/ringlimit"
	"github.com/ringlimit/ringlimit/front/httpfront"
	"github.com/ringlimit/ringlimit/rules"
)

// instance is one node with its doors: what `serve` runs once and `dev` several
// times.
type instance struct {
	settings *settings
	from     origins
	name     string
	secret   []byte
	identity *httpfront.Identity
	rules    *rules.Set
	log      *slog.Logger
	// notice is how long /readyz says 503 before the doors close, so that a load
	// balancer sees it and sends no more.
	notice time.Duration
	// drain is how long the doors then wait for requests; 0: drainTimeout.
	drain time.Duration
}

// Bounds on a stop: on waiting for requests, and on the goodbye after it, which
// must not suffer from a request that takes too long.
const (
	drainTimeout   = 20 * time.Second
	goodbyeTimeout = 5 * time.Second
)

// newInstance reads what the settings point to.
func newInstance(s *settings, from origins, log *slog.Logger) (*instance, error) {
	name, err := s.nodeName(from, os.Hostname)
	if err != nil {
		return nil, err
	}
	secret, err := readSecret(s.secretFile, log)
	if err != nil {
		return nil, from.place("secret-file", err)
	}
	identity, err := httpfront.NewIdentity(s.identity)
	if err != nil {
		return nil, err
	}
	i := &instance{settings: s, from: from, name: name, secret: secret, identity: identity, rules: new(rules.Set), log: log.With("node", name)}
	if s.rules == "" {
		return i, nil
	}
	if i.rules, err = from.readRules(s.rules); err != nil {
		return nil, err
	}
	for _, warning := range i.rules.Warnings() {
		i.log.Warn("a rule is probably not meant so", "problem", warning)
	}
	return i, nil
}

// running is an instance whose doors are open.
type running struct {
	*instance
	doors    *doors
	stand    *standIn
	registry *prometheus.Registry
	health   grpcServer
	servers  []server
}

// run opens the doors, joins the cluster, calls up, and serves until ctx ends or
// a door breaks. It returns once everything it started has ended; an end by ctx
// is no error.
func (i *instance) run(ctx context.Context, up func(*ringlimit.Node, *doors)) error {
	r, err := i.open()
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, s := range r.servers {
		group.Go(s.serve)
	}
	group.Go(func() error { return r.live(ctx, up) })
	return group.Wait()
}

// open takes every address before anything runs.
func (i *instance) open() (*running, error) {
	doors, err := openDoors(i.settings, i.from)
	if err != nil {
		return nil, err
	}
	r := &running{
		instance: i,
		doors:    doors,
		stand:    &standIn{},
		registry: newRegistry(),
		health:   newGRPCServer(doors.grpc),
	}
	api := httpfront.New(httpfront.Config{
		Checker:  r.stand,
		Limits:   i.rules,
		Ready:    r.stand.ready,
		Identity: i.identity,
		Logger:   i.log,
	})
	r.servers = []server{
		newHTTPServer(doors.http, api, writeTimeout, i.log),
		newHTTPServer(doors.admin, adminHandler(r.stand, i.identity, r.registry), profileTimeout, i.log),
		r.health,
	}
	return r, nil
}

// live is the node's life behind open doors: join, serve, drain, leave.
func (r *running) live(ctx context.Context, up func(*ringlimit.Node, *doors)) error {
	node, err := ringlimit.Start(ctx, r.config())
	if err == nil {
		r.stand.node.Store(node)
		r.health.setReady(true)
		up(node, r.doors)
		<-ctx.Done()
		r.announceEnd()
	}
	r.closeDoors(context.WithoutCancel(ctx)) // before the node goes: a request under way needs it
	switch {
	case err == nil:
		r.leave(context.WithoutCancel(ctx), node)
		return nil
	case ctx.Err() != nil:
		return nil // told to stop while joining
	}
	return r.from.started(err)
}

func (r *running) closeDoors(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(r.drain, drainTimeout))
	defer cancel()
	for _, s := range r.servers {
		s.stop(ctx)
	}
}

// announceEnd tells load balancers to send no more, and gives them time to ask.
func (r *running) announceEnd() {
	r.log.Info("draining")
	r.stand.draining.Store(true)
	r.health.setReady(false)
	<-time.After(r.notice)
}

// leave ends the node. A goodbye that nobody hears is no failure of ours: when
// a whole cluster stops, there may be nobody left to hear it.
func (r *running) leave(ctx context.Context, node *ringlimit.Node) {
	ctx, cancel := context.WithTimeout(ctx, goodbyeTimeout)
	defer cancel()
	if err := node.Leave(ctx); err != nil {
		r.log.Info("left without an orderly goodbye; the others will find out by probing", "error", err)
		return
	}
	r.log.Info("left")
}

// config is what the node is told of the settings.
func (r *running) config() ringlimit.Config {
	s := r.settings
	return ringlimit.Config{
		Name:             r.name,
		Peer:             s.peer,
		Gossip:           s.gossip,
		Advertise:        s.advertise,
		HTTP:             s.told(r.doors.http.Addr()),
		Join:             s.join,
		Secret:           r.secret,
		Rules:            r.rules,
		Identity:         r.identity,
		Memory:           int64(s.memory),
		Deadline:         s.deadline,
		Forwarder:        !s.owner,
		FallbackCapacity: s.fallbackCapacity,
		Registerer:       r.registry,
		Logger:           r.log,
	}
}
