package forward

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ringlimit/ringlimit/limit"
	"github.com/ringlimit/ringlimit/owner"
)

func denialCall(name string, rule *limit.Rule, cost int64) *owner.Call {
	return &owner.Call{ID: owner.Seed(1).ID([]byte(name)), Charge: limit.Charge{Counter: []byte(name), Rule: rule, Cost: cost}}
}

// drawRule draws a rule of any algorithm, small enough to be exhausted.
func drawRule(t *rapid.T) *limit.Rule {
	spec := limit.Spec{
		Algorithm: limit.Algorithm(rapid.IntRange(int(limit.TokenBucket), int(limit.SlidingWindowCounter)).Draw(t, "algorithm")),
		Limit:     rapid.Int64Range(1, 10).Draw(t, "limit"),
		Window:    time.Duration(rapid.Int64Range(1, 20_000).Draw(t, "window")) * time.Millisecond,
	}
	if spec.Algorithm == limit.TokenBucket || spec.Algorithm == limit.LeakyBucket {
		spec.Burst = rapid.Int64Range(0, 10).Draw(t, "burst")
	}
	rule, err := limit.NewRule(spec)
	if err != nil {
		t.Fatal(err)
	}
	return rule
}

// The cache answers what the owner would answer at that time: it refuses nothing
// that the owner would admit, and its numbers are the owner's, but for waits,
// which are longer by the time that the answer took. The model is the owner: the real algorithms on one
// counter, asked and refunded by this node and charged by others too, with
// answers that overtake each other.
func TestLawDenyCacheAnswersAsTheOwnerWould(t *testing.T) {
	const slowest = 10 * time.Millisecond
	rapid.Check(t, func(t *rapid.T) {
		rule := drawRule(t)
		cache := newDenyCache(rapid.IntRange(1, 100).Draw(t, "size"))
		var state limit.State
		var late []func()
		now := int64(1_700_000_000_000_000_000)
		pass := func(most time.Duration, what string) { now += rapid.Int64Range(0, int64(most)).Draw(t, what) }
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			pass(rule.Window/2, "pause")
			cost := max(1, rapid.Int64Range(-rule.Capacity(), rule.Capacity()).Draw(t, "cost")) // often 1
			call := denialCall("k", rule, cost)
			switch rapid.SampledFrom([]string{"check", "check", "late", "elsewhere", "refund"}).Draw(t, "step") {
			case "elsewhere":
				state, _ = rule.Take(state, now, cost)
			case "refund":
				state, _ = rule.Refund(state, now, cost)
				pass(slowest, "back")
				cache.forget(now, call.ID)
			case "late":
				for _, arrive := range late {
					arrive()
				}
				late = nil
			default:
				if v, ok := find(cache, now, call); ok {
					checkDenial(t, rule, state, now, cost, v)
					break
				}
				sent := now
				pass(slowest, "there")
				var v limit.Verdict
				state, v = rule.Take(state, now, cost)
				if rapid.Bool().Draw(t, "overtaken") {
					late = append(late, func() { cache.add(sent, now, call, &v) })
					break
				}
				pass(slowest, "back")
				cache.add(sent, now, call, &v)
			}
		}
	})
}

func checkDenial(t *rapid.T, rule *limit.Rule, state limit.State, now, cost int64, v limit.Verdict) {
	want := rule.Peek(state, now, cost)
	if want.Allowed {
		t.Fatalf("cost %d is refused for another %v; the owner would admit it", cost, v.RetryAfter)
	}
	if v.Allowed || v.Source != limit.SourceDenyCache || v.Limit != want.Limit || v.Remaining != want.Remaining {
		t.Fatalf("verdict %+v, the owner's %+v", v, want)
	}
	if v.RetryAfter < want.RetryAfter || v.ResetAfter < want.ResetAfter {
		t.Fatalf("times of %+v, the owner's %+v", v, want)
	}
}

// Nobody else asks: who waits as the cache says is admitted.
func TestLawDenyCacheNamesAWaitThatIsEnough(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rule := drawRule(t)
		cache := newDenyCache(8)
		const cost = 1
		call := denialCall("k", rule, cost)
		now := int64(1_700_000_000_000_000_000)
		var state limit.State
		var v limit.Verdict
		for v.Allowed = true; v.Allowed; {
			state, v = rule.Take(state, now, cost)
		}
		sent := now - rapid.Int64Range(0, int64(time.Millisecond)).Draw(t, "there")
		cache.add(sent, now+rapid.Int64Range(0, int64(time.Millisecond)).Draw(t, "back"), call, &v)
		now += rapid.Int64Range(0, int64(v.RetryAfter)).Draw(t, "later")
		if cached, ok := find(cache, now, call); ok && !rule.Peek(state, now+int64(cached.RetryAfter), cost).Allowed {
			t.Fatalf("told to wait %v, and still denied", cached.RetryAfter)
		}
	})
}

// remember is a cache with one denial, sent at 100 and answered at 102.
func remember(t *testing.T, wait time.Duration) (*denyCache, *limit.Rule) {
	cache, rule := newDenyCache(64), tokens(t, 10)
	cache.add(100, 102, denialCall("k", rule, 1), &limit.Verdict{Limit: 10, RetryAfter: wait, ResetAfter: 2 * wait})
	return cache, rule
}

