package ringlimit

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ringlimit/ringlimit/limit"
	"github.com/ringlimit/ringlimit/membership"
	"github.com/ringlimit/ringlimit/rules"
)

const twoOfEach = `
tiers:
  default:
    - {name: few, algorithm: sliding_window_log, limit: 5, window: 1h}
    - {name: many, algorithm: sliding_window_log, limit: 100, window: 1h}
  counter:
    - {name: few, algorithm: sliding_window_counter, limit: 5, window: 1h}
    - {name: many, algorithm: sliding_window_counter, limit: 100, window: 1h}
  window:
    - {name: few, algorithm: fixed_window, limit: 5, window: 1h}
    - {name: many, algorithm: fixed_window, limit: 100, window: 1h}
  bucket:
    - {name: few, algorithm: token_bucket, limit: 5, window: 100h}
    - {name: many, algorithm: token_bucket, limit: 100, window: 1000h}
  queue:
    - {name: few, algorithm: leaky_bucket, limit: 5, window: 100h, burst: 4}
    - {name: many, algorithm: leaky_bucket, limit: 100, window: 1000h, burst: 99}
`

// owners names who counts each limit of a request.
func owners(t testing.TB, n *Node, req Request) (ids []membership.NodeID) {
	t.Helper()
	var m rules.Matches
	if err := n.Rules().Match(&req, &m); err != nil {
		t.Fatal(err)
	}
	for _, w := range m.Winners {
		_, id, _ := n.router.Locate(w.Counter)
		ids = append(ids, id)
	}
	return ids
}

// keyOwned is a key of the tier whose limits these nodes count.
func keyOwned(t testing.TB, n *Node, tier string, want ...membership.NodeID) string {
	t.Helper()
	for i := range 10_000 {
		key := fmt.Sprintf("cust_%d", i)
		if fmt.Sprint(owners(t, n, Request{Key: key, Tier: tier})) == fmt.Sprint(want) {
			return key
		}
	}
	t.Fatalf("no key of %v", want)
	return ""
}

// left is what remains of each limit, by rule.
func left(v Verdict) string {
	var parts []string
	for _, l := range v.Limits() {
		parts = append(parts, fmt.Sprintf("%s %d", l.Rule.Name, l.Remaining))
	}
	return strings.Join(parts, ", ")
}

// G47: 5 and 100 an hour on one request, counted by two nodes. After 20 requests 95
// are left of the 100, in every algorithm, whichever node was asked.
func TestDeniedRequestConsumesNothing(t *testing.T) {
	for _, tier := range []string{"", "counter", "window", "bucket", "queue"} {
		t.Run(tier, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				nodes := cluster(t, newMemory(), 3, parseRules(t, twoOfEach))
				defer stop(t, nodes...)
				for _, key := range []string{
					keyOwned(t, nodes[0], tier, "node-0", "node-1"),
					keyOwned(t, nodes[0], tier, "node-1", "node-2"),
					keyOwned(t, nodes[0], tier, "node-2", "node-2"),
				} {
					wantFiveOfTwenty(t, nodes, Request{Key: key, Tier: tier})
				}
			})
		})
	}
}

func wantFiveOfTwenty(t *testing.T, nodes []*Node, req Request) {
	t.Helper()
	admitted := 0
	for i := range 20 {
		v := check(t, nodes[i%len(nodes)], req)
		if v.Allowed {
			admitted++
		}
		if v.Rule.Name != "few" {
			t.Errorf("%d: bound by %s", i, v.Rule.Name)
		}
	}
	time.Sleep(100 * time.Millisecond) // the refunds arrive
	req.Peek = true
	v := check(t, nodes[0], req)
	if got := left(v); admitted != 5 || got != "few 0, many 95" || v.Allowed {
		t.Errorf("admitted %d, left: %s; want 5, few 0, many 95: %+v", admitted, got, v)
	}
}

