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
