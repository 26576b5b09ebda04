package limit

import (
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// everyAlgorithm runs a law for each of them.
func everyAlgorithm(t *testing.T, law func(*rapid.T, *subject)) {
	for a := TokenBucket; a <= SlidingWindowCounter; a++ {
		t.Run(a.String(), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) { law(t, newSubject(t, drawSpec(t, a))) })
		})
	}
}

// drawSpec leans to the ends of what NewRule accepts.
func drawSpec(t *rapid.T, a Algorithm) Spec {
	highest := int64(MaxLimit)
	if a == SlidingWindowLog {
		highest = MaxLogLimit
	}
	s := Spec{
		Algorithm: a,
		Limit:     drawEdge(t, "limit", 1, highest, 1, 2, 3, 7, 10, 97, 100, 65535, 999_983, 1<<31, 1<<40, highest-1, highest),
		Window: time.Duration(drawEdge(t, "window", int64(MinWindow), int64(MaxWindow),
			int64(MinWindow), 1_000_003, int64(time.Second), int64(time.Minute), int64(time.Hour), int64(24*time.Hour), int64(MaxWindow)-1, int64(MaxWindow))),
	}
	switch a {
	case TokenBucket, LeakyBucket:
		s.Burst = drawEdge(t, "burst", 0, MaxLimit-1, 0, 1, 2, 19, s.Limit-1, min(s.Limit, MaxLimit-1))
		if !s.refillsInTime() {
			s.Burst = 0
		}
		s.Police = a == LeakyBucket && rapid.Bool().Draw(t, "police")
	case FixedWindow:
		s.Calendar = rapid.SampledFrom([]Calendar{NoCalendar, NoCalendar, CalendarDay, CalendarMonth}).Draw(t, "calendar")
		if s.Calendar != NoCalendar {
			s.Window = 0
			s.Timezone = rapid.SampledFrom([]string{"", "Europe/Berlin", "America/New_York", "America/Sao_Paulo",
				"Asia/Kathmandu", "Australia/Lord_Howe", "Pacific/Apia", "Asia/Beirut"}).Draw(t, "timezone")
		}
	}
	s.Durability = rapid.SampledFrom([]Durability{DurabilityAuto, DurabilitySync, DurabilityNone}).Draw(t, "durability")
	return s
}

// drawEdge is one of the edges within [low, high], or anything between.
func drawEdge(t *rapid.T, label string, low, high int64, edges ...int64) int64 {
	edges = slices.DeleteFunc(edges, func(e int64) bool { return e < low || e > high })
	return rapid.OneOf(rapid.SampledFrom(edges), rapid.Int64Range(low, high)).Draw(t, label)
}

// subject is a rule at work, beside its model.
type subject struct {
	rule   *Rule
	model  model
	state  State
	now    int64
	latest int64 // leaves room for the longest wait
	wait   int64 // of the last refusal
}

func newSubject(t *rapid.T, s Spec) *subject {
	r, err := NewRule(s)
	if err != nil {
		t.Fatalf("%+v: %v", s, err)
	}
	x := &subject{rule: r, model: newModel(r.Spec), latest: math.MaxInt64 - int64(MaxWindow)}
	if s.Algorithm == SlidingWindowCounter {
		x.latest = math.MaxInt64 - 2*int64(s.Window)
	}
	x.now = rapid.Int64Range(1, x.latest/2).Draw(t, "start")
	return x
}

// window is the rule's; a day, with a calendar.
func (x *subject) window() int64 {
	if x.rule.Calendar != NoCalendar {
		return int64(24 * time.Hour)
	}
	return int64(x.rule.Window)
}

// pass lets some time pass: moments at which something changes, and others.
func (x *subject) pass(t *rapid.T) {
	w := x.window()
	toBoundary := w - x.now%w
	step := drawEdge(t, "step", 0, 3*min(w, x.latest/3),
		0, 0, 1, w/x.rule.Limit, w/x.rule.Limit+1, w/4, w-1, w, w+1, 2*w, x.wait, x.wait-1, toBoundary, toBoundary-1)
	if step <= x.latest-x.now {
		x.now += step
	}
}

// back makes the clock step back.
func (x *subject) back(t *rapid.T) {
	w := x.window()
	x.now = max(1, x.now-drawEdge(t, "back", 0, 3*min(w, x.latest/3), 1, w/x.rule.Limit, w/2, w, 2*w))
}

// cost is any that the rule could admit, often near to what is left.
func (x *subject) cost(t *rapid.T) int64 {
	left := floor(x.model.left(x.model.clock(x.now)))
	most := x.rule.Capacity()
	return drawEdge(t, "cost", 1, most, 1, 1, 2, most/2, most-1, most, left-1, left, left, left+1)
}