// A request that is refused shows all its limits, and the longest wait of all, also
// when the node that was asked knows of a shorter one by itself.
func TestLongestWaitOfAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := cluster(t, newMemory(), 3, parseRules(t, `
tiers:
  default:
    - {name: soon, algorithm: sliding_window_log, limit: 1, window: 1m}
    - {name: later, algorithm: sliding_window_log, limit: 1, window: 1h}
    - {name: wide, algorithm: sliding_window_log, limit: 9, window: 1h}
`))
		defer stop(t, nodes...)
		req := Request{Key: keyOwned(t, nodes[0], "", "node-0", "node-1", "node-2")}
		check(t, nodes[0], req)
		for i := range 20 {
			v := check(t, nodes[i%3], req)
			if v.Allowed || v.Rule.Name != "later" || v.RetryAfter < 59*time.Minute || left(v) != "soon 0, later 0, wide 8" {
				t.Errorf("%d: %s, %+v", i, left(v), v)
			}
			time.Sleep(100 * time.Millisecond)
		}
	})
}

// What is given back is given back to each limit.
func TestRefundOfSeveral(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := cluster(t, newMemory(), 2, parseRules(t, twoOfEach))
		defer stop(t, nodes...)
		req := Request{Key: keyOwned(t, nodes[0], "", "node-0", "node-1"), Cost: 3}
		if v := check(t, nodes[0], req); left(v) != "few 2, many 97" {
			t.Errorf("left: %s", left(v))
		}
		req.Cost = 2
		v, err := nodes[1].Refund(t.Context(), req)
		if err != nil || left(v) != "few 4, many 99" || v.Rule.Name != "few" || !v.Allowed {
			t.Errorf("left: %s, %+v, %v", left(v), v, err)
		}
		at, err := nodes[0].Locate(t.Context(), req)
		if err != nil || at.Owner != "node-0" || at.Verdict.Rule.Name != "few" || at.Verdict.Remaining != 4 {
			t.Errorf("%+v, %v", at, err)
		}
	})
}

const oddRules = `
tiers:
  default:
    - {name: client, algorithm: fixed_window, limit: 3, window: 1h}
    - {name: trial, algorithm: fixed_window, limit: 1, window: 1h, shadow: true}
  none:
    - {name: client, algorithm: fixed_window, limit: 5, window: 1h}
    - {name: nothing, by: [ip], algorithm: fixed_window, limit: 0, window: 1h}
  free:
    - {name: client, unlimited: true}
  strict:
    - {name: plan, by: [attribute plan], algorithm: fixed_window, limit: 5, window: 1h, on_missing: deny}
    - {name: client, algorithm: fixed_window, limit: 5, window: 1h}
    - {name: trial, by: [ip], algorithm: fixed_window, limit: 5, window: 1h, on_missing: deny, shadow: true}
  queue:
    - {name: fast, algorithm: leaky_bucket, limit: 10, window: 10s, burst: 3}
    - {name: slow, algorithm: leaky_bucket, limit: 10, window: 100s, burst: 9}
`

// single runs f with one node that has the odd rules.
func single(t *testing.T, f func(t *testing.T, n *Node)) {
	synctest.Test(t, func(t *testing.T) {
		n := start(t, newMemory().config(t, 0, parseRules(t, oddRules)))
		defer stop(t, n)
		f(t, n)
	})
}

// A rule in shadow counts and reports; it neither refuses nor binds.
func TestShadow(t *testing.T) {
	single(t, func(t *testing.T, n *Node) {
		for i, want := range []string{"client 2, trial 0", "client 1, trial 0", "client 0, trial 0", "client 0, trial 0"} {
			v := check(t, n, Request{Key: "k"})
			if left(v) != want || v.Allowed != (i < 3) || v.Rule.Name != "client" {
				t.Errorf("%d: %s, %+v", i, left(v), v)
			}
			if trial := v.Limits()[1]; trial.Allowed != (i == 0) || !trial.Rule.Shadow {
				t.Errorf("%d: %+v", i, trial)
			}
		}
		counted := checksOf(t, n)
		if a, d, s := counted["default/client allowed owner"], counted["default/client denied owner"], counted["default/trial shadow_denied owner"]; a != 3 || d != 1 || s != 3 {
			t.Errorf("counted %v allowed, %v denied, %v denied in shadow", a, d, s)
		}
	})
}

