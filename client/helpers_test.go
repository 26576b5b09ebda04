package client_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/test/bufconn"

	"github.com/ringlimit/ringlimit/client"
	"github.com/ringlimit/ringlimit/front"
	"github.com/ringlimit/ringlimit/front/grpcfront"
	"github.com/ringlimit/ringlimit/limit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var _ front.Checker = (*client.Client)(nil)

// counters is a checker: one counter for each key under one rule.
type counters struct {
	rule *limit.Rule
	now  func() time.Time

	mu     sync.Mutex
	states map[string]limit.State
	taken  map[string]int            // how often each key was asked for
	before func(limit.Request) error // is asked first, without the lock; nil: not
	amend  func(*limit.Verdict)      // is asked last; nil: not
}

func counting(t testing.TB, spec limit.Spec) *counters {
	t.Helper()
	r, err := limit.NewRule(spec)
	if err != nil {
		t.Fatal(err)
	}
	r.Name, r.Tier, r.Jitter = "global", "default", true
	return &counters{rule: r, now: time.Now, states: map[string]limit.State{}, taken: map[string]int{}}
}

func perMinute(t testing.TB, n int64) *counters {
	return counting(t, limit.Spec{Algorithm: limit.FixedWindow, Limit: n, Window: time.Minute})
}

func (c *counters) Check(ctx context.Context, req limit.Request) (limit.Verdict, error) {
	mode := limit.Take
	if req.Peek {
		mode = limit.Peek
	}
	return c.decide(req, mode)
}

func (c *counters) Refund(ctx context.Context, req limit.Request) (limit.Verdict, error) {
	return c.decide(req, limit.Refund)
}

func (c *counters) decide(req limit.Request, mode limit.Mode) (v limit.Verdict, err error) {
	if err := req.Validate(); err != nil {
		return v, err
	}
	if req.Tier != "" {
		return v, &limit.InputError{Field: "tier", Problem: "is unknown; there is default"}
	}
	c.mu.Lock()
	c.taken[req.Key]++
	c.mu.Unlock()
	if c.before != nil {
		if err := c.before(req); err != nil {
			return v, err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	state := c.states[req.Key]
	c.rule.Apply(&limit.Charge{Mode: mode, Cost: req.Units()}, &state, &v, c.now().UnixNano())
	c.states[req.Key] = state
	v.Rule, v.Source = c.rule, limit.SourceForwarded
	if c.amend != nil {
		c.amend(&v)
	}
	return v, nil
}

// times is how often a key was asked for.
func (c *counters) times(key string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.taken[key]
}

func (c *counters) CheckExplained(ctx context.Context, req limit.Request) (limit.Verdict, []byte, error) {
	v, err := c.Check(ctx, req)
	return v, []byte("[]"), err
}

var errRefused = errors.New("connection refused")

// nodes are doors on a network in memory.
type nodes struct {
	t     testing.TB
	delay time.Duration // of each new connection
	mu    sync.Mutex
	doors map[string]*door
}

type door struct {
	*grpcfront.Server
	mu      sync.Mutex
	conns   []net.Conn
	l       *bufconn.Listener
	serving sync.WaitGroup
}

func newNodes(t testing.TB) *nodes {
	n := &nodes{t: t, doors: map[string]*door{}}
	t.Cleanup(func() {
		for name := range n.all() {
			n.stop(name)
		}
	})
	return n
}

func (n *nodes) all() map[string]*door {
	n.mu.Lock()
	defer n.mu.Unlock()
	all := map[string]*door{}
	for name, d := range n.doors {
		all[name] = d
	}
	return all
}

func (n *nodes) start(name string, c *counters) {
	d := &door{
		Server: grpcfront.New(grpcfront.Config{Checker: c, Explainer: c, Now: c.now}),
		l:      bufconn.Listen(1 << 20),
	}
	d.serving.Go(func() {
		if err := d.Serve(d.l); err != nil {
			n.t.Error(err)
		}
	})
	n.mu.Lock()
	defer n.mu.Unlock()
	n.doors[name] = d
}

// stop ends a node in order.
func (n *nodes) stop(name string) {
	n.mu.Lock()
	d := n.doors[name]
	delete(n.doors, name)
	n.mu.Unlock()
	if d != nil {
		d.Stop(context.Background())
		d.serving.Wait()
	}
}

// cut ends a node as a crash would: its connections break, and new ones are refused.
// What it was asked it still does.
func (n *nodes) cut(name string) {
	n.mu.Lock()
	d := n.doors[name]
	delete(n.doors, name)
	n.mu.Unlock()
	d.mu.Lock()
	for _, c := range d.conns {
		c.Close()
	}
	d.mu.Unlock()
	n.t.Cleanup(func() { d.Stop(context.Background()); d.serving.Wait() })
}

func (n *nodes) dial(ctx context.Context, name string) (net.Conn, error) {
	time.Sleep(n.delay)
	n.mu.Lock()
	d := n.doors[name]
	n.mu.Unlock()
	if d == nil {
		return nil, errRefused
	}
	c, err := d.l.DialContext(ctx)
	if err == nil {
		d.mu.Lock()
		d.conns = append(d.conns, c)
		d.mu.Unlock()
	}
	return c, err
}

// client asks the nodes of the given names.
func (n *nodes) client(names ...string) *client.Client { return n.reserving(0, names...) }

// reserving is a client with that RetryReserve.
func (n *nodes) reserving(retries int, names ...string) *client.Client {
	n.t.Helper()
	cfg := client.Config{RetryReserve: retries, DialOptions: []grpc.DialOption{grpc.WithContextDialer(n.dial)}}
	for _, name := range names {
		cfg.Addresses = append(cfg.Addresses, "passthrough:///"+name)
	}
	c, err := client.New(cfg)
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(c.Close)
	return c
}

func key(i int) limit.Request { return limit.Request{Key: fmt.Sprint("key-", i)} }
