package limit

import (
	"math"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// everyShipped runs a law on a counter that has a history.
func everyShipped(t *testing.T, law func(*rapid.T, *subject)) {
	for a := TokenBucket; a <= SlidingWindowCounter; a++ {
		t.Run(a.String(), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				spec := drawSpec(t, a)
				spec.Window = min(spec.Window, MaxWindow/4) // room for skews
				x := newSubject(t, spec)
				x.live(t)
				law(t, x)
			})
		})
	}
}

// live gives the counter a history.
func (x *subject) live(t *rapid.T) {
	x.latest = math.MaxInt64 / 2
	x.now = rapid.Int64Range(int64(MaxWindow/4), int64(MaxWindow)).Draw(t, "start")
	for range rapid.IntRange(0, 12).Draw(t, "history") {
		x.pass(t)
		x.use(t)
	}
}

// use takes, or now and then gives back.
func (x *subject) use(t *rapid.T) {
	cost := x.nearCost(t)
	if rapid.IntRange(0, 9).Draw(t, "op") == 0 {
		x.state, _ = x.rule.Refund(x.state, x.now, cost)
		return
	}
	x.state, _ = x.rule.Take(x.state, x.now, cost)
}

// nearCost is any that the rule could admit, often near to what remains.
func (x *subject) nearCost(t *rapid.T) int64 {
	left, most := x.rule.Peek(x.state, x.now, 1).Remaining, x.rule.Capacity()
	return drawEdge(t, "cost", 1, most, 1, 1, 2, most/2, most-1, most, left-1, left, left, left+1)
}

// skew is the difference of two clocks: less than a third of a window, or
// nobody could say which window is which.
func (x *subject) skew(t *rapid.T) int64 {
	most := x.window() / 3
	return drawEdge(t, "skew", -most, most, 0, 0, 1, -1, most, -most)
}

// transit is a time on the way.
func (x *subject) transit(t *rapid.T) int64 {
	return drawEdge(t, "transit", 0, x.window()/10, 0, 0, 1, x.window()/100)
}

// move takes the counter to a node with another clock.
func (x *subject) move(t *rapid.T) {
	w := x.rule.Ship(x.state, x.now)
	x.now += x.transit(t) + x.skew(t)
	x.state = x.rule.Receive(w, x.now)
}

// later lets time pass, now and then, and calls fn.
func (x *subject) later(t *rapid.T, fn func() bool) {
	for range rapid.IntRange(1, 15).Draw(t, "later") {
		x.pass(t)
		if !fn() {
			return
		}
	}
}

// aligned says that a rule's windows are where its clock puts them: a counter
// that moves to another clock moves to other windows.
func (x *subject) aligned() bool { return x.rule.Algorithm == FixedWindow }

// A counter that arrives goes on as it would have where it left, as if no time
// had passed and whatever the clocks say.
func TestReceivedGoesOn(t *testing.T) {
	everyShipped(t, func(t *rapid.T, x *subject) {
		if x.aligned() {
			return
		}
		if rapid.Bool().Draw(t, "merged before") { // the window may be ahead
			x.state = x.rule.Merge(x.state, x.other(t), x.now)
		}
		for range rapid.IntRange(0, 2).Draw(t, "moves before") {
			x.move(t)
		}
		ahead := x.skew(t) + x.transit(t)
		there := x.rule.Receive(x.rule.Ship(x.state, x.now), x.now+ahead)
		x.later(t, func() bool {
			if x.rule.FreshAt(x.state) <= x.now {
				return false // new windows are where the clock puts them
			}
			cost := x.nearCost(t)
			var here, v Verdict
			x.state, here = x.rule.Take(x.state, x.now, cost)
			if there, v = x.rule.Take(there, x.now+ahead, cost); v != here {
				t.Fatalf("cost %d: %+v; where it left %+v", cost, v, here)
			}
			return true
		})
	})
}

// Nothing is minted on the way, from any clock to any clock, over any number of
// nodes: what is admitted there would have been admitted here.
func TestReceivedIsNoLaxer(t *testing.T) {
	everyShipped(t, func(t *rapid.T, x *subject) {
		y := *x // moves; its clock is off by y.now-x.now
		y.state = frozen(x.state)
		for range rapid.IntRange(1, 4).Draw(t, "moves") {
			w := y.rule.Ship(y.state, y.now)
			passed := x.transit(t)
			x.now += passed
			y.now += passed
			y.now = x.now + x.skew(t)
			y.state = y.rule.Receive(w, y.now)
		}
		off := y.now - x.now
		end := x.state.B
		x.later(t, func() bool {
			if x.aligned() && x.now >= end {
				return false // the next window is another matter
			}
			cost := x.nearCost(t)
			there := x.rule.Peek(y.state, x.now+off, cost)
			here := x.rule.Peek(x.state, x.now, cost)
			if there.Allowed && !here.Allowed || there.Remaining > here.Remaining {
				t.Fatalf("cost %d at %d: %+v; where it came from %+v", cost, x.now, there, here)
			}
			return true
		})
	})
}

