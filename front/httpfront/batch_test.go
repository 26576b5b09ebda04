package httpfront

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ringlimit/ringlimit/front"
	"github.com/ringlimit/ringlimit/limit"
)

type answers struct {
	Verdicts []struct {
		Allowed   *bool
		Remaining int64
		Error     *struct {
			Status int
			Field  string
			Detail string
		}
	}
}

func readAnswers(t *testing.T, body string) answers {
	t.Helper()
	var a answers
	if err := json.Unmarshal([]byte(body), &a); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	return a
}

// G49: the same key twice is charged in the order of the list.
func TestChecksOfOneKeyInOrder(t *testing.T) {
	h := New(config(limited(t, 5)))
	code, body := answer(post(h, "/v1/checks", `{"checks":[{"key":"a"},{"key":"b"},{"key":"a"},{"key":"a","cost":9},{"key":"a"},{"key":"b","cost":3}]}`))
	a := readAnswers(t, body)
	if code != 200 || len(a.Verdicts) != 6 {
		t.Fatalf("%d %s", code, body)
	}
	for i, want := range []struct {
		allowed   bool
		remaining int64
	}{{true, 4}, {true, 4}, {true, 3}, {false, 3}, {true, 2}, {true, 1}} {
		if got := a.Verdicts[i]; *got.Allowed != want.allowed || got.Remaining != want.remaining {
			t.Errorf("%d: %v, %d left; want %v", i, *got.Allowed, got.Remaining, want)
		}
	}
}

// costly is a checker that takes a millisecond for each unit of cost.
type costly struct {
	mu    sync.Mutex
	order []string
}

func (c *costly) Check(_ context.Context, req limit.Request) (limit.Verdict, error) {
	time.Sleep(time.Duration(req.Cost) * time.Millisecond)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.order = append(c.order, fmt.Sprint(req.Key, req.Cost))
	return limit.Verdict{Allowed: true}, nil
}

func (c *costly) Refund(ctx context.Context, r limit.Request) (limit.Verdict, error) {
	return c.Check(ctx, r)
}

// G49: a slow check holds up those of its key, and no others.
func TestChecksOfOneKeyWaitForEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := new(costly)
		cfg := config(limited(t, 3))
		cfg.Checker = c
		post(New(cfg), "/v1/checks", `{"checks":[{"key":"a","cost":9},{"key":"a","cost":5},{"key":"b","cost":8},{"key":"a","cost":1},{"key":"b","cost":2}]}`)
		if want := []string{"b8", "a9", "b2", "a5", "a1"}; !slices.Equal(c.order, want) {
			t.Errorf("%v, want %v", c.order, want)
		}
	})
}

// Wrong checks are answered for themselves, right ones among them are counted.
func TestWrongChecksAmongRightOnes(t *testing.T) {
	c := limited(t, 5)
	code, body := answer(post(New(config(c)), "/v1/checks",
		`{"checks":[{"key":"a"},{"key":""},{"key":"a","cost":0},{"kee":"a"},{"key":"a","key":"b"},7,{"key":"a","tier":"gold"},{"key":"a"}]}`))
	a := readAnswers(t, body)
	if code != 200 || len(a.Verdicts) != 8 {
		t.Fatalf("%d %s", code, body)
	}
	for i, field := range []string{"", "key", "cost", "kee", "key", "check", "tier", ""} {
		switch e := a.Verdicts[i].Error; {
		case field == "" && (e != nil || !*a.Verdicts[i].Allowed):
			t.Errorf("%d: %+v", i, a.Verdicts[i])
		case field != "" && (e == nil || e.Field != field || e.Status != 400 || e.Detail == "" || a.Verdicts[i].Allowed != nil):
			t.Errorf("%d: %+v, want an error of %s", i, e, field)
		}
	}
	if a.Verdicts[7].Remaining != 3 || len(c.asked) != 2 {
		t.Errorf("%d left after %d checks", a.Verdicts[7].Remaining, len(c.asked))
	}
}

// Every bad check is an error of its own in a batch, or spoils it whole.
func TestBadChecksInBatchCountNothing(t *testing.T) {
	c := limited(t, 3)
	h := New(config(c))
	for name, bad := range badChecks {
		code, body := answer(post(h, "/v1/checks", `{"checks":[`+bad.body+`]}`))
		if code == 400 {
			continue
		}
		if a := readAnswers(t, body); code != 200 || len(a.Verdicts) == 1 && a.Verdicts[0].Error == nil {
			t.Errorf("%s: %d %s", name, code, body)
		}
	}
	if len(c.asked) != 0 {
		t.Errorf("counted %q", c.keys())
	}
}

