package grpcfront

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	ringlimitv1 "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/limit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var noon = time.Date(2025, 2, 1, 12, 0, 0, 0, time.UTC)

// counters is a checker with a rule for each tier and a counter for each key.
type counters struct {
	mu     sync.Mutex
	tiers  map[string]*limit.Rule // nil: no rule matches
	states map[string]limit.State
	asked  []limit.Request
	before func(limit.Request) error // is asked first, without the lock; nil: not
}

// limited has n a minute for each key of the tiers default and free, and no rule for
// open.
func limited(t testing.TB, n int64) *counters {
	return &counters{
		tiers:  map[string]*limit.Rule{"default": perMinute(t, "global", n), "free": perMinute(t, "free", n), "open": nil},
		states: map[string]limit.State{},
	}
}

func (c *counters) Check(ctx context.Context, req limit.Request) (limit.Verdict, error) {
	mode := limit.Take
	if req.Peek {
		mode = limit.Peek
	}
	return c.decide(ctx, req, mode)
}

func (c *counters) Refund(ctx context.Context, req limit.Request) (limit.Verdict, error) {
	return c.decide(ctx, req, limit.Refund)
}

func (c *counters) decide(ctx context.Context, req limit.Request, mode limit.Mode) (limit.Verdict, error) {
	if err := req.Validate(); err != nil {
		return limit.Verdict{}, err
	}
	if c.before != nil {
		if err := c.before(req); err != nil {
			return limit.Verdict{}, err
		}
	}
	tier := req.Tier
	if tier == "" {
		tier = "default"
	}
	rule, ok := c.tiers[tier]
	if !ok {
		return limit.Verdict{}, &limit.InputError{Field: "tier", Problem: "is unknown; there are default, free, open"}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = append(c.asked, req)
	if rule == nil {
		return limit.Verdict{Allowed: true}, ctx.Err()
	}
	name := tier + "\x00" + req.Key
	state := c.states[name]
	var v limit.Verdict
	rule.Apply(&limit.Charge{Mode: mode, Cost: req.Units()}, &state, &v, noon.UnixNano())
	c.states[name] = state
	v.Rule, v.Source = rule, limit.SourceForwarded
	return v, ctx.Err()
}

// requests is what was asked so far.
func (c *counters) requests() []limit.Request {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]limit.Request(nil), c.asked...)
}

// CheckExplained names the key and how many checks there were.
func (c *counters) CheckExplained(ctx context.Context, req limit.Request) (limit.Verdict, []byte, error) {
	v, err := c.Check(ctx, req)
	return v, fmt.Appendf(nil, `["%s, %d checks"]`, req.Key, len(c.requests())), err
}

func perMinute(t testing.TB, name string, n int64) *limit.Rule {
	t.Helper()
	r, err := limit.NewRule(limit.Spec{Algorithm: limit.FixedWindow, Limit: n, Window: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	r.Name, r.Tier = name, "default"
	return r
}

func config(c *counters) Config {
	return Config{Checker: c, Explainer: c, Now: func() time.Time { return noon }}
}

// serve runs a door until the test ends, and connects to it.
func serve(t testing.TB, cfg Config) (*Server, *grpc.ClientConn) {
	t.Helper()
	s, l := New(cfg), bufconn.Listen(1<<20)
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := s.Serve(l); err != nil {
			t.Error(err)
		}
	})
	cc, err := grpc.NewClient("passthrough:///door",
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cc.Close()
		s.Stop(context.Background())
		serving.Wait()
	})
	return s, cc
}

func client(t testing.TB, cfg Config) ringlimitv1.RateLimiterClient {
	_, cc := serve(t, cfg)
	return ringlimitv1.NewRateLimiterClient(cc)
}