// A window that arrives counts where the receiver's own one does, and ends with
// the later of the two; the next one is the receiver's own.
func TestReceivedWindow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec := drawSpec(t, FixedWindow)
		spec.Window = min(spec.Window, MaxWindow/4)
		x := newSubject(t, spec)
		x.live(t)
		w := x.rule.Ship(x.state, x.now)
		if w.C == 0 {
			return
		}
		f := x.rule.judge.(*fixedWindow)
		skew, transit := x.skew(t), x.transit(t)
		now := x.now + skew + transit
		s := x.rule.Receive(w, now)
		own, ownEnd := f.around(s.A)
		if s.A != x.state.A || s.A != own || s.C != x.state.C {
			t.Fatalf("a window from %d to %d became %+v", x.state.A, x.state.B, s)
		}
		if theirs := x.state.B + skew + transit; s.B != max(ownEnd, theirs) {
			t.Fatalf("ends at %d; want the later of %d and %d", s.B, ownEnd, theirs)
		}
		s, v := x.rule.Take(s, s.B, 1)
		if start, end := f.around(s.A); !v.Allowed || s.A != start || s.B != end || s.C != 1 {
			t.Fatalf("the next window is %+v", s)
		}
	})
}

// A window out of line that was given back is as a fresh one: on boundaries of
// this node's own.
func TestRefundPutsInLine(t *testing.T) {
	for _, a := range []Algorithm{FixedWindow, SlidingWindowCounter} {
		r := mustRule(t, Spec{Algorithm: a, Limit: 5, Window: time.Minute})
		s, _ := r.Take(State{}, start, 3)
		now := start + int64(10*time.Second) // the way took so long
		s, _ = r.Refund(r.Receive(r.Ship(s, start), now), now, 3)
		_, v := r.Take(s, now, 1)
		if _, want := r.Take(State{}, now, 1); v != want {
			t.Errorf("%v: %+v; a fresh one %+v", a, v, want)
		}
	}
}

// Of two deficits the fraction of a nanosecond decides, if need be; of two
// windows the one that is over has no say, however late it began.
func TestMergeAtTheEdges(t *testing.T) {
	r := mustRule(t, Spec{Algorithm: TokenBucket, Limit: 3, Window: time.Second})
	less, more := State{A: start + 9, B: 1, C: start}, State{A: start + 9, B: 2, C: start}
	if a, b := r.Merge(less, more, start), r.Merge(more, less, start); a.B != 2 || b.B != 2 {
		t.Errorf("deficits: %+v, %+v; want %+v", a, b, more)
	}
	r = mustRule(t, Spec{Algorithm: FixedWindow, Limit: 3, Window: time.Second})
	over, on := State{A: start, B: start + int64(time.Second), C: 3}, State{A: start - int64(time.Second), B: start + int64(1200*time.Millisecond), C: 2}
	now := start + int64(1100*time.Millisecond)
	if a, b := r.Merge(over, on, now), r.Merge(on, over, now); a.C != 2 || b.C != 2 || a.A != on.A || b.A != on.A {
		t.Errorf("windows: %+v, %+v; want %+v", a, b, on)
	}
}

// Holders whose clocks differ a little meet at a boundary, each with its own idea
// of whether it has passed: the count of the window that has passed for one of
// them counts once, and not twice.
func TestMergeAcrossABoundary(t *testing.T) {
	r := mustRule(t, Spec{Algorithm: SlidingWindowCounter, Limit: 20, Window: time.Minute})
	sec := int64(time.Second)
	behind, ahead := State{A: start - 59*sec, B: 3, C: 8}, State{A: start - sec, B: 7, C: 1}
	want := State{A: start + sec, B: 8, C: 1}
	if a, b := r.Merge(behind, ahead, start), r.Merge(ahead, behind, start); !reflect.DeepEqual(a, want) || !reflect.DeepEqual(b, want) {
		t.Errorf("%+v, %+v; want %+v", a, b, want)
	}
}

// other is the state of the counter at another holder, as it arrives here: of
// a history of its own, by a clock that differs from x's by less than a fifth of
// a window.
func (x *subject) other(t *rapid.T) State {
	y := newSubject(t, x.rule.Spec)
	y.live(t)
	if w := x.window(); x.rule.Calendar == NoCalendar {
		off := rapid.Int64Range(-w/5, w/5).Draw(t, "clock differs by")
		y.now += ((x.now+off-y.now)%w + w) % w
	}
	return x.rule.Receive(x.rule.Ship(y.state, y.now), x.now)
}

