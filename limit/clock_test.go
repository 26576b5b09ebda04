package limit

import (
	"testing"
	"testing/synctest"
	"time"
)

// C22, C23: kura#2581. What the wall clock does after the start is of no
// account: time is the start's wall time and what the monotonic clock has
// counted since.
func TestClockFollowsTheMonotonicClockAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewClock()
		begin := c.Now()
		if wall := time.Now().UnixNano(); begin != wall {
			t.Fatalf("starts at %d, want the wall clock's %d", begin, wall)
		}
		time.Sleep(90 * time.Second)
		if got := c.Now() - begin; got != int64(90*time.Second) {
			t.Errorf("counted %v in 90 s", time.Duration(got))
		}
	})
}

// That holds because the anchor carries a monotonic reading: by the rules of
// package time, what has passed since is then told by that reading alone.
// (Outside a bubble: the clock of a bubble has no other reading than wall time.)
func TestClockIsAnchoredWithAMonotonicReading(t *testing.T) {
	c := NewClock()
	if c.start == c.start.Round(0) { // Round strips the reading
		t.Error("the clock would follow every step of the wall clock")
	}
	last := c.Now()
	for range 1000 {
		now := c.Now()
		if now < last {
			t.Fatalf("ran back from %d to %d", last, now)
		}
		last = now
	}
}

// A wall clock that steps by an hour after the start leaves a running clock an
// hour off: it stays so, and counters go on as before.
func TestC22C23StepOfTheWallClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		right := NewClock()
		for _, step := range []time.Duration{time.Hour, -time.Hour} {
			off := &Clock{start: right.start, unix: right.unix + int64(step)}
			r := mustRule(t, Spec{Algorithm: TokenBucket, Limit: 10, Window: 10 * time.Second})
			s, _ := r.Take(State{}, off.Now(), 10)
			time.Sleep(time.Second)
			if d := off.Now() - right.Now(); d != int64(step) {
				t.Errorf("off by %v, then by %v", step, time.Duration(d))
			}
			s, v := r.Take(s, off.Now(), 1)
			if brief(v) != "yes 0" {
				t.Errorf("off by %v, a second after all was taken: %s", step, brief(v))
			}
			if _, v = r.Take(s, off.Now(), 1); brief(v) != "no 0 in 1s" {
				t.Errorf("off by %v, one more: %s", step, brief(v))
			}
		}
	})
}

// B20: golang/go#71360. Callers who read their clock a while ago get no more
// admitted than there would be without them, and take it from nobody.
func TestB20StaleCallers(t *testing.T) {
	for _, a := range algorithms() {
		r := mustRule(t, per(a, 10, time.Second))
		honest := admittedIn3s(r, 0)
		mixed := admittedIn3s(r, 0, 700*time.Millisecond, 0, time.Minute)
		if mixed != honest || honest > 10+30 {
			t.Errorf("%v: %d admitted, %d without stale callers", a, mixed, honest)
		}
	}
}

// admittedIn3s counts what gets in when callers ask each millisecond, each with
// a clock that is so late.
func admittedIn3s(r *Rule, late ...time.Duration) (admitted int) {
	var s State
	for i := range int64(3000) {
		for _, stale := range late {
			var v Verdict
			if s, v = r.Take(s, start+i*int64(time.Millisecond)-int64(stale), 1); v.Allowed {
				admitted++
			}
		}
	}
	return admitted
}

// C22: kura#2581. The clock steps back by an hour: for a counter time stands
// still, so nobody waits for longer than a normal refill, and nothing is minted.
func TestC22ClockStepsBack(t *testing.T) {
	for _, a := range algorithms() {
		r := mustRule(t, per(a, 10, 10*time.Second))
		s, _ := r.Take(State{}, start, 9)
		back := start - int64(time.Hour)
		s, v := r.Take(s, back, 1)
		if brief(v) != "yes 0" {
			t.Errorf("%v an hour ago: %s, want the last one", a, brief(v))
		}
		if _, v = r.Take(s, back, 1); v.Allowed || v.Remaining != 0 || v.RetryAfter > 20*time.Second {
			t.Errorf("%v an hour ago, all used: %s", a, brief(v))
		}
	}
}

// C23: the clock jumps ahead by an hour: one full budget, no more.
func TestC23ClockJumpsAhead(t *testing.T) {
	for _, a := range algorithms() {
		r := mustRule(t, per(a, 10, 10*time.Second))
		s, _ := r.Take(State{}, start, 10)
		s, v := r.Take(s, start+int64(time.Hour), 10)
		if brief(v) != "yes 0" {
			t.Errorf("%v an hour ahead: %s, want ten", a, brief(v))
		}
		if _, v = r.Take(s, start+int64(time.Hour), 1); v.Allowed {
			t.Errorf("%v an hour ahead: the eleventh got in", a)
		}
	}
}
