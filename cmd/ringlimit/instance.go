package main

import (
	"context"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/ringlimit/ringlimit"
	"github.com/ringlimit/ringlimit/front/grpcfront"
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
	file     *ruleFile        // where rules came from, if it is followed
	hangup   <-chan os.Signal // each asks to apply the file; nil: none come
	token    []byte           // what a change of rules needs; nil: nothing
	log      *slog.Logger
	audit    *slog.Logger // of changes of the rules
	// notice is how long /readyz says 503 before the doors close, so that a load
	// balancer sees it and sends no more.
	notice time.Duration
	// requests is how long the doors then wait for requests; 0: requestsTimeout.
	requests time.Duration
}

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
	token, err := readToken(s.adminTokenFile, log)
	if err != nil {
		return nil, from.place("admin-token-file", err)
	}
	i := &instance{settings: s, from: from, name: name, secret: secret, token: token, identity: identity, rules: new(rules.Set), log: log.With("node", name)}
	i.audit = i.log
	if s.rules == "" {
		return i, nil
	}
	if i.file, i.rules, err = from.openRules(s.rules, i.log); err != nil {
		return nil, err
	}
	warnOf(i.rules, i.log)
	return i, nil
}

// running is an instance whose doors are open.
type running struct {
	*instance
	doors    *doors
	stand    *standIn
	editor   *editor
	registry *prometheus.Registry
	grpc     grpcServer
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
	identity := i.identity
	if identity == nil {
		identity, _ = httpfront.NewIdentity(httpfront.IdentityConfig{}) // the default is valid
	}
	r := &running{
		instance: i,
		doors:    doors,
		stand:    &standIn{},
		registry: newRegistry(),
	}
	r.grpc = grpcServer{l: doors.grpc, Server: grpcfront.New(grpcfront.Config{
		Checker:   r.stand,
		Explainer: r.stand,
		Ready:     r.stand.ready,
		Network:   identity.Network,
		Logger:    i.log,
	})}
	r.editor = &editor{standIn: r.stand, log: i.log, audit: i.audit}
	api := httpfront.New(httpfront.Config{
		Checker:   r.stand,
		Limits:    inForce{r.stand, i.rules},
		Explainer: r.stand,
		Ready:     r.stand.ready,
		Identity:  identity,
		Logger:    i.log,
	})
	r.servers = []server{
		newHTTPServer(doors.http, api, writeTimeout, i.log),
		newHTTPServer(doors.admin, r.adminHandler(), profileTimeout, i.log),
		r.grpc,
	}
	return r, nil
}

// live is the node's life behind open doors: join, serve, stop.
func (r *running) live(ctx context.Context, up func(*ringlimit.Node, *doors)) error {
	node, err := ringlimit.Start(ctx, r.config())
	if err == nil {
		r.stand.node.Store(node)
		r.noteHealth()
		up(node, r.doors)
		var following sync.WaitGroup
		following.Go(func() { r.followFile(ctx, r.editor) })
		r.followHealth(ctx)
		following.Wait()
		return r.end(context.WithoutCancel(ctx), node)
	}
	r.closeDoors(context.WithoutCancel(ctx))
	if ctx.Err() != nil {
		return nil // told to stop while joining
	}
	return r.from.started(err)
}

// healthInterval is how often grpc.health.v1 looks at what /readyz would say:
// its clients wait for news, and a node has none to send.
const healthInterval = 100 * time.Millisecond

// followHealth returns when ctx ends.
func (r *running) followHealth(ctx context.Context) {
	look := time.NewTicker(healthInterval)
	defer look.Stop()
	for {
		select {
		case <-look.C:
			r.noteHealth()
		case <-ctx.Done():
			return
		}
	}
}

func (r *running) noteHealth() { r.grpc.SetReady(r.stand.ready() == nil) }

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
		DataDir:          s.dataDir,
		Identity:         r.identity,
		Memory:           int64(s.memory),
		Deadline:         s.deadline,
		Forwarder:        !s.owner,
		FallbackCapacity: s.fallbackCapacity,
		Registerer:       r.registry,
		Logger:           r.log,
	}
}
