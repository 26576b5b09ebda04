package wire

import (
	"maps"
	"net/netip"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	ringlimitv1 "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/limit"
)

// The generated code is the model: what we write it reads, and what it writes we
// read.

var (
	texts    = rapid.String()
	counts   = rapid.Int64Range(0, limit.MaxCost)
	times    = rapid.Map(rapid.Int64Range(0, int64(limit.MaxWindow)), func(n int64) time.Duration { return time.Duration(n) })
	requests = rapid.Custom(func(t *rapid.T) limit.Request {
		r := limit.Request{
			Key: texts.Draw(t, "key"), Route: texts.Draw(t, "route"), Tier: texts.Draw(t, "tier"),
			Cost: counts.Draw(t, "cost"), Peek: rapid.Bool().Draw(t, "peek"),
		}
		if rapid.Bool().Draw(t, "has ip") {
			r.IP = netip.AddrFrom16([16]byte(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "ip"))).Unmap()
		}
		if rapid.Bool().Draw(t, "has attributes") {
			r.Attributes = rapid.MapOfN(texts, texts, 1, limit.MaxAttributes).Draw(t, "attributes")
		}
		return r
	})
)

func address(r *limit.Request) string {
	if !r.IP.IsValid() {
		return ""
	}
	return r.IP.String()
}

func TestRequestsAsGenerated(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		req := requests.Draw(t, "request")
		var got ringlimitv1.CheckRequest
		if err := proto.Unmarshal(AppendCheck(nil, &req), &got); err != nil {
			t.Fatal(err)
		}
		want := &ringlimitv1.CheckRequest{
			Key: req.Key, Route: req.Route, Tier: req.Tier, Ip: address(&req), Attributes: req.Attributes, Peek: req.Peek,
		}
		if req.Cost != 0 {
			want.Cost = proto.Int64(req.Cost)
		}
		if !proto.Equal(&got, want) {
			t.Fatalf("wrote %v, want %v", &got, want)
		}
		want.Explain = rapid.Bool().Draw(t, "explain")
		bytes, err := proto.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var c Check
		if err := ReadCheck(string(bytes), &c); err != nil {
			t.Fatal(err)
		}
		sameCheck(t, &c, &req)
		if c.Explain != want.Explain {
			t.Errorf("explain: %v", c.Explain)
		}
	})
}

type tester interface {
	Helper()
	Fatalf(string, ...any)
	Errorf(string, ...any)
}

func sameCheck(t tester, got *Check, want *limit.Request) {
	t.Helper()
	if got.Key != want.Key || got.Route != want.Route || got.Tier != want.Tier || got.Cost != want.Cost ||
		got.Peek != want.Peek || got.IP != address(want) || !maps.Equal(got.Attributes, want.Attributes) {
		t.Fatalf("read %+v, want %+v", got, want)
	}
}

func TestCallsAsGenerated(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		reqs := rapid.SliceOfN(requests, 1, 5).Draw(t, "requests")
		refunds := rapid.SliceOfN(rapid.Bool(), len(reqs), len(reqs)).Draw(t, "refunds")
		timeout := times.Draw(t, "timeout")
		var b []byte
		for i := range reqs {
			before := len(b)
			b = AppendCall(b, uint64(i), &reqs[i], refunds[i])
			if grown := len(b) - before; grown > MaxCallSize(&reqs[i]) {
				t.Fatalf("%d bytes, and at most %d were announced", grown, MaxCallSize(&reqs[i]))
			}
		}
		var got ringlimitv1.CheckStreamRequest
		if err := proto.Unmarshal(AppendTimeout(b, timeout), &got); err != nil {
			t.Fatal(err)
		}
		if len(got.Calls) != len(reqs) || got.Timeout.AsDuration() != timeout {
			t.Fatalf("wrote %v", &got)
		}
		again, err := proto.Marshal(&got)
		if err != nil {
			t.Fatal(err)
		}
		calls, patience, err := ReadCalls(string(again), nil)
		if timeout == 0 {
			timeout = -1 // it is over, as no timeout is
		}
		if err != nil || len(calls) != len(reqs) || patience != timeout {
			t.Fatalf("read %v, %v, %v", calls, patience, err)
		}
		for i, c := range calls {
			var check Check
			want := reqs[i]
			read := ReadCheck
			if refunds[i] {
				read, want.Peek = ReadRefund, false
			}
			if err := read(c.Body, &check); err != nil || c.ID != uint64(i) || c.Refund != refunds[i] {
				t.Fatalf("call %d: %+v, %v", i, c, err)
			}
			sameCheck(t, &check, &want)
		}
		kept, _, err := ReadCalls(string(KeepCalls(b, func(id uint64) bool { return id%2 == 1 })), nil)
		if err != nil || len(kept) != len(reqs)/2 {
			t.Fatalf("kept %v, %v", kept, err)
		}
	})
}

