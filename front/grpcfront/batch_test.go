package grpcfront

import (
	"fmt"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	ringlimitv1 "github.com/ringlimit/ringlimit/api/ringlimit/v1"
)

func TestCheckBatch(t *testing.T) {
	c := client(t, config(limited(t, 2)))
	got, err := c.CheckBatch(t.Context(), &ringlimitv1.CheckBatchRequest{Checks: []*ringlimitv1.CheckRequest{
		{Key: "a"}, {Key: ""}, {Key: "b", Tier: "free"}, {Key: "a"}, {Key: "a"}, {Key: "c", Tier: "open"}, {Key: "d", Explain: true},
	}})
	if err != nil {
		t.Fatal(err)
	}
	remaining := func(i int) int64 { return got.Results[i].GetVerdict().GetRemaining() }
	if len(got.Results) != 7 || remaining(0) != 1 || remaining(3) != 0 || got.Results[4].GetVerdict().GetAllowed() {
		t.Errorf("G49: one key is charged in order: %v", got)
	}
	if e := got.Results[1].GetError(); e.GetField() != "key" || codes.Code(e.GetCode()) != codes.InvalidArgument {
		t.Errorf("the error is %v", e)
	}
	if v := got.Results[5].GetVerdict(); !v.GetAllowed() || v.Limit != nil || v.RuleId != 0 {
		t.Errorf("no rule gives %v", v)
	}
	if got.Results[6].GetVerdict().GetExplanation() == "" {
		t.Error("no explanation")
	}
	names := map[uint32]string{}
	for _, r := range got.Rules {
		names[r.Id] = r.Name
	}
	if len(got.Rules) != 2 || names[got.Results[0].GetVerdict().GetRuleId()] != "global" || names[got.Results[2].GetVerdict().GetRuleId()] != "free" {
		t.Errorf("rules %v", got.Rules)
	}
}

func TestBatchBounds(t *testing.T) {
	counters := limited(t, 2)
	c := client(t, config(counters))
	var m ringlimitv1.CheckBatchRequest
	for i := range 1000 {
		m.Checks = append(m.Checks, &ringlimitv1.CheckRequest{Key: fmt.Sprint("key-", i), Explain: true, Peek: true})
	}
	got, err := c.CheckBatch(t.Context(), &m)
	if err != nil || len(got.Results) != 1000 {
		t.Fatalf("%d results, %v", len(got.GetResults()), err)
	}
	for i, r := range got.Results {
		if explained := r.GetVerdict().GetExplanation() != ""; explained != (i < maxExplained) {
			t.Fatalf("check %d: %v", i, r)
		}
	}
	m.Checks = append(m.Checks, &ringlimitv1.CheckRequest{Key: "one more", Cost: proto.Int64(1)})
	_, err = c.CheckBatch(t.Context(), &m)
	if field, _ := violation(t, err); field != "checks" {
		t.Errorf("1,001 checks: %v", err)
	}
	if got := len(counters.requests()); got != maxExplained {
		t.Errorf("%d checks were made", got)
	}
}
