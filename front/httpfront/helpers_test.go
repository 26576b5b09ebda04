package httpfront

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ringlimit/ringlimit/limit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var noon = time.Date(2025, 2, 1, 12, 0, 0, 0, time.UTC)

// counters is a checker with a rule for each tier and a counter for each key.
type counters struct {
	mu     sync.Mutex
	now    func() time.Time
	tiers  map[string]*limit.Rule // nil: no rule matches
	states map[string]limit.State
	asked  []limit.Request
}

func newCounters(tiers map[string]*limit.Rule) *counters {
	return &counters{now: func() time.Time { return noon }, tiers: tiers, states: map[string]limit.State{}}
}

func (c *counters) Check(ctx context.Context, req limit.Request) (limit.Verdict, error) {
	return c.decide(ctx, req, (*limit.Rule).Take)
}

func (c *counters) Refund(ctx context.Context, req limit.Request) (limit.Verdict, error) {
	return c.decide(ctx, req, (*limit.Rule).Refund)
}

func (c *counters) decide(ctx context.Context, req limit.Request, step func(*limit.Rule, limit.State, int64, int64) (limit.State, limit.Verdict)) (limit.Verdict, error) {
	if err := req.Validate(); err != nil {
		return limit.Verdict{}, err
	}
	tier := req.Tier
	if tier == "" {
		tier = "default"
	}
	rule, ok := c.tiers[tier]
	if !ok {
		return limit.Verdict{}, &limit.InputError{Field: "tier", Problem: "is unknown; there are default, free"}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = append(c.asked, req)
	if rule == nil {
		return limit.Verdict{Allowed: true}, ctx.Err()
	}
	name, now := tier+"\x00"+req.Key, c.now().UnixNano()
	var v limit.Verdict
	if req.Peek {
		v = rule.Peek(c.states[name], now, req.Units())
	} else {
		c.states[name], v = step(rule, c.states[name], now, req.Units())
	}
	v.Rule, v.Source = rule, limit.SourceForwarded
	return v, ctx.Err()
}

// keys lists who was asked for, in order.
func (c *counters) keys() []string {
	var keys []string
	for _, req := range c.asked {
		keys = append(keys, req.Key)
	}
	return keys
}

func (c *counters) LimitsJSON() []byte { return []byte(`{"tiers":{}}`) }

func (c *counters) TierJSON(tier string) ([]byte, bool) {
	_, ok := c.tiers[tier]
	return []byte(`{"rules":["` + tier + `"]}`), ok
}

// CheckExplained names the key and how many were asked for before.
func (c *counters) CheckExplained(ctx context.Context, req limit.Request) (limit.Verdict, []byte, error) {
	c.mu.Lock()
	explanation := fmt.Appendf(nil, `["%s after %d checks"]`, req.Key, len(c.asked))
	c.mu.Unlock()
	v, err := c.Check(ctx, req)
	return v, explanation, err
}

func newRule(t testing.TB, name string, spec limit.Spec) *limit.Rule {
	t.Helper()
	r, err := limit.NewRule(spec)
	if err != nil {
		t.Fatal(err)
	}
	r.Name, r.Tier = name, "default"
	return r
}

func perMinute(t testing.TB, n int64) *limit.Rule {
	return newRule(t, "global", limit.Spec{Algorithm: limit.FixedWindow, Limit: n, Window: time.Minute})
}

// limited is a checker with n a minute for each key of the tiers default and free.
func limited(t testing.TB, n int64) *counters {
	return newCounters(map[string]*limit.Rule{"default": perMinute(t, n), "free": perMinute(t, n)})
}

func identity(t testing.TB, c IdentityConfig) *Identity {
	t.Helper()
	id, err := NewIdentity(c)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func config(c *counters) Config {
	return Config{Checker: c, Limits: c, Explainer: c, Now: c.now, Rand: func() float64 { return 0 }}
}

func post(h http.Handler, path, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	return do(h, r)
}

func do(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// from makes a request with these header lines, "Name: value".
func from(addr, method, target string, lines ...string) *http.Request {
	r := httptest.NewRequest(method, target, nil)
	r.RemoteAddr = addr
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Add(name, value)
	}
	return r
}

// answer is a response's status and body.
func answer(w *httptest.ResponseRecorder) (int, string) {
	body, _ := io.ReadAll(w.Result().Body)
	return w.Code, string(body)
}