func TestBadBatches(t *testing.T) {
	c := limited(t, 3)
	h := New(config(c))
	many := strings.TrimSuffix(strings.Repeat(`{"key":"a"},`, 1001), ",")
	for name, test := range map[string]struct{ body, field, right string }{
		"too many":      {`{"checks":[` + many + `]}`, "checks", "more than 1000 entries"},
		"missing":       {`{}`, "checks", "must be a list of checks"},
		"no list":       {`{"checks":{"key":"a"}}`, "checks", "is an object; it must be a list of checks"},
		"null":          {`{"checks":null}`, "checks", "is null; it must be a list of checks"},
		"twice":         {`{"checks":[{"key":"a"}],"checks":[]}`, "checks", "once would be right"},
		"unknown field": {`{"check":[]}`, "check", "there is checks"},
		"list":          {`[{"key":"a"}]`, "body", "is a list; it must be a JSON object"},
		"not JSON":      {`{"checks":[{"key":"a"},{"key":NaN}]}`, "checks[1].key", "is not JSON at byte 30"},
		"not UTF-8":     {"{\"checks\":[{\"key\":\"\xff\"}]}", "checks[0].key", "invalid UTF-8"},
		"cut short":     {`{"checks":[{"key":"a"},`, "checks", "is not JSON"},
		"trailing":      {`{"checks":[{"key":"a"}]}]`, "body", "nothing may follow"},
	} {
		t.Run(name, func(t *testing.T) {
			wantProblem(t, post(h, "/v1/checks", test.body), http.StatusBadRequest, test.field, test.right)
		})
	}
	if len(c.asked) != 0 {
		t.Errorf("counted %q", c.keys())
	}
	if code, body := answer(post(h, "/v1/checks", `{"checks":[]}`)); code != 200 || body != `{"verdicts":[]}` {
		t.Errorf("%d %s", code, body)
	}
}

// slow is a checker whose owner is dead: every check takes its whole deadline.
type slow struct{ asking, most atomic.Int64 }

func (s *slow) Check(ctx context.Context, _ limit.Request) (limit.Verdict, error) {
	now := s.asking.Add(1)
	defer s.asking.Add(-1)
	for most := s.most.Load(); now > most && !s.most.CompareAndSwap(most, now); most = s.most.Load() {
	}
	select {
	case <-time.After(50 * time.Millisecond):
		return limit.Verdict{Allowed: true}, nil
	case <-ctx.Done():
		return limit.Verdict{}, ctx.Err()
	}
}

func (s *slow) Refund(ctx context.Context, r limit.Request) (limit.Verdict, error) {
	return s.Check(ctx, r)
}

func distinct(n int) string {
	checks := make([]string, n)
	for i := range checks {
		checks[i] = fmt.Sprintf(`{"key":"k%d"}`, i)
	}
	return `{"checks":[` + strings.Join(checks, ",") + `]}`
}

// Different keys wait side by side, a bounded number at once.
func TestDeadOwnerDoesNotSerialiseABatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(slow)
		cfg := config(limited(t, 3))
		cfg.Checker = s
		start := time.Now()
		code, body := answer(post(New(cfg), "/v1/checks", distinct(1000)))
		if code != 200 || strings.Count(body, `{"allowed":true}`) != 1000 {
			t.Errorf("%d %s", code, body)
		}
		if took := time.Since(start); took != 400*time.Millisecond { // ⌈1000/128⌉ deadlines
			t.Errorf("took %v", took)
		}
		if most := s.most.Load(); most != front.MaxAsking {
			t.Errorf("%d at once", most)
		}
	})
}

// A client that leaves ends its batch.
func TestBatchEndsWithItsClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := config(limited(t, 3))
		cfg.Checker = new(slow)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		r := httptest.NewRequestWithContext(ctx, "POST", "/v1/checks", strings.NewReader(distinct(1000)))
		r.Header.Set("Content-Type", "application/json")
		start := time.Now()
		w := do(New(cfg), r)
		if w.Code != http.StatusServiceUnavailable || time.Since(start) != 20*time.Millisecond {
			t.Errorf("%d after %v", w.Code, time.Since(start))
		}
	})
}