// To merge in any order, and any of it again, changes nothing.
func TestMergeIsOrderFree(t *testing.T) {
	everyShipped(t, func(t *rapid.T, x *subject) {
		r := x.rule
		a, b, c := x.state, x.other(t), x.other(t)
		merge := func(a, b State) State { return r.Merge(frozen(a), frozen(b), x.now) }
		same := func(what string, got, want State) {
			if got, want := r.Ship(got, x.now), r.Ship(want, x.now); !reflect.DeepEqual(got, want) {
				t.Fatalf("%s: %+v; want %+v\na %+v\nb %+v\nc %+v", what, got, want, a, b, c)
			}
		}
		same("the same twice", merge(a, a), a)
		same("with none", merge(a, State{}), a)
		same("swapped", merge(a, b), merge(b, a))
		same("again", merge(merge(a, b), b), merge(a, b))
		same("in another order", merge(merge(a, b), c), merge(a, merge(b, c)))
	})
}

// What a merged counter admits, both would: they too would have to admit it, as
// of the later of their moments.
func TestMergeIsTheStricter(t *testing.T) {
	everyShipped(t, func(t *rapid.T, x *subject) {
		r := x.rule
		parts := []State{x.state, x.other(t)}
		merged := r.Merge(frozen(parts[0]), frozen(parts[1]), x.now)
		earliest := int64(0)
		switch r.Algorithm {
		case FixedWindow:
			for i, s := range parts {
				if s.A < merged.A || s.B <= x.now { // an earlier window is over
					parts[i] = State{}
				}
			}
			earliest = merged.A
		case SlidingWindowCounter:
			earliest = merged.A
		}
		exact := r.Algorithm != SlidingWindowCounter // which takes each window's larger count
		x.state = merged
		x.later(t, func() bool {
			if x.aligned() && (x.now >= merged.B || parts[0].C > 0 && x.now >= parts[0].B || parts[1].C > 0 && x.now >= parts[1].B) {
				return false // the larger count stays until the later end
			}
			cost := x.nearCost(t)
			got := r.Peek(x.state, x.now, cost)
			want := int64(math.MaxInt64)
			for _, s := range parts {
				want = min(want, r.Peek(s, max(x.now, earliest), cost).Remaining)
			}
			if got.Remaining > want || exact && got.Remaining < want {
				t.Fatalf("%d remain, want %d\nmerged %+v\nof %+v", got.Remaining, want, merged, parts)
			}
			if exact && got.Allowed {
				x.state, _ = r.Take(x.state, x.now, cost)
				for i := range parts {
					parts[i], _ = r.Take(parts[i], x.now, cost)
				}
			}
			return true
		})
	})
}

// Copies of one holder, however late, merge to what the holder has: not laxer,
// and no stricter than if all had taken as long as the slowest.
func TestMergeOfCopies(t *testing.T) {
	everyShipped(t, func(t *rapid.T, x *subject) {
		r := x.rule
		skew := x.skew(t)
		if x.aligned() {
			skew = 0 // or the window would last until the later of two ends
		}
		early, sent := r.Ship(x.state, x.now), x.now
		for range rapid.IntRange(0, 4).Draw(t, "more") {
			x.pass(t)
			x.state, _ = r.Take(x.state, x.now, x.nearCost(t))
		}
		late, slowest := x.transit(t), x.transit(t)
		last := x.now
		first := r.Receive(early, sent+slowest+skew)
		second := r.Receive(r.Ship(x.state, x.now), x.now+late+skew)
		slowest = max(slowest, late)
		x.now += slowest
		merged := r.Merge(first, second, x.now+skew)
		x.later(t, func() bool {
			cost := x.nearCost(t)
			v := r.Peek(merged, x.now+skew, cost)
			most := r.Peek(x.state, x.now, cost)
			least := r.Peek(x.state, max(last, x.now-slowest), cost)
			if v.Remaining > most.Remaining || v.Remaining < least.Remaining {
				t.Fatalf("%d remain; want %d to %d\n%+v\n%+v", v.Remaining, least.Remaining, most.Remaining, merged, x.state)
			}
			return true
		})
	})
}

// What equals a fresh counter ships as nothing, and of what ships as nothing
// nothing is used. From FreshAt on what was received decides as a fresh counter
// does.
func TestShippedFresh(t *testing.T) {
	everyShipped(t, func(t *rapid.T, x *subject) {
		for range rapid.IntRange(0, 3).Draw(t, "moves") {
			x.move(t)
			x.use(t)
		}
		w := x.rule.Ship(x.state, x.now)
		nothing, v := reflect.DeepEqual(w, Shipped{}), x.rule.Peek(x.state, x.now, 1)
		if x.rule.FreshAt(x.state) <= x.now && !nothing || nothing != (v.ResetAfter == 0) {
			t.Fatalf("fresh at %d, ships at %d as %+v: %+v", x.rule.FreshAt(x.state), x.now, w, v)
		}
		x.now = max(x.now, x.rule.FreshAt(x.state))
		x.sameAsFresh(t)
	})
}

