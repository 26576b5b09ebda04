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

// The cache refuses nothing that the owner would admit at that time, and tells
// of no wait that is too short. The model is the owner: the real algorithms on
// one counter, asked by this node through the cache and by others directly,
// with messages that take their time.
func TestLawDenyCacheNeverRefusesWhatTheOwnerAdmits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rule := drawRule(t)
		cache := newDenyCache(rapid.IntRange(1, 100).Draw(t, "size"))
		var state limit.State
		now := int64(1_700_000_000_000_000_000)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			now += rapid.Int64Range(0, int64(rule.Window)/2).Draw(t, "pause")
			cost := rapid.Int64Range(1, rule.Capacity()).Draw(t, "cost")
			call := denialCall("k", rule, cost)
			if rapid.Bool().Draw(t, "elsewhere") {
				state, _ = rule.Take(state, now, cost)
				continue
			}
			if v, ok := find(cache, now, call); ok {
				checkDenial(t, rule, state, now, cost, v)
				continue
			}
			sent := now
			now += rapid.Int64Range(0, int64(10*time.Millisecond)).Draw(t, "there")
			var v limit.Verdict
			state, v = rule.Take(state, now, cost)
			now += rapid.Int64Range(0, int64(10*time.Millisecond)).Draw(t, "back")
			cache.add(sent, now, call, &v)
		}
	})
}

func checkDenial(t *rapid.T, rule *limit.Rule, state limit.State, now, cost int64, v limit.Verdict) {
	if v.Allowed || v.Source != limit.SourceDenyCache || v.Limit != rule.Capacity() || v.RetryAfter <= 0 {
		t.Fatalf("verdict %+v", v)
	}
	if owner := rule.Peek(state, now, cost); owner.Allowed {
		t.Fatalf("cost %d is refused for another %v; the owner would admit it", cost, v.RetryAfter)
	}
}

// Nobody else asks: who waits as the cache says is admitted.
func TestLawDenyCacheNamesAWaitThatIsEnough(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rule := drawRule(t)
		cache := newDenyCache(8)
		cost := rapid.Int64Range(1, rule.Capacity()).Draw(t, "cost")
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

// remember is a cache with one denial of cost 5, sent at 0 and answered at 2.
func remember(t *testing.T, wait time.Duration) (*denyCache, *limit.Rule) {
	cache, rule := newDenyCache(64), tokens(t, 10)
	cache.add(0, 2, denialCall("k", rule, 5), &limit.Verdict{Limit: 10, Remaining: 4, RetryAfter: wait, ResetAfter: 2 * wait})
	return cache, rule
}

func TestDenyCacheCountsFromSent(t *testing.T) {
	cache, rule := remember(t, 100)
	v, ok := find(cache, 99, denialCall("k", rule, 5))
	want := limit.Verdict{Source: limit.SourceDenyCache, Limit: 10, Remaining: 4, RetryAfter: 3, ResetAfter: 103}
	if !ok || v != want {
		t.Errorf("at 99: %+v, %v", v, ok)
	}
	if _, ok := find(cache, 100, denialCall("k", rule, 5)); ok {
		t.Error("at 100 it is no longer certain")
	}
}

func TestDenyCacheBelievesFiveSeconds(t *testing.T) {
	cache, rule := remember(t, time.Hour)
	call := denialCall("k", rule, 5)
	v, ok := find(cache, int64(maxDenial)-1, call)
	if want := time.Hour - maxDenial + 3; !ok || v.RetryAfter != want {
		t.Errorf("just before: %v, %v; want %v", v.RetryAfter, ok, want)
	}
	if _, ok := find(cache, int64(maxDenial), call); ok {
		t.Error("believed for longer")
	}
}

func TestDenyCacheMisses(t *testing.T) {
	cache, rule := remember(t, time.Second)
	for what, call := range map[string]*owner.Call{
		"a smaller cost":  denialCall("k", rule, 4),
		"a larger cost":   denialCall("k", rule, 6),
		"another counter": denialCall("l", rule, 5),
		"another rule":    denialCall("k", tokens(t, 11), 5),
	} {
		if _, ok := find(cache, 10, call); ok {
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
		cache.add(0, 2, call, &v)
		if _, ok := find(cache, 0, call); ok {
			t.Errorf("keeps %s", what)
		}
	}
}

func TestDenyCacheForgets(t *testing.T) {
	cache, rule := remember(t, time.Second)
	one := denialCall("k", rule, 1)
	cache.add(0, 1, one, &limit.Verdict{RetryAfter: time.Second})
	cache.forget(one.ID)
	for _, cost := range []int64{1, 5} {
		if _, ok := find(cache, 10, denialCall("k", rule, cost)); ok {
			t.Errorf("still has cost %d", cost)
		}
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
		cache.add(0, 1, denialCall(names[i:i+1], rule, 1), &limit.Verdict{RetryAfter: time.Duration(1000 + i)})
	}
	for i := range names {
		_, ok := find(cache, 10, denialCall(names[i:i+1], rule, 1))
		if want := i == len(names)-1 || i >= len(names)-denyWays; ok != want {
			t.Errorf("%c: found %v", names[i], ok)
		}
	}
}

func TestDenyCacheSizes(t *testing.T) {
	for size, sets := range map[int]int{0: DefaultDenyCacheSize / denyWays, 1: 1, 8: 1, 9: 2, 24: 4, 1000: 128} {
		if got := len(newDenyCache(size).sets); got != sets {
			t.Errorf("size %d: %d sets, want %d", size, got, sets)
		}
	}
}
