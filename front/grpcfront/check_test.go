package grpcfront

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	ringlimitv1 "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/limit"
)

func verdict(t *testing.T, got, want *ringlimitv1.Verdict) {
	t.Helper()
	if !proto.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

func TestCheck(t *testing.T) {
	c := client(t, config(limited(t, 2)))
	minute := durationpb.New(time.Minute)
	figures := func(allowed bool, remaining int64, retry *durationpb.Duration) *ringlimitv1.Verdict {
		return &ringlimitv1.Verdict{
			Allowed: allowed, Limit: proto.Int64(2), Remaining: proto.Int64(remaining), RetryAfter: retry,
			ResetAt: timestamppb.New(noon.Add(time.Minute)), ResetAfter: minute,
			Rule: "global", Source: ringlimitv1.Source_SOURCE_OWNER,
		}
	}
	zero := durationpb.New(0)
	never := figures(false, 0, nil)
	never.Reason = ringlimitv1.Reason_REASON_COST_EXCEEDS_LIMIT
	for _, step := range []struct {
		ask  *ringlimitv1.CheckRequest
		want *ringlimitv1.Verdict
	}{
		{&ringlimitv1.CheckRequest{Key: "a"}, figures(true, 1, zero)},
		{&ringlimitv1.CheckRequest{Key: "a", Peek: true}, figures(true, 1, zero)},
		{&ringlimitv1.CheckRequest{Key: "a", Cost: proto.Int64(1)}, figures(true, 0, zero)},
		{&ringlimitv1.CheckRequest{Key: "a"}, figures(false, 0, minute)},
		{&ringlimitv1.CheckRequest{Key: "a", Cost: proto.Int64(3)}, never},
		{&ringlimitv1.CheckRequest{Key: "a", Tier: "open"}, &ringlimitv1.Verdict{Allowed: true}},
	} {
		got, err := c.Check(t.Context(), step.ask)
		if err != nil {
			t.Fatal(err)
		}
		verdict(t, got, step.want)
	}
	got, err := c.Refund(t.Context(), &ringlimitv1.RefundRequest{Key: "a", Cost: proto.Int64(1)})
	if err != nil {
		t.Fatal(err)
	}
	verdict(t, got, figures(true, 1, zero))
}

// What a rule may count by reaches the checker.
func TestCheckCarriesEverything(t *testing.T) {
	counters := limited(t, 2)
	c := client(t, config(counters))
	_, err := c.Check(t.Context(), &ringlimitv1.CheckRequest{
		Key: "a\x00\n\u00e9", Route: "GET /", Cost: proto.Int64(2), Tier: "free", Ip: "::ffff:192.0.2.1",
		Attributes: map[string]string{"region": "eu"}, Peek: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	got := counters.requests()[0]
	if got.Key != "a\x00\n\u00e9" || got.Route != "GET /" || got.Cost != 2 || got.Tier != "free" ||
		got.IP.String() != "192.0.2.1" || got.Attributes["region"] != "eu" || !got.Peek {
		t.Errorf("the checker was asked %+v", got)
	}
}

func TestExplain(t *testing.T) {
	c := client(t, config(limited(t, 2)))
	got, err := c.Check(t.Context(), &ringlimitv1.CheckRequest{Key: "a", Explain: true})
	if err != nil || got.Explanation != `["a, 1 checks"]` {
		t.Errorf("%v, %v", got, err)
	}
}

// violation is the one field that a refusal complains of.
func violation(t *testing.T, err error) (field, description string) {
	t.Helper()
	st := status.Convert(err)
	if st.Code() != codes.InvalidArgument || len(st.Details()) != 1 {
		t.Fatalf("%v with %v", err, st.Details())
	}
	bad, ok := st.Details()[0].(*errdetails.BadRequest)
	if !ok || len(bad.FieldViolations) != 1 {
		t.Fatalf("details %v", st.Details())
	}
	return bad.FieldViolations[0].Field, bad.FieldViolations[0].Description
}

func TestBadInput(t *testing.T) {
	counters := limited(t, 2)
	c := client(t, config(counters))
	for name, test := range map[string]struct {
		ask          *ringlimitv1.CheckRequest
		field, right string
	}{
		"no key":           {&ringlimitv1.CheckRequest{}, "key", "must name who is limited"},
		"F40: a long key":  {&ringlimitv1.CheckRequest{Key: strings.Repeat("x", 513)}, "key", "at most 512"},
		"A2: cost 0":       {&ringlimitv1.CheckRequest{Key: "a", Cost: proto.Int64(0)}, "cost", "an integer from 1 to 9007199254740991"},
		"A2: cost -1":      {&ringlimitv1.CheckRequest{Key: "a", Cost: proto.Int64(-1)}, "cost", "an integer from 1"},
		"a large cost":     {&ringlimitv1.CheckRequest{Key: "a", Cost: proto.Int64(limit.MaxCost + 1)}, "cost", "an integer from 1"},
		"no address":       {&ringlimitv1.CheckRequest{Key: "a", Ip: "x"}, "ip", "192.0.2.1"},
		"an unknown tier":  {&ringlimitv1.CheckRequest{Key: "a", Tier: "gold"}, "tier", "there are"},
		"a long attribute": {&ringlimitv1.CheckRequest{Key: "a", Attributes: map[string]string{"b": strings.Repeat("x", 513)}}, "attributes.b", "at most 512"},
	} {
		_, err := c.Check(t.Context(), test.ask)
		field, description := violation(t, err)
		if field != test.field || !strings.Contains(description, test.right) {
			t.Errorf("%s: %s: %s", name, field, description)
		}
		if test.field == "tier" || test.ask.Peek {
			continue
		}
		if _, err := c.Refund(t.Context(), &ringlimitv1.RefundRequest{Key: test.ask.Key, Cost: test.ask.Cost, Ip: test.ask.Ip, Attributes: test.ask.Attributes}); status.Code(err) != codes.InvalidArgument {
			t.Errorf("%s: a refund gives %v", name, err)
		}
	}
	if got := counters.requests(); len(got) != 0 {
		t.Errorf("counted all the same: %v", got)
	}
}