// drawRule makes one that could be in a rule file.
func drawRule(t *rapid.T, name string) *limit.Rule {
	spec := limit.Spec{Algorithm: limit.TokenBucket, Limit: rapid.Int64Range(1, 1e6).Draw(t, "limit"), Window: time.Minute}
	switch rapid.IntRange(0, 2).Draw(t, "kind") {
	case 1:
		spec = limit.Spec{Algorithm: limit.FixedWindow, Limit: spec.Limit, Calendar: limit.CalendarMonth, Timezone: "Europe/Berlin"}
	case 2:
		spec.Burst = spec.Limit + 1
	}
	r, err := limit.NewRule(spec)
	if err != nil {
		t.Fatal(err)
	}
	r.Name, r.Tier = name, "free"
	r.Jitter, r.Shadow = rapid.Bool().Draw(t, "jitter"), rapid.Bool().Draw(t, "shadow")
	return r
}

func drawVerdict(t *rapid.T, rule *limit.Rule) limit.Verdict {
	v := limit.Verdict{
		Allowed: rapid.Bool().Draw(t, "allowed"), Rule: rule,
		Source:     rapid.SampledFrom([]limit.Source{limit.SourceForwarded, limit.SourceDenyCache, limit.SourceFallback}).Draw(t, "source"),
		Limit:      counts.Draw(t, "limit"),
		Remaining:  counts.Draw(t, "remaining"),
		ResetAfter: times.Draw(t, "reset"),
	}
	if v.Allowed {
		v.Delay = times.Draw(t, "delay")
	} else if v.Reason = rapid.SampledFrom([]limit.Reason{limit.NoReason, limit.CostExceedsLimit, limit.MissingDimension, limit.Unavailable}).Draw(t, "reason"); v.Reason == limit.NoReason {
		v.RetryAfter = times.Draw(t, "retry")
	}
	if v.Reason == limit.MissingDimension {
		v.Limit, v.Remaining, v.ResetAfter = 0, 0, 0
	}
	return v
}

// What a client reads is what the node decided, the rules included, and the generated
// code reads the same.
func TestVerdictsArrive(t *testing.T) {
	now := time.Date(2025, 2, 1, 12, 0, 0, 0, time.UTC)
	rapid.Check(t, func(t *rapid.T) {
		var numbers Numbers
		var b []byte
		var want []limit.Verdict
		for i := range rapid.IntRange(1, 4).Draw(t, "verdicts") {
			v := limit.Verdict{Allowed: true}
			switch rapid.IntRange(0, 2).Draw(t, "shape") {
			case 1:
				v = drawVerdict(t, drawRule(t, "one"))
			case 2:
				v = limit.Combine([]limit.Verdict{drawVerdict(t, drawRule(t, "one")), drawVerdict(t, drawRule(t, "two"))})
			}
			want = append(want, v)
			b = AppendReply(b, uint64(i), &v, now, &numbers)
		}
		b = AppendTaken(b, 7, &numbers)
		var r Response
		var rules Rules
		if err := r.Read(string(b), &rules); err != nil || r.Taken != 7 || len(r.Replies) != len(want) {
			t.Fatalf("%+v, %v", r, err)
		}
		var generated ringlimitv1.CheckStreamResponse
		if err := proto.Unmarshal(b, &generated); err != nil {
			t.Fatal(err)
		}
		for i := range want {
			if r.Replies[i].ID != uint64(i) || r.Replies[i].Err != nil {
				t.Fatalf("reply %d: %+v", i, r.Replies[i])
			}
			sameVerdict(t, &r.Replies[i].Verdict, &want[i])
			likeGenerated(t, generated.Replies[i].GetVerdict(), &want[i], now)
		}
	})
}

