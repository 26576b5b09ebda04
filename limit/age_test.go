package limit

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// A cost that is given back at once, and with its age, leaves the counter as if it
// had never been taken, whatever was taken before and after: it decides alike from
// then on. Buckets are for TestBucketRefundsWhatIsStillMissing.
func TestRefundUndoesItsTake(t *testing.T) {
	for _, a := range []Algorithm{FixedWindow, SlidingWindowLog, SlidingWindowCounter} {
		t.Run(a.String(), rapid.MakeCheck(func(t *rapid.T) {
			r, err := NewRule(Spec{Algorithm: a, Limit: rapid.Int64Range(1, 30).Draw(t, "limit"), Window: time.Second})
			if err != nil {
				t.Fatal(err)
			}
			var with, without State
			now := int64(time.Hour) + rapid.Int64Range(0, 3e9).Draw(t, "start")
			both := func(cost int64) {
				s, v := r.Take(without, now, cost)
				if without = s; v.Allowed {
					with, _ = r.Take(with, now, cost)
				}
			}
			step := func(most int64) { now += rapid.Int64Range(0, most).Draw(t, "step") }
			for range rapid.IntRange(0, 8).Draw(t, "before") {
				both(rapid.Int64Range(1, 4).Draw(t, "cost"))
				step(600e6)
			}
			taken, cost := now, rapid.Int64Range(1, 4).Draw(t, "taken")
			var v Verdict
			if with, v = r.Take(with, now, cost); !v.Allowed {
				return
			}
			for range rapid.IntRange(0, 4).Draw(t, "between") {
				step(300e6)
				s, v := r.Take(with, now, 1)
				if with = s; v.Allowed {
					without, _ = r.Take(without, now, 1)
				}
			}
			step(2500e6)
			with = giveBack(r, with, now, cost, now-taken)
			for range 40 {
				if got, want := r.Peek(with, now, 1), r.Peek(without, now, 1); got.Remaining != want.Remaining || got.Allowed != want.Allowed {
					t.Fatalf("%v after the refund: %+v, want %+v", time.Duration(now-taken), got, want)
				}
				now += 50e6
			}
		}))
	}
}

func giveBack(r *Rule, s State, now, cost, age int64) State {
	var v Verdict
	r.Apply(&Charge{Mode: Refund, Cost: cost, Age: time.Duration(age)}, &s, &v, now)
	return s
}

// An age that is too large never gives back more than the true one, at any later
// moment: nobody knows how long a refund is on its way.
func TestTooLargeAnAgeErrsToDenying(t *testing.T) {
	for _, a := range []Algorithm{FixedWindow, SlidingWindowLog, SlidingWindowCounter} {
		t.Run(a.String(), rapid.MakeCheck(func(t *rapid.T) {
			r, err := NewRule(Spec{Algorithm: a, Limit: rapid.Int64Range(1, 20).Draw(t, "limit"), Window: time.Second})
			if err != nil {
				t.Fatal(err)
			}
			now := int64(time.Hour) + rapid.Int64Range(0, 1e9).Draw(t, "start")
			var exact, old State // a log's stamps must not be shared
			take := func(cost int64) (ok bool) {
				var v Verdict
				if exact, v = r.Take(exact, now, cost); v.Allowed {
					old, _ = r.Take(old, now, cost)
				}
				return v.Allowed
			}
			for range rapid.IntRange(0, 6).Draw(t, "before") {
				take(rapid.Int64Range(1, 3).Draw(t, "cost"))
				now += rapid.Int64Range(0, 500e6).Draw(t, "step")
			}
			cost, taken := rapid.Int64Range(1, 3).Draw(t, "mine"), now
			if !take(cost) {
				return
			}
			for range rapid.IntRange(0, 3).Draw(t, "after") {
				now += rapid.Int64Range(0, 400e6).Draw(t, "pause")
				take(1)
			}
			now += rapid.Int64Range(0, 1500e6).Draw(t, "wait")
			exact = giveBack(r, exact, now, cost, now-taken)
			old = giveBack(r, old, now, cost, now-taken+rapid.Int64Range(0, 1200e6).Draw(t, "too much"))
			for range 40 {
				if e, o := r.Peek(exact, now, 1), r.Peek(old, now, 1); o.Remaining > e.Remaining {
					t.Fatalf("%v after the take %d are left, %d with the true age", time.Duration(now-taken), o.Remaining, e.Remaining)
				}
				now += 60e6
			}
		}))
	}
}