// take takes, and holds everything that it says against the model.
func (x *subject) take(t *rapid.T, cost int64) Verdict {
	before := frozen(x.state)
	peeked := x.rule.Peek(x.state, x.now, cost)
	if !reflect.DeepEqual(frozen(x.state), before) {
		t.Fatalf("Peek changed the state from %+v to %+v", before, x.state)
	}
	at := x.model.clock(x.now)
	left := x.model.left(at)
	state, v := x.rule.Take(x.state, x.now, cost)
	x.state = state
	x.checkPeek(t, peeked, v, cost)
	if v.Allowed != atLeast(left, cost) {
		t.Fatalf("cost %d with %v left: allowed %v", cost, left, v.Allowed)
	}
	if v.Allowed {
		x.checkDelay(t, v, at)
		x.model.charge(at, cost)
	} else {
		x.wait = int64(v.RetryAfter)
		x.checkRefusal(t, v, at, cost)
		if !reflect.DeepEqual(frozen(state), before) {
			t.Fatalf("a refused Take changed the state from %+v to %+v", before, state)
		}
	}
	x.checkBudget(t, v, at)
	return v
}

func (x *subject) refund(t *rapid.T, cost int64) {
	at := x.model.clock(x.now)
	x.model.giveBack(at, cost)
	var v Verdict
	x.state, v = x.rule.Refund(x.state, x.now, cost)
	if !v.Allowed {
		t.Fatalf("a refund was refused")
	}
	x.checkBudget(t, v, x.model.clock(x.now))
}

// frozen is a copy that shares nothing with the state.
func frozen(s State) State {
	s.Log = slices.Clone(s.Log)
	return s
}

// checkPeek: what Peek says, Take does.
func (x *subject) checkPeek(t *rapid.T, peeked, taken Verdict, cost int64) {
	want := taken
	if taken.Allowed {
		want.Remaining += cost
		want.ResetAfter = peeked.ResetAfter // before the cost
	}
	if peeked != want {
		t.Fatalf("Peek said %+v, Take did %+v", peeked, taken)
	}
}

// checkRefusal: to wait for exactly RetryAfter is enough, a nanosecond less is
// not.
func (x *subject) checkRefusal(t *rapid.T, v Verdict, at, cost int64) {
	until := at + int64(v.RetryAfter)
	if v.RetryAfter <= 0 || !atLeast(x.model.left(until), cost) || atLeast(x.model.left(until-1), cost) {
		t.Fatalf("cost %d, %v left: retry after %v, when %v will be left", cost, x.model.left(at), v.RetryAfter, x.model.left(until))
	}
	if again := x.rule.Peek(x.state, until, cost); !again.Allowed {
		t.Fatalf("refused again after waiting %v: %+v", v.RetryAfter, again)
	}
	if early := x.rule.Peek(x.state, until-1, cost); early.Allowed {
		t.Fatalf("admitted before %v had passed", v.RetryAfter)
	}
}

// checkDelay: a leaky bucket says how long its backlog takes.
func (x *subject) checkDelay(t *rapid.T, v Verdict, at int64) {
	want := int64(0)
	if x.rule.Algorithm == LeakyBucket && !x.rule.Police {
		backlog := minus(integer(x.rule.Capacity()), x.model.left(at))
		want = ceil(times(backlog, ratio(int64(x.rule.Window), x.rule.Limit)))
	}
	if int64(v.Delay) != want {
		t.Fatalf("delay %v, want %dns", v.Delay, want)
	}
}

// checkBudget: Limit, Remaining and ResetAfter are as the model has them.
func (x *subject) checkBudget(t *rapid.T, v Verdict, at int64) {
	most := x.rule.Capacity()
	if left := max(0, floor(x.model.left(at))); v.Limit != most || v.Remaining != left || left > most {
		t.Fatalf("%d of %d remain, want %d of %d", v.Remaining, v.Limit, left, most)
	}
	back := at + int64(v.ResetAfter)
	if !atLeast(x.model.left(back), most) || v.ResetAfter < 0 || v.ResetAfter > 0 && atLeast(x.model.left(back-1), most) {
		t.Fatalf("reset after %v, when %v are left; now %v", v.ResetAfter, x.model.left(back), x.model.left(at))
	}
	if fresh := x.rule.FreshAt(x.state); v.ResetAfter > 0 && fresh != back {
		t.Fatalf("fresh at %d, but reset at %d", fresh, back)
	}
}

// Whatever is asked, at whatever times, the verdict is the model's, and a
// refused Take and a Peek change nothing.
func TestVerdictIsTheModels(t *testing.T) {
	everyAlgorithm(t, func(t *rapid.T, x *subject) {
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			x.pass(t)
			switch rapid.IntRange(0, 5).Draw(t, "op") {
			case 0:
				x.refund(t, x.cost(t))
			default:
				x.take(t, x.cost(t))
			}
		}
	})
}

