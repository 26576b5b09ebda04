package ringlimit

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	ringlimitv1 "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/client"
	"github.com/ringlimit/ringlimit/front/grpcfront"
	"github.com/ringlimit/ringlimit/front/httpfront"
	"github.com/ringlimit/ringlimit/limit"
)

// outcome is what every way of asking has in common: a verdict, or the field that is
// wrong.
type outcome struct {
	allowed           bool
	limit, remaining  int64
	retry, reset      time.Duration
	rule, source, why string
	delayed           bool
	limits            []string // rule names, ! before those that refuse
	badField          string
}

// way asks for a check, or for a refund.
type way func(t *testing.T, req Request, refund bool) outcome

// conformance is what each way is asked in turn, each with keys of its own.
var conformance = []struct {
	name   string
	req    Request
	refund bool
}{
	{"first", Request{Key: "k"}, false},
	{"peek", Request{Key: "k", Peek: true}, false},
	{"cost", Request{Key: "k", Cost: 2}, false},
	{"too much now", Request{Key: "k", Cost: 3}, false},
	{"too much ever", Request{Key: "k", Cost: 6}, false},
	{"given back", Request{Key: "k", Cost: 3}, true},
	{"again", Request{Key: "k", Cost: 5}, false},
	{"denied", Request{Key: "k"}, false},
	{"several", Request{Key: "k", Tier: "several"}, false},
	{"several, one refuses", Request{Key: "k", Tier: "several", Cost: 2}, false},
	{"a queue", Request{Key: "k", Tier: "queue"}, false},
	{"its second place", Request{Key: "k", Tier: "queue"}, false},
	{"a missing dimension", Request{Key: "r", Tier: "region"}, false},
	{"one that is there", Request{Key: "r", Tier: "region", Attributes: map[string]string{"region": "eu"}}, false},
	{"no rule", Request{Key: "k", Tier: "open"}, false},
	{"strange keys", Request{Key: "k\x00\n\u00e9"}, false},
	{"no key", Request{}, false},
	{"a long key", Request{Key: strings.Repeat("x", 600)}, false},
	{"an unknown tier", Request{Key: "k", Tier: "gold"}, false},
	{"a negative cost", Request{Key: "k", Cost: -1}, false},
	{"a refund without a key", Request{}, true},
}

const conformanceRules = `
tiers:
  default: [{name: global, algorithm: fixed_window, limit: 5, window: 87600h}]
  several:
    - {name: wide, algorithm: fixed_window, limit: 100, window: 87600h}
    - {name: narrow, by: [client, route], algorithm: fixed_window, limit: 2, window: 87600h}
    - {name: trial, by: [route], algorithm: fixed_window, limit: 1, window: 87600h, shadow: true}
  queue: [{name: queue, algorithm: leaky_bucket, limit: 1, window: 1h, burst: 5}]
  region: [{name: region, by: [client, attribute region], algorithm: fixed_window, limit: 4, window: 87600h, on_missing: deny}]
  open: [{name: open, unlimited: true}]
`

// The same requests get the same verdicts, whichever way they are asked.
func TestEveryDoorSaysTheSame(t *testing.T) {
	set := parseRules(t, conformanceRules)
	first := onLoopback(t, Config{Name: "node-0", Rules: set})
	asked := onLoopback(t, Config{Name: "node-1", Rules: set}, first)
	defer leaveAll(t, first, asked)
	ways := map[string]way{"node": askNode(asked), "http": askHTTP(t, asked)}
	for name, w := range askGRPC(t, asked) {
		ways[name] = w
	}
	for _, test := range conformance {
		var want outcome
		for _, name := range []string{"node", "http", "grpc", "grpc batch", "client", "client batch"} {
			req := test.req
			if req.Key != "" && len(req.Key) <= limit.MaxKeyBytes {
				req.Key += " of " + name
			}
			req.Route = "GET /" + strings.ReplaceAll(name, " ", "-")
			got := ways[name](t, req, test.refund)
			if name == "node" {
				want = got
			} else if !got.like(want) {
				t.Errorf("%s: %s says %+v, want %+v", test.name, name, got, want)
			}
		}
	}
}