// A request that only a rule in shadow limits is limited by none.
func TestShadowOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := start(t, newMemory().config(t, 0, parseRules(t, `
tiers:
  default:
    - {name: trial, algorithm: fixed_window, limit: 1, window: 1h, shadow: true}
`)))
		defer stop(t, n)
		for i := range 3 {
			v := check(t, n, Request{Key: "k"})
			if !v.Allowed || v.Rule != nil || left(v) != "trial 0" || v.Limits()[0].Allowed != (i == 0) {
				t.Errorf("%d: %s, %+v", i, left(v), v)
			}
		}
		if at, err := n.Locate(t.Context(), Request{Key: "k"}); err != nil || at.Owner != "" || !at.Verdict.Allowed {
			t.Errorf("%+v, %v", at, err)
		}
	})
}

func TestLimitsOfNothingAndWithoutEnd(t *testing.T) {
	single(t, func(t *testing.T, n *Node) {
		ip := netip.MustParseAddr("192.0.2.1")
		v := check(t, n, Request{Key: "k", Tier: "none", IP: ip})
		if v.Allowed || v.Rule.Name != "nothing" || v.Reason != limit.CostExceedsLimit || left(v) != "client 5, nothing 0" {
			t.Errorf("limit 0: %s, %+v", left(v), v)
		}
		if v := check(t, n, Request{Key: "k", Tier: "none"}); !v.Allowed || left(v) != "" || v.Remaining != 4 {
			t.Errorf("nothing was charged, and one is left of one limit: %+v", v)
		}
		if v := check(t, n, Request{Key: "k", Tier: "free"}); !v.Allowed || v.Rule != nil || v.Limits() != nil {
			t.Errorf("unlimited: %+v", v)
		}
	})
}

// F44: a request that lacks what one of its rules counts by is refused, charged
// nowhere and shown all limits; if that rule is in shadow, it only says so.
func TestMissingDimensionOfOne(t *testing.T) {
	single(t, func(t *testing.T, n *Node) {
		v := check(t, n, Request{Key: "k", Tier: "strict"})
		if v.Allowed || v.Reason != limit.MissingDimension || v.Rule.Name != "plan" || left(v) != "plan 0, client 5, trial 0" {
			t.Errorf("%s, %+v", left(v), v)
		}
		plan := map[string]string{"plan": "gold"}
		v = check(t, n, Request{Key: "k", Tier: "strict", Attributes: plan})
		if !v.Allowed || left(v) != "plan 4, client 4, trial 0" || v.Limits()[2].Reason != limit.MissingDimension {
			t.Errorf("%s, %+v", left(v), v)
		}
	})
}

// F45: two rules with other windows on one key count for themselves.
func TestRulesOfOneKeyAreIndependent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := start(t, newMemory().config(t, 0, parseRules(t, `
tiers:
  default:
    - {name: second, algorithm: fixed_window, limit: 2, window: 1s}
    - {name: hour, algorithm: fixed_window, limit: 5, window: 1h}
`)))
		defer stop(t, n)
		for i, want := range []string{
			"second 1, hour 4", "second 0, hour 3", "second 0, hour 3", // and again:
			"second 1, hour 2", "second 0, hour 1", "second 0, hour 1",
			"second 1, hour 0", "second 1, hour 0",
		} {
			if i%3 == 0 {
				time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second)))
			}
			v := check(t, n, Request{Key: "k"})
			if left(v) != want || v.Allowed != (i%3 < 2 && i < 7) {
				t.Errorf("%d: %s, want %s; %+v", i, left(v), want, v)
			}
		}
	})
}