func sameVerdict(t tester, got, want *limit.Verdict) {
	t.Helper()
	sameRule(t, got.Rule, want.Rule)
	if len(got.Limits()) != len(want.Limits()) {
		t.Fatalf("%d limits, want %d", len(got.Limits()), len(want.Limits()))
	}
	for i := range want.Limits() {
		sameVerdict(t, &got.Limits()[i], &want.Limits()[i])
	}
	g, w := *got, *want
	g.Rule, w.Rule = nil, nil
	if flat(g) != flat(w) {
		t.Fatalf("got  %+v\nwant %+v", g, w)
	}
}

// flat is a verdict without its limits.
func flat(v limit.Verdict) limit.Verdict {
	return limit.Verdict{
		Allowed: v.Allowed, Reason: v.Reason, Source: v.Source, Limit: v.Limit, Remaining: v.Remaining,
		RetryAfter: v.RetryAfter, Delay: v.Delay, ResetAfter: v.ResetAfter,
	}
}

func sameRule(t tester, got, want *limit.Rule) {
	t.Helper()
	if (got == nil) != (want == nil) {
		t.Fatalf("rule %v, want %v", got, want)
	}
	if want == nil {
		return
	}
	if got.Spec != want.Spec || got.Name != want.Name || got.Tier != want.Tier || got.Jitter != want.Jitter ||
		got.Shadow != want.Shadow || got.ID() != want.ID() {
		t.Fatalf("rule %+v, want %+v", got, want)
	}
}

func likeGenerated(t tester, got *ringlimitv1.Verdict, want *limit.Verdict, now time.Time) {
	t.Helper()
	figures := want.Rule != nil && want.Reason != limit.MissingDimension
	wait := figures && (want.Allowed || want.Reason == limit.NoReason)
	switch {
	case got.Allowed != want.Allowed, got.GetLimit() != want.Limit, got.GetRemaining() != want.Remaining,
		(got.Limit != nil) != figures, (got.ResetAt != nil) != figures, (got.RetryAfter != nil) != wait,
		got.RetryAfter.AsDuration() != want.RetryAfter, got.ResetAfter.AsDuration() != want.ResetAfter,
		got.Delay.AsDuration() != want.Delay, int(got.Reason) != int(want.Reason), len(got.Limits) != len(want.Limits()):
		t.Errorf("got  %v\nwant %+v", got, want)
	case figures && !got.ResetAt.AsTime().Equal(now.Add(want.ResetAfter).Round(time.Millisecond)):
		t.Errorf("reset_at %v, want %v after %v", got.ResetAt.AsTime(), want.ResetAfter, now)
	}
	for i, l := range got.Limits {
		if l.Shadow != want.Limits()[i].Rule.Shadow || l.Rule != want.Limits()[i].Rule.Name {
			t.Errorf("limit %d is %v", i, l)
		}
	}
}

func TestErrorsArrive(t *testing.T) {
	e := Error{Code: codes.InvalidArgument, Message: "key: is empty", Field: "key"}
	b := AppendFarewell(AppendReplyError(nil, 3, &e))
	var r Response
	if err := r.Read(string(b), new(Rules)); err != nil || !r.Farewell || r.Replies[0].ID != 3 || *r.Replies[0].Err != e {
		t.Errorf("%+v, %v", r, err)
	}
	var generated ringlimitv1.CheckStreamResponse
	if err := proto.Unmarshal(b, &generated); err != nil || !generated.Farewell || generated.Replies[0].GetError().Field != "key" {
		t.Errorf("%v, %v", &generated, err)
	}
	answers, err := ReadResults(string(AppendResultError(nil, &e)))
	if err != nil || len(answers) != 1 || *answers[0].Err != e {
		t.Errorf("%+v, %v", answers, err)
	}
}

// A stream that outlives many rules numbers them anew, and its client follows.
func TestRulesAreNumberedAnew(t *testing.T) {
	var numbers Numbers
	var rules Rules
	for i := range 3*maxRules + 5 {
		r := &limit.Rule{Name: time.Duration(i).String()}
		v := limit.Verdict{Rule: r}
		b := AppendTaken(AppendReply(nil, 0, &v, time.Time{}, &numbers), 0, &numbers)
		numbers.Renew()
		var got Response
		if err := got.Read(string(b), &rules); err != nil || got.Replies[0].Verdict.Rule.Name != r.Name {
			t.Fatalf("rule %d: %+v, %v", i, got.Replies[0].Verdict.Rule, err)
		}
	}
	if n := len(rules.known); n > maxRules+1 {
		t.Errorf("a client keeps %d rules", n)
	}
}
