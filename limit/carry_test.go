package limit

import (
	"math"
	"math/big"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// What was used under the old rule stays used under the new one.
func TestCarryKeepsWhatWasUsed(t *testing.T) {
	everyAlgorithm(t, func(t *rapid.T, x *subject) {
		x.latest = math.MaxInt64 - 2*int64(MaxWindow) // the new window may be longer
		x.now = min(x.now, x.latest)
		for range rapid.IntRange(0, 10).Draw(t, "steps") {
			x.pass(t)
			x.take(t, x.cost(t))
		}
		to := newSubject(t, drawSpec(t, x.rule.Algorithm)).rule
		used := minus(integer(x.rule.Capacity()), x.model.left(x.now))
		left := max(0, floor(minus(integer(to.Capacity()), used)))
		state := to.Carry(x.rule, x.state, x.now)
		v := to.Peek(state, x.now, 1)
		// A shorter log forgets more.
		forgets := to.Algorithm == SlidingWindowLog && to.Window < x.rule.Window
		if v.Remaining < left || v.Remaining > left && !forgets {
			t.Fatalf("%v of %d used, now %d remain of %d, want %d", used, x.rule.Capacity(), v.Remaining, to.Capacity(), left)
		}
		if b, ok := to.judge.(*bucket); ok {
			checkNothingMinted(t, b, state, x.now, used)
		}
		checkWait(t, to, state, x.now, drawEdge(t, "cost", 1, to.Capacity(), 1, to.Capacity()))
	})
}

// checkNothingMinted: a fraction of a unit that is used stays so too.
func checkNothingMinted(t *rapid.T, b *bucket, s State, now int64, used *big.Rat) {
	den := int64(b.den)
	d, _ := b.deficit(&s, now) // none, if the rules are the same and nothing is used
	deficit := new(big.Rat).Add(integer(d.ns), ratio(d.frac, den))
	got := times(deficit, ratio(den, int64(b.num)))
	most := integer(b.capacity)
	if want := clip(used, new(big.Rat), most); got.Cmp(want) < 0 || got.Cmp(most) > 0 {
		t.Fatalf("%v used, carried as %v", used, got)
	}
}

// checkWait: a refusal names the first moment that is late enough.
func checkWait(t *rapid.T, r *Rule, s State, now, cost int64) {
	v := r.Peek(s, now, cost)
	if v.Allowed {
		return
	}
	until := now + int64(v.RetryAfter)
	if !r.Peek(s, until, cost).Allowed || r.Peek(s, until-1, cost).Allowed {
		t.Fatalf("cost %d: %+v is not exact", cost, v)
	}
}

// E35: envoyproxy/ratelimit#744. 10,000 an hour are all used; at 15,000 there
// are 5,000 at once, and at 50 none, but no fewer.
func TestE35RaiseAndLower(t *testing.T) {
	for _, a := range algorithms() {
		t.Run(a.String(), func(t *testing.T) {
			rule := func(limit int64) *Rule {
				s := Spec{Algorithm: a, Limit: limit, Window: time.Hour}
				if a == LeakyBucket {
					s.Burst = limit - 1
				}
				return mustRule(t, s)
			}
			old := rule(10_000)
			s, v := old.Take(State{}, start, 10_000)
			if !v.Allowed || v.Remaining != 0 {
				t.Fatal(brief(v))
			}
			for limit, want := range map[int64]int64{15_000: 5_000, 10_000: 0, 50: 0, 1: 0} {
				r := rule(limit)
				if v := r.Peek(r.Carry(old, frozen(s), start), start, 1); v.Remaining != want || v.Limit != limit {
					t.Errorf("at %d: %s, want %d", limit, brief(v), want)
				}
			}
		})
	}
}

// E38: bucket4j#419. 40 of 100 are left; the capacity becomes 200: the 60 that
// were used stay used.
func TestE38BiggerBucket(t *testing.T) {
	old := mustRule(t, Spec{Algorithm: TokenBucket, Limit: 100, Window: time.Minute})
	s, _ := old.Take(State{}, start, 60)
	for _, spec := range []Spec{
		{Algorithm: TokenBucket, Limit: 200, Window: time.Minute},
		{Algorithm: TokenBucket, Limit: 100, Window: time.Minute, Burst: 200},
		{Algorithm: TokenBucket, Limit: 7, Window: time.Hour, Burst: 200},
	} {
		r := mustRule(t, spec)
		if v := r.Peek(r.Carry(old, s, start), start, 1); v.Remaining != 140 {
			t.Errorf("%+v: %s, want 140 left", spec, brief(v))
		}
	}
	small := mustRule(t, Spec{Algorithm: TokenBucket, Limit: 50, Window: time.Minute})
	if v := small.Peek(small.Carry(old, s, start), start, 1); v.Remaining != 0 || v.RetryAfter != 1200*time.Millisecond {
		t.Errorf("lowered to 50: %s %v, want none left, the first after 1.2 s", brief(v), v.RetryAfter)
	}
}

// A count moves into the window that contains now, and a limit that denies all
// lets go of nothing but a bucket's.
func TestCarryIntoAnotherWindow(t *testing.T) {
	day := mustRule(t, Spec{Algorithm: FixedWindow, Limit: 100, Calendar: CalendarDay})
	minute := mustRule(t, Spec{Algorithm: FixedWindow, Limit: 100, Window: time.Minute})
	s, _ := day.Take(State{}, start, 30)
	s = minute.Carry(day, s, start)
	if v := minute.Peek(s, start, 1); v.Remaining != 70 || v.ResetAfter > time.Minute {
		t.Errorf("from a day to a minute: %s, reset %v", brief(v), v.ResetAfter)
	}
	if v := minute.Peek(s, start+int64(time.Minute), 1); v.Remaining != 100 {
		t.Errorf("a minute later: %s", brief(v))
	}
	hour := mustRule(t, Spec{Algorithm: FixedWindow, Limit: 100, Window: time.Hour})
	now := start + int64(90*time.Second)
	s, _ = hour.Take(State{}, now, 30)
	if v := minute.Peek(minute.Carry(hour, s, now), now, 1); v.Remaining != 70 || v.ResetAfter != 30*time.Second {
		t.Errorf("from an hour to a minute: %s, reset %v", brief(v), v.ResetAfter)
	}
	if got := minute.Carry(day, State{}, start); got.C != 0 {
		t.Errorf("a fresh state became %+v", got)
	}
}

func TestCarryOverDenyAll(t *testing.T) {
	for _, a := range algorithms() {
		full := mustRule(t, Spec{Algorithm: a, Limit: 5, Window: time.Hour})
		none := mustRule(t, Spec{Algorithm: a, Limit: 0, Window: time.Hour})
		s, _ := full.Take(State{}, start, 1)
		s = none.Carry(full, s, start)
		if v := none.Peek(s, start, 1); brief(v) != "never 0" {
			t.Errorf("%v at limit 0: %s", a, brief(v))
		}
		if v := full.Peek(full.Carry(none, s, start), start, 1); !v.Allowed {
			t.Errorf("%v back at limit 5: %s", a, brief(v))
		}
	}
}

func TestCarryToAnotherAlgorithmStartsFresh(t *testing.T) {
	log := mustRule(t, Spec{Algorithm: SlidingWindowLog, Limit: 5, Window: time.Hour})
	bucket := mustRule(t, Spec{Algorithm: TokenBucket, Limit: 5, Window: time.Hour})
	s, _ := log.Take(State{}, start, 5)
	if got := bucket.Carry(log, s, start); got.A != 0 || got.B != 0 || got.C != 0 || got.Log != nil {
		t.Errorf("carried %+v", got)
	}
}

// Stamps that had expired under a short window do not count again under a long
// one, whether or not they still lie in the log.
func TestCarryDoesNotRevive(t *testing.T) {
	short := mustRule(t, Spec{Algorithm: SlidingWindowLog, Limit: 5, Window: time.Second})
	long := mustRule(t, Spec{Algorithm: SlidingWindowLog, Limit: 5, Window: time.Hour})
	s, _ := short.Take(State{}, start, 3)
	s, _ = short.Take(s, start+int64(900*time.Millisecond), 1)
	now := start + int64(time.Second)
	if v := long.Peek(long.Carry(short, s, now), now, 1); v.Remaining != 4 {
		t.Errorf("%s, want 4 left", brief(v))
	}
}

// n parts admit no more than the whole, but for the one unit that a bucket
// needs to admit anything.
func TestShare(t *testing.T) {
	everyAlgorithm(t, func(t *rapid.T, x *subject) {
		r, n := x.rule, rapid.IntRange(1, 200).Draw(t, "parts")
		r.Name, r.Tier, r.OnFailure, r.Jitter, r.Shadow = "charges", "free", FailDeny, true, true
		part := r.Share(n)
		if part.Limit != r.Limit/int64(n) {
			t.Fatalf("a part in %d of %d is %d", n, r.Limit, part.Limit)
		}
		if part.Limit > 0 && part.Capacity() < 1 || part.Capacity() > max(1, r.Capacity()/int64(n)) {
			t.Fatalf("a part in %d holds %d of %d", n, part.Capacity(), r.Capacity())
		}
		if part.Limit == 0 && part.Capacity() != 0 {
			t.Fatalf("a part of nothing holds %d", part.Capacity())
		}
		if part.Window != r.Window || part.Calendar != r.Calendar || part.Police != r.Police ||
			part.Name != r.Name || part.Tier != r.Tier || part.OnFailure != r.OnFailure || part.Jitter != r.Jitter || part.Shadow != r.Shadow {
			t.Fatalf("%+v is not a part of %+v", part, r)
		}
	})
}

// A part takes no longer to refill than the whole, or the time could overflow.
func TestShareRefillsInTime(t *testing.T) {
	r := mustRule(t, Spec{Algorithm: TokenBucket, Limit: 3, Window: MaxWindow / 100, Burst: 300})
	if part := r.Share(2); part.Limit != 1 || part.Capacity() != 100 {
		t.Errorf("half of 3 with a burst of 300 is %d with %d", part.Limit, part.Capacity())
	}
}

// While nodes differ about a rule, what the smaller one refuses or is given back
// changes nothing of what the larger one counts.
func TestAlternatingRulesMintNothing(t *testing.T) {
	for _, a := range algorithms() {
		for _, lower := range []Spec{
			{Algorithm: a, Limit: 20, Window: 100 * time.Hour},
			{Algorithm: a, Limit: 20, Window: time.Minute},
			{Algorithm: a, Limit: 0, Window: 100 * time.Hour},
		} {
			large := mustRule(t, full(Spec{Algorithm: a, Limit: 100, Window: 100 * time.Hour}))
			small := mustRule(t, full(lower))
			step := time.Minute
			if a == SlidingWindowLog {
				step = time.Second // in a minute's log, the small rule may rightly admit a minute later
			}
			now, s, admitted := start, State{}, 0
			var v Verdict
			for range 10 {
				for range 100 {
					if large.Apply(&Charge{Mode: Take, Cost: 1}, &s, &v, now); v.Allowed {
						admitted++
					}
				}
				if small.ApplyCarried(large, &Charge{Mode: Take, Cost: 1}, &s, &v, now) {
					t.Fatalf("%v: %d a %v admits %s", a, lower.Limit, lower.Window, brief(v))
				}
				now += int64(step)
			}
			if admitted != 100 {
				t.Errorf("%v beside %d a %v: admitted %d, want 100", a, lower.Limit, lower.Window, admitted)
			}
		}
	}
}

// full lets a leaky bucket hold as much as its limit says.
func full(s Spec) Spec {
	if s.Algorithm == LeakyBucket && s.Limit > 0 {
		s.Burst = s.Limit - 1
	}
	return s
}

// Under another rule too a refusal changes nothing and names the first moment
// that is late enough, if nothing else is asked meanwhile.
func TestCarriedRefusalIsExact(t *testing.T) {
	everyAlgorithm(t, func(t *rapid.T, x *subject) {
		x.latest = math.MaxInt64 - 2*int64(MaxWindow)
		x.now = min(x.now, x.latest)
		for range rapid.IntRange(1, 10).Draw(t, "steps") {
			x.pass(t)
			x.take(t, x.cost(t))
		}
		to := newSubject(t, drawSpec(t, x.rule.Algorithm)).rule
		if to.Capacity() == 0 {
			t.Skip("nothing is ever admitted")
		}
		cost := drawEdge(t, "cost", 1, to.Capacity(), 1, to.Capacity())
		before := frozen(x.state)
		var v Verdict
		if to.ApplyCarried(x.rule, &Charge{Mode: Take, Cost: cost}, &x.state, &v, x.now) {
			return
		}
		if !reflect.DeepEqual(before, frozen(x.state)) {
			t.Fatalf("a refusal changed %+v to %+v", before, x.state)
		}
		until := x.now + int64(v.RetryAfter)
		var at, early Verdict
		to.ApplyCarried(x.rule, &Charge{Mode: Peek, Cost: cost}, &x.state, &at, until)
		to.ApplyCarried(x.rule, &Charge{Mode: Peek, Cost: cost}, &x.state, &early, until-1)
		if !at.Allowed || early.Allowed {
			t.Fatalf("cost %d: %+v is not exact: then %+v, a nanosecond before %+v", cost, v, at, early)
		}
	})
}