// What a refund gives back of a window that is over would be minted in the next.
func TestRefundOfAPastWindow(t *testing.T) {
	const second = int64(time.Second)
	for _, c := range []struct {
		name          string
		algorithm     Algorithm
		first, second int64 // when two units are taken of five
		back          int64 // when one of the first is given back
		want          int64 // then left
	}{
		{"fixed_window: a boundary between", FixedWindow, 10*second - 1, 10 * second, 10*second + 1, 3},
		{"fixed_window: the same window", FixedWindow, 10 * second, 10*second + 1, 11*second - 1, 2},
		{"log: older than the window", SlidingWindowLog, 10 * second, 10*second + 1, 11 * second, 3},
		{"log: not quite as old", SlidingWindowLog, 10 * second, 10*second + 1, 11*second - 1, 2},
		{"counter: two windows before", SlidingWindowCounter, 10*second - 1, 11 * second, 11*second + 1, 3},
		{"counter: the window before", SlidingWindowCounter, 10*second - 1, 10 * second, 10*second + 1, 2},
		{"token_bucket: full in between", TokenBucket, 0, 10 * second, 10*second + 1, 4},
		{"token_bucket: never above full", TokenBucket, 0, 0, 30 * second, 5},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := NewRule(Spec{Algorithm: c.algorithm, Limit: 5, Window: time.Second})
			if err != nil {
				t.Fatal(err)
			}
			base := int64(time.Hour)
			s, _ := r.Take(State{}, base+c.first, 2)
			s, _ = r.Take(s, base+c.second, 2)
			s = giveBack(r, s, base+c.back, 1, c.back-c.first)
			if v := r.Peek(s, base+c.back, 1); v.Remaining != c.want {
				t.Errorf("%d left, want %d", v.Remaining, c.want)
			}
		})
	}
}

// A bucket that is given back a cost never has more than one that never took it and
// has refilled for the refund's age on top: whatever was taken before, between and
// after.
func TestBucketRefundMintsLessThanItsAge(t *testing.T) {
	for _, a := range []Algorithm{TokenBucket, LeakyBucket} {
		t.Run(a.String(), rapid.MakeCheck(func(t *rapid.T) {
			r, err := NewRule(Spec{
				Algorithm: a, Limit: rapid.Int64Range(1, 30).Draw(t, "limit"), Window: time.Second,
				Burst: rapid.Int64Range(1, 40).Draw(t, "burst"),
			})
			if err != nil {
				t.Fatal(err)
			}
			var with, without State
			now := int64(time.Hour)
			both := func() {
				cost := rapid.Int64Range(1, 5).Draw(t, "cost")
				if s, v := r.Take(with, now, cost); v.Allowed {
					if with, without = s, mustTake(t, r, without, now, cost); r.FreshAt(with) < r.FreshAt(without) {
						t.Fatal("less is missing of the one that has taken more")
					}
				}
			}
			step := func(most int64) { now += rapid.Int64Range(0, most).Draw(t, "step") }
			for range rapid.IntRange(0, 8).Draw(t, "before") {
				both()
				step(200e6)
			}
			taken, cost := now, rapid.Int64Range(1, 20).Draw(t, "taken")
			var v Verdict
			if with, v = r.Take(with, now, cost); !v.Allowed {
				return
			}
			for range rapid.IntRange(0, 6).Draw(t, "between") {
				step(400e6)
				both()
			}
			age := now - taken
			with = giveBack(r, with, now, cost, age)
			for range 20 { // a moment that is past is a full bucket
				if max(r.FreshAt(with), now) < max(r.FreshAt(without), now)-age-1 {
					t.Fatalf("full at %v, and without take and refund at %v; the age is %v", r.FreshAt(with)-now, r.FreshAt(without)-now, time.Duration(age))
				}
				cost := rapid.Int64Range(1, 5).Draw(t, "later")
				w, v := r.Take(with, now, cost)
				wo, other := r.Take(without, now, cost)
				if v.Allowed && other.Allowed {
					with, without = w, wo
				}
				step(100e6)
			}
		}))
	}
	// The bound is reached: full, 5 taken, full again after a second, 5 taken.
	r, err := NewRule(Spec{Algorithm: TokenBucket, Limit: 5, Window: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	now, second := int64(time.Hour), int64(time.Second)
	s, _ := r.Take(State{}, now, 5)
	s, _ = r.Take(s, now+second, 5)
	if left := r.Peek(giveBack(r, s, now+second, 5, second), now+second, 1).Remaining; left != 5 {
		t.Errorf("%d left", left)
	}
}

func mustTake(t *rapid.T, r *Rule, s State, now, cost int64) State {
	s, v := r.Take(s, now, cost)
	if !v.Allowed {
		t.Fatalf("refused: %+v, and admitted by one that has less", v)
	}
	return s
}