// A request that two queues admit waits for the later turn, whichever binds.
func TestDelayOfSeveral(t *testing.T) {
	single(t, func(t *testing.T, n *Node) {
		for i := range 3 {
			if v := check(t, n, Request{Key: "k", Tier: "queue"}); !v.Allowed || v.Rule.Name != "fast" || v.Delay.Round(time.Second) != time.Duration(i)*10*time.Second {
				t.Errorf("%d: %+v", i, v)
			}
		}
	})
}

// A check and its explanation are by the same rules, whenever these change.
func TestExplainedByTheRulesItWasDecidedBy(t *testing.T) {
	n := alone(t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 300 {
			body := fmt.Sprintf(`{"rules":[{"name":"r%d","algorithm":"token_bucket","limit":1000000,"window":"1s"}]}`, i)
			if _, err := n.PutLimits("default", []byte(body), Precondition{}); err != nil {
				t.Error(err)
			}
		}
	}()
	defer func() { <-done }()
	for going := true; going; {
		select {
		case <-done:
			going = false
		default:
		}
		v, text, err := n.CheckExplained(t.Context(), Request{Key: "k"})
		var all []rules.Consideration
		if err == nil {
			err = json.Unmarshal(text, &all)
		}
		if err != nil || len(all) != 1 || !all[0].Applies || all[0].Name != v.Rule.Name {
			t.Fatalf("decided by %s, explained: %s, %v", v.Rule.Name, text, err)
		}
	}
	if v, _, err := n.CheckExplained(t.Context(), Request{Key: "k", Tier: "gold"}); err == nil {
		t.Errorf("%+v", v)
	}
}

// What a check leaves in the pool keeps no rules in memory.
func TestPooledScratchKeepsNoRules(t *testing.T) {
	single(t, func(t *testing.T, n *Node) {
		for _, tier := range []string{"queue", "", "none", "strict"} {
			check(t, n, Request{Key: "k", Tier: tier, IP: netip.MustParseAddr("192.0.2.1")})
			check(t, n, Request{Key: "k", Tier: "free"})
			s := n.scratch.Get().(*scratch)
			if s.call.Rule != nil {
				t.Errorf("%q: the call keeps %s", tier, s.call.Rule.Name)
			}
			for _, c := range s.calls[:cap(s.calls)] {
				if c.Rule != nil {
					t.Errorf("%q: the calls keep %s", tier, c.Rule.Name)
				}
			}
			for _, w := range s.matches.Winners[:cap(s.matches.Winners)] {
				if w.Rule != nil {
					t.Errorf("%q: the matches keep %s", tier, w.Rule.Name)
				}
			}
			n.scratch.Put(s)
		}
	})
}

// The middleware lists all limits; an explanation names the rules and what became
// of them.
func TestSeveralAtTheDoors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := start(t, newMemory().config(t, 0, parseRules(t, twoOfEach)))
		defer stop(t, n)
		w := httptest.NewRecorder()
		n.Middleware(http.NotFoundHandler()).ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		if got := w.Header().Get("RateLimit-Policy"); got != `"few";q=5;w=3600, "many";q=100;w=3600` {
			t.Error(got)
		}
		text, err := n.ExplainJSON(Request{Key: "k", Tier: "bucket"})
		var all []rules.Consideration
		if err == nil {
			err = json.Unmarshal(text, &all)
		}
		if err != nil || len(all) != 4 || !all[0].Applies || all[0].Of != "tier/bucket" || all[3].Applies {
			t.Errorf("%s, %v", text, err)
		}
		for _, bad := range []Request{{}, {Key: "k", Tier: "gold"}} {
			if text, err := n.ExplainJSON(bad); err == nil {
				t.Errorf("%+v: %s", bad, text)
			}
		}
	})
}