func TestDenyCacheCountsFromSent(t *testing.T) {
	cache, rule := remember(t, 100)
	v, ok := find(cache, 199, denialCall("k", rule, 1))
	want := limit.Verdict{Source: limit.SourceDenyCache, Limit: 10, RetryAfter: 3, ResetAfter: 103}
	if !ok || v != want {
		t.Errorf("at 199: %+v, %v", v, ok)
	}
	if _, ok := find(cache, 200, denialCall("k", rule, 1)); ok {
		t.Error("at 200 it is no longer certain")
	}
}

func TestDenyCacheBelievesFiveSeconds(t *testing.T) {
	cache, rule := remember(t, time.Hour)
	call := denialCall("k", rule, 1)
	v, ok := find(cache, 100+int64(maxDenial)-1, call)
	if want := time.Hour - maxDenial + 3; !ok || v.RetryAfter != want {
		t.Errorf("just before: %v, %v; want %v", v.RetryAfter, ok, want)
	}
	if _, ok := find(cache, 100+int64(maxDenial), call); ok {
		t.Error("believed for longer")
	}
}

func TestDenyCacheMisses(t *testing.T) {
	cache, rule := remember(t, time.Second)
	for what, call := range map[string]*owner.Call{
		"a larger cost":   denialCall("k", rule, 2),
		"another counter": denialCall("l", rule, 1),
		"another rule":    denialCall("k", tokens(t, 11), 1),
	} {
		if _, ok := find(cache, 110, call); ok {
			t.Errorf("hit by %s", what)
		}
	}
}

func TestDenyCacheKeepsOnlyDenialsThatEnd(t *testing.T) {
	rule := tokens(t, 10)
	for what, v := range map[string]limit.Verdict{
		"an admission":    {Allowed: true, RetryAfter: time.Second},
		"no wait":         {},
		"one for good":    {Reason: limit.CostExceedsLimit, RetryAfter: time.Second},
		"one out of date": {RetryAfter: 2},
	} {
		cache, call := newDenyCache(8), denialCall("k", rule, 1)
		cache.add(100, 102, call, &v)
		if _, ok := find(cache, 100, call); ok {
			t.Errorf("keeps %s", what)
		}
	}
}

// Costs above 1 may be admitted in part meanwhile: what remains would be wrong.
func TestDenyCacheKeepsNoLargerCost(t *testing.T) {
	cache, rule := newDenyCache(64), tokens(t, 10)
	cache.add(100, 102, denialCall("k", rule, 5), &limit.Verdict{Limit: 10, Remaining: 4, RetryAfter: time.Second})
	for cost := range int64(6) {
		if _, ok := find(cache, 110, denialCall("k", rule, cost)); ok {
			t.Errorf("hit by cost %d", cost)
		}
	}
}

func TestDenyCacheForgets(t *testing.T) {
	cache, rule := remember(t, time.Second)
	other := denialCall("k", tokens(t, 11), 1)
	cache.add(100, 102, other, &limit.Verdict{RetryAfter: time.Second})
	cache.forget(110, other.ID)
	for what, call := range map[string]*owner.Call{"one rule": denialCall("k", rule, 1), "the other": other} {
		if _, ok := find(cache, 110, call); ok {
			t.Errorf("still has the denial by %s", what)
		}
	}
}

// A denial that was under way when a refund came back may be older than the
// refund. One that was sent later is not.
func TestDenyCacheForgetsWhatIsUnderWay(t *testing.T) {
	cache, rule := newDenyCache(8), tokens(t, 10)
	call, denied := denialCall("k", rule, 1), &limit.Verdict{RetryAfter: time.Second}
	cache.forget(10, call.ID)
	cache.add(10, 12, call, denied)
	if _, ok := find(cache, 12, call); ok {
		t.Error("a denial from before the refund is remembered")
	}
	cache.add(11, 12, call, denied)
	if _, ok := find(cache, 12, call); !ok {
		t.Error("a denial from after the refund is not")
	}
}

// Its memory is fixed; what ends first gives way.
func TestDenyCacheIsBounded(t *testing.T) {
	cache, rule := newDenyCache(1), tokens(t, 10)
	if len(cache.sets) != 1 {
		t.Fatalf("%d sets", len(cache.sets))
	}
	names := "abcdefghij"
	for i := range names {
		cache.add(1, 2, denialCall(names[i:i+1], rule, 1), &limit.Verdict{RetryAfter: time.Duration(1000 + i)})
	}
	for i := range names {
		_, ok := find(cache, 10, denialCall(names[i:i+1], rule, 1))
		if want := i == len(names)-1 || i >= len(names)-cacheWays; ok != want {
			t.Errorf("%c: found %v", names[i], ok)
		}
	}
}

func TestDenyCacheSizes(t *testing.T) {
	for size, sets := range map[int]int{0: DefaultDenyCacheSize / cacheWays, 1: 1, 8: 1, 9: 2, 24: 4, 1000: 128} {
		if got := len(newDenyCache(size).sets); got != sets {
			t.Errorf("size %d: %d sets, want %d", size, got, sets)
		}
	}
}