// A log that fills, empties, wraps around and is moved keeps its order. (Drawn
// rules are seldom asked often enough in a window.)
func TestLogKeepsItsOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.SampledFrom([]int64{5, 17, 64, 300}).Draw(t, "limit")
		x := newSubject(t, Spec{Algorithm: SlidingWindowLog, Limit: limit, Window: time.Second})
		for range rapid.IntRange(1, 30).Draw(t, "phases") {
			step := int64(time.Second) / rapid.Int64Range(1, 2*limit).Draw(t, "asks a window")
			for range rapid.Int64Range(1, limit).Draw(t, "asks") {
				x.now += step
				x.take(t, 1)
			}
		}
	})
}

// A clock that steps back mints nothing and locks nobody out: for the counter
// time stands still, so that the verdicts are those of its latest moment.
func TestTimeDoesNotRunBack(t *testing.T) {
	everyAlgorithm(t, func(t *rapid.T, x *subject) {
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			switch rapid.IntRange(0, 7).Draw(t, "op") {
			case 0, 1:
				x.back(t)
			case 2, 3:
				x.pass(t)
			case 4:
				x.refund(t, x.cost(t))
			}
			v := x.take(t, x.cost(t))
			if longest := x.rule.longestWait(); int64(v.RetryAfter) > longest {
				t.Fatalf("has to wait %v, longer than from empty to full", v.RetryAfter)
			}
		}
	})
}

// longestWait is how long a fresh budget takes to come back when all is used.
func (r *Rule) longestWait() int64 {
	s, v := r.Take(State{}, 1, r.capacity)
	_ = s
	switch {
	case r.Calendar == CalendarMonth:
		return int64(31*24*time.Hour + 2*time.Hour)
	case r.Calendar == CalendarDay:
		return int64(26 * time.Hour)
	case r.Algorithm == SlidingWindowCounter:
		return 2 * int64(r.Window)
	case r.Algorithm == FixedWindow:
		return int64(r.Window)
	}
	return int64(v.ResetAfter)
}

// A refund never lifts above the limit, and never makes a fresh state worse.
func TestRefundStaysWithinTheLimit(t *testing.T) {
	everyAlgorithm(t, func(t *rapid.T, x *subject) {
		most := x.rule.Capacity()
		for range rapid.IntRange(0, 5).Draw(t, "takes") {
			x.pass(t)
			x.take(t, x.cost(t))
		}
		if rapid.Bool().Draw(t, "later") {
			x.now = max(x.now, x.rule.FreshAt(x.state))
		}
		before := x.rule.Peek(x.state, x.now, 1).Remaining
		back := drawEdge(t, "back", 1, MaxCost, 1, most, MaxCost)
		state, v := x.rule.Refund(x.state, x.now, back)
		if v.Remaining > v.Limit || v.Remaining < before {
			t.Fatalf("refund of %d: %d remained, now %d of %d", back, before, v.Remaining, v.Limit)
		}
		if again := x.rule.Peek(state, x.now, 1).Remaining; again != v.Remaining {
			t.Fatalf("the refund said that %d remain, a peek %d", v.Remaining, again)
		}
	})
}

// From FreshAt on a state and no state decide alike, whatever follows; before,
// some of the budget is gone.
func TestFreshAt(t *testing.T) {
	everyAlgorithm(t, func(t *rapid.T, x *subject) {
		for range rapid.IntRange(1, 10).Draw(t, "steps") {
			x.pass(t)
			if rapid.IntRange(0, 3).Draw(t, "op") == 0 {
				x.refund(t, x.cost(t))
				continue
			}
			x.take(t, x.cost(t))
		}
		fresh := x.rule.FreshAt(x.state)
		if v := x.rule.Peek(x.state, fresh-1, 1); fresh > x.now && v.Remaining == v.Limit {
			t.Fatalf("nothing is used at %d, which is before FreshAt %d", fresh-1, fresh)
		}
		x.now, x.latest = max(x.now, fresh), max(x.latest, fresh)
		x.sameAsFresh(t)
	})
}

func (x *subject) sameAsFresh(t *rapid.T) {
	other := State{}
	x.model = newModel(x.rule.Spec)
	for range rapid.IntRange(1, 10).Draw(t, "more steps") {
		cost := x.cost(t)
		var a, b Verdict
		x.state, a = x.rule.Take(x.state, x.now, cost)
		other, b = x.rule.Take(other, x.now, cost)
		if a != b {
			t.Fatalf("old state %+v, no state %+v", a, b)
		}
		if a.Allowed {
			x.model.charge(x.now, cost)
		}
		x.pass(t)
	}
}