// A shipped state shares nothing with the counter.
func TestShippedIsACopy(t *testing.T) {
	r := mustRule(t, Spec{Algorithm: SlidingWindowLog, Limit: 5, Window: time.Second})
	s, _ := r.Take(State{}, start, 1)
	w := r.Ship(s, start)
	got := r.Receive(w, start)
	r.Take(s, start, 1)
	r.Take(got, start, 2)
	if want := []Stamp{{0, 1}}; !reflect.DeepEqual(w.Log, want) {
		t.Errorf("shipped %v; want %v", w.Log, want)
	}
}

// drawShipped is anything that can arrive.
func drawShipped(t *rapid.T) Shipped {
	number := rapid.OneOf(rapid.Int64(), rapid.Int64Range(-3, 3), rapid.SampledFrom([]int64{math.MinInt64, math.MaxInt64, MaxLimit}))
	w := Shipped{A: number.Draw(t, "a"), B: number.Draw(t, "b"), C: number.Draw(t, "c")}
	for range rapid.IntRange(0, 5).Draw(t, "stamps") {
		w.Log = append(w.Log, Stamp{number.Draw(t, "age"), number.Draw(t, "cost")})
	}
	return w
}

// Whatever arrives can be used, mints nothing, and refuses nobody for longer
// than the rule itself can: from empty to full, or for a window that may lie up
// to half of it ahead.
func TestReceiveAnything(t *testing.T) {
	everyShipped(t, func(t *rapid.T, x *subject) {
		checkReceived(t, x.rule, drawShipped(t), frozen(x.state), x.now)
	})
}

type fataler interface {
	Fatalf(format string, args ...any)
}

func checkReceived(t fataler, r *Rule, w Shipped, own State, now int64) {
	got := r.Receive(w, now)
	longest := max(r.longestWait(), 2*int64(r.Window)) // with a limit of 0 there is no wait
	longest += min(longest/2, math.MaxInt64-longest)
	if fresh := r.FreshAt(got); fresh-now > longest {
		t.Fatalf("%+v became %+v, which is fresh at %d, %d later", w, got, fresh, fresh-now)
	}
	at := now
	if r.Algorithm == FixedWindow || r.Algorithm == SlidingWindowCounter {
		at = max(now, got.A) // a window ahead: waits count from when it begins
	}
	for _, cost := range []int64{1, r.Capacity()} {
		if v := r.Peek(got, now, cost); int64(v.RetryAfter) > longest || int64(v.ResetAfter) > longest || v.Remaining < 0 || v.Remaining > r.Capacity() {
			t.Fatalf("%+v became %+v: %+v", w, got, v)
		} else if then := r.Peek(got, at+int64(v.RetryAfter), cost); !then.Allowed && r.Capacity() > 0 {
			t.Fatalf("%+v became %+v: %+v, then %+v", w, got, v, then)
		}
	}
	if v := r.Peek(got, max(now, r.FreshAt(got)), 1); v.Remaining != r.Capacity() {
		t.Fatalf("%+v became %+v: when fresh %+v", w, got, v)
	}
	sent := r.Ship(got, now)
	if again := r.Ship(r.Receive(sent, now), now); !reflect.DeepEqual(again, sent) {
		t.Fatalf("%+v is sent on as %+v", sent, again)
	}
	if r.Algorithm == SlidingWindowLog {
		checkLog(t, got)
	}
	before := r.Peek(own, now, 1)
	merged := r.Merge(own, frozen(got), now)
	if v := r.Peek(merged, now, 1); v.Remaining > before.Remaining && r.Algorithm != FixedWindow && r.Algorithm != SlidingWindowCounter {
		t.Fatalf("%d remained, now %d", before.Remaining, v.Remaining)
	}
	for i := range int64(5) {
		merged, _ = r.Take(merged, now+i, 1)
		merged, _ = r.Refund(merged, now+i, 2)
	}
}

// checkLog: a log is in order of time, and its sum is right.
func checkLog(t fataler, s State) {
	used, last := int64(0), int64(math.MinInt64)
	for _, e := range s.Log {
		if e.Cost < 1 || e.At <= last {
			t.Fatalf("%+v stands behind a stamp of %d", e, last)
		}
		used, last = used+e.Cost, e.At
	}
	if s.A != used || s.C != int64(len(s.Log)) || s.B != 0 {
		t.Fatalf("%+v has %d stamps, %d used", s, len(s.Log), used)
	}
}