// like allows for the time that passes between the questions. Each way has keys of its
// own, and so owners: of a refusal, whether the owner or the deny cache gives it, and
// who else was asked, differs.
func (o outcome) like(p outcome) bool {
	near := func(a, b time.Duration) bool { return (a - b).Abs() < 30*time.Second }
	return near(o.retry, p.retry) && near(o.reset, p.reset) && slices.Equal(o.limits, p.limits) && o.allowed == p.allowed && o.limit == p.limit && o.remaining == p.remaining && o.rule == p.rule &&
		o.source == p.source && o.why == p.why && o.delayed == p.delayed && o.badField == p.badField
}

func outcomeOf(t *testing.T, v Verdict, err error) outcome {
	t.Helper()
	if bad, ok := errors.AsType[*limit.InputError](err); ok {
		return outcome{badField: bad.Field}
	}
	if err != nil {
		t.Fatal(err)
	}
	o := outcome{allowed: v.Allowed, why: v.Reason.String(), delayed: v.Delay > 0}
	if v.Rule != nil {
		o.rule, o.source = v.Rule.Name, v.Source.Decider()
		if v.Reason != limit.MissingDimension { // else no counter was met
			o.limit, o.remaining, o.retry, o.reset = v.Limit, v.Remaining, v.RetryAfter, v.ResetAfter
		}
	}
	for _, l := range v.Limits() {
		o.note(l.Rule.Name, l.Allowed)
	}
	return o.settled()
}

func (o outcome) settled() outcome {
	if !o.allowed {
		o.limits = nil
	}
	if o.source == "deny_cache" {
		o.source = "owner"
	}
	return o
}

func (o *outcome) note(rule string, allowed bool) {
	if !allowed {
		rule = "!" + rule
	}
	o.limits = append(o.limits, rule)
}

// checker is a node or a client of one.
type checker interface {
	Check(context.Context, Request) (Verdict, error)
	Refund(context.Context, Request) (Verdict, error)
}

func askNode(c checker) way {
	return func(t *testing.T, req Request, refund bool) outcome {
		t.Helper()
		ask := c.Check
		if refund {
			ask = c.Refund
		}
		v, err := ask(t.Context(), req)
		return outcomeOf(t, v, err)
	}
}

func askHTTP(t *testing.T, n *Node) way {
	s := httptest.NewServer(httpfront.New(httpfront.Config{Checker: n, Limits: n, Explainer: n}))
	t.Cleanup(s.Close)
	t.Cleanup(s.Client().CloseIdleConnections)
	return func(t *testing.T, req Request, refund bool) outcome {
		t.Helper()
		path, fields := "/v1/check", map[string]any{"key": req.Key, "route": req.Route, "tier": req.Tier, "attributes": req.Attributes}
		if req.Cost != 0 {
			fields["cost"] = req.Cost
		}
		if req.Peek {
			fields["peek"] = true
		}
		if req.Attributes == nil {
			delete(fields, "attributes")
		}
		if refund {
			path = "/v1/refund"
		}
		body, err := json.Marshal(fields)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := s.Client().Post(s.URL+path, "application/json", strings.NewReader(string(body)))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		answer, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return outcomeOfJSON(t, resp.StatusCode, answer)
	}
}

