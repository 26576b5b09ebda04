package httpfront

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/ringlimit/ringlimit/limit"
)

// A check that asks for it is explained as well as charged, one that does not is
// not.
func TestExplain(t *testing.T) {
	h := New(config(limited(t, 3)))
	const verdict = `{"allowed":true,"limit":3,"remaining":%d,"retry_after_ms":0,"reset_at":"2025-02-01T12:01:00.000Z","rule":"global","source":"owner"`
	for i, step := range []struct{ body, explain string }{
		{`{"key":"a","explain":true}`, `,"explain":["a after 0 checks"]}`},
		{`{"explain":false,"key":"a"}`, `}`},
		{`{"key":"a","explain":true,"peek":true}`, `,"explain":["a after 2 checks"]}`},
	} {
		want := fmt.Sprintf(verdict, 2-min(i, 1)) + step.explain
		if code, body := answer(post(h, "/v1/check", step.body)); code != 200 || body != want {
			t.Errorf("%s: %d\n%s, want\n%s", step.body, code, body, want)
		}
	}
	wantProblem(t, post(h, "/v1/refund", `{"key":"a","explain":true}`), 400, "explain", "there are key, route, cost, tier, ip, attributes")
}

// unclear is a checker that explains nothing.
type unclear struct{ *counters }

func (unclear) CheckExplained(context.Context, limit.Request) (limit.Verdict, []byte, error) {
	return limit.Verdict{}, nil, context.Canceled
}

func TestWhatCannotBeExplainedIsNotCharged(t *testing.T) {
	c := limited(t, 3)
	cfg := config(c)
	cfg.Explainer = unclear{c}
	h := New(cfg)
	if code, body := answer(post(h, "/v1/check", `{"key":"a","explain":true}`)); code != 503 {
		t.Errorf("%d %s", code, body)
	}
	if code, body := answer(post(h, "/v1/checks", `{"checks":[{"key":"a","explain":true},{"key":"b"}]}`)); code != 200 || !strings.HasPrefix(body, `{"verdicts":[{"error":`) {
		t.Errorf("%d %s", code, body)
	}
	if len(c.asked) != 1 {
		t.Errorf("charged %q", c.keys())
	}
}

// A batch explains those that ask for it, up to a bound: an explanation may be
// long.
func TestExplainInBatch(t *testing.T) {
	c := limited(t, 3)
	var list []string
	for i := range 2 * (maxExplained + 2) {
		list = append(list, fmt.Sprintf(`{"key":"k%d","explain":%v}`, i, i%2 == 0))
	}
	code, body := answer(post(New(config(c)), "/v1/checks", `{"checks":[`+strings.Join(list, ",")+`]}`))
	if code != 200 || strings.Count(body, `"explain":["k`) != maxExplained || strings.Contains(body, "k1 after") {
		t.Errorf("%d %s", code, body)
	}
	for i, v := range readAnswers(t, body).Verdicts {
		beyond := i%2 == 0 && i/2 >= maxExplained
		if (v.Error != nil) != beyond || beyond && (v.Error.Field != "explain" || v.Error.Status != 400) {
			t.Errorf("%d: %+v", i, v)
		}
	}
	if want := len(list) - 2; len(c.asked) != want {
		t.Errorf("%d were counted, want %d", len(c.asked), want)
	}
}

// A request that waits for its turn sees all of its limits at that moment.
func TestTimePassesForEachLimit(t *testing.T) {
	rule := perMinute(t, 5)
	v := limit.Combine([]limit.Verdict{
		{Allowed: true, Rule: rule, Limit: 5, Remaining: 1, ResetAfter: 9},
		{Allowed: true, Rule: rule, Limit: 5, Remaining: 2, ResetAfter: 2, Delay: 4},
	})
	later(&v, v.Delay)
	if l := v.Limits(); v.ResetAfter != 5 || l[0].ResetAfter != 5 || l[1].ResetAfter != 0 {
		t.Errorf("%+v %+v", v, l)
	}
}