func outcomeOfJSON(t *testing.T, code int, body []byte) outcome {
	t.Helper()
	var v struct {
		Allowed      bool
		Limit        int64
		Remaining    int64
		RetryAfterMs int64     `json:"retry_after_ms"`
		DelayMs      int64     `json:"delay_ms"`
		ResetAt      time.Time `json:"reset_at"`
		Rule, Source string
		Reason       string
		Field        string
		Limits       []struct {
			Rule    string
			Allowed bool
		}
	}
	if err := json.Unmarshal(body, &v); err != nil {
		t.Fatalf("%d %s: %v", code, body, err)
	}
	if code == http.StatusBadRequest {
		return outcome{badField: v.Field}
	}
	o := outcome{
		allowed: v.Allowed, limit: v.Limit, remaining: v.Remaining, rule: v.Rule, source: v.Source, why: v.Reason,
		retry: time.Duration(v.RetryAfterMs) * time.Millisecond, delayed: v.DelayMs > 0,
	}
	if !v.ResetAt.IsZero() {
		o.reset = time.Until(v.ResetAt)
	}
	for _, l := range v.Limits {
		o.note(l.Rule, l.Allowed)
	}
	return o.settled()
}

// askGRPC is the ways through the gRPC door.
func askGRPC(t *testing.T, n *Node) map[string]way {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpcfront.New(grpcfront.Config{Checker: n, Explainer: n})
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := s.Serve(l); err != nil {
			t.Error(err)
		}
	})
	c, err := client.New(client.Config{Addresses: []string{l.Addr().String()}, Timeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	cc, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		_ = cc.Close()
		s.Stop(context.Background())
		serving.Wait()
	})
	stub := ringlimitv1.NewRateLimiterClient(cc)
	return map[string]way{
		"client": askNode(c), "client batch": askNode(clientBatch{c}),
		"grpc": askStub(stub, false), "grpc batch": askStub(stub, true),
	}
}

// clientBatch asks for batches of one.
type clientBatch struct{ *client.Client }

func (c clientBatch) Check(ctx context.Context, req Request) (Verdict, error) {
	results, err := c.CheckBatch(ctx, []Request{req})
	if err != nil {
		return Verdict{}, err
	}
	return results[0].Verdict, results[0].Err
}

func askStub(stub ringlimitv1.RateLimiterClient, batch bool) way {
	return func(t *testing.T, req Request, refund bool) outcome {
		t.Helper()
		ask := &ringlimitv1.CheckRequest{Key: req.Key, Route: req.Route, Tier: req.Tier, Attributes: req.Attributes, Peek: req.Peek}
		if req.Cost != 0 {
			ask.Cost = &req.Cost
		}
		switch {
		case refund:
			return outcomeOfMessage(t)(stub.Refund(t.Context(), &ringlimitv1.RefundRequest{Key: ask.Key, Route: ask.Route, Tier: ask.Tier, Cost: ask.Cost}))
		case !batch:
			return outcomeOfMessage(t)(stub.Check(t.Context(), ask))
		}
		got, err := stub.CheckBatch(t.Context(), &ringlimitv1.CheckBatchRequest{Checks: []*ringlimitv1.CheckRequest{ask}})
		if err != nil {
			t.Fatal(err)
		}
		if e := got.Results[0].GetError(); e != nil {
			return outcome{badField: e.Field}
		}
		return outcomeOfMessage(t)(got.Results[0].GetVerdict(), nil)
	}
}

func outcomeOfMessage(t *testing.T) func(*ringlimitv1.Verdict, error) outcome {
	return func(v *ringlimitv1.Verdict, err error) outcome {
		t.Helper()
		if err != nil {
			bad, ok := status.Convert(err).Details()[0].(*errdetails.BadRequest)
			if !ok {
				t.Fatal(err)
			}
			return outcome{badField: bad.FieldViolations[0].Field}
		}
		word := func(name, prefix string) string {
			return strings.ToLower(strings.TrimPrefix(strings.TrimSuffix(name, "UNSPECIFIED"), prefix))
		}
		o := outcome{
			allowed: v.Allowed, limit: v.GetLimit(), remaining: v.GetRemaining(), rule: v.Rule,
			retry: v.RetryAfter.AsDuration(), reset: v.ResetAfter.AsDuration(), delayed: v.Delay.AsDuration() > 0,
			source: word(v.Source.String(), "SOURCE_"), why: word(v.Reason.String(), "REASON_"),
		}
		for _, l := range v.Limits {
			o.note(l.Rule, l.Allowed)
		}
		return o.settled()
	}
}
