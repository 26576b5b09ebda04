package limit

import (
	"testing"
	"time"
)

// The values that the design works out by hand.
func TestSlidingCounterWorkedValues(t *testing.T) {
	r := mustRule(t, Spec{Algorithm: SlidingWindowCounter, Limit: 100, Window: time.Minute})
	now := start + int64(15*time.Second)
	// 90 · 0.75 + 40 = 107.5; room for one more at 90·(1−f) = 59.
	v := r.Peek(State{A: start, B: 90, C: 40}, now, 1)
	if v.Allowed || v.Remaining != 0 || v.RetryAfter.Round(10*time.Millisecond) != 5670*time.Millisecond {
		t.Errorf("p 90, c 40: %s, want a denial and 5.67 s", brief(v))
	}
	// 42 · 0.75 + 18 = 49.5
	if v := r.Peek(State{A: start, B: 42, C: 18}, now, 1); brief(v) != "yes 50" {
		t.Errorf("p 42, c 18: %s, want 50.5 left", brief(v))
	}
	if v := r.Peek(State{A: start, B: 42, C: 18}, now, 51); v.Allowed {
		t.Errorf("p 42, c 18: 51 more would make 100.5: %s", brief(v))
	}
}

// A client that insists on what it is refused neither moves the moment at which
// it gets in nor makes the log grow.
func TestLogForgetsRefusals(t *testing.T) {
	r := mustRule(t, Spec{Algorithm: SlidingWindowLog, Limit: 1, Window: time.Minute})
	s, _ := r.Take(State{}, start, 1)
	for i := range int64(59) {
		var v Verdict
		s, v = r.Take(s, start+i*int64(time.Second), 1)
		if left := time.Minute - time.Duration(i)*time.Second; v.RetryAfter != left {
			t.Fatalf("after %d s: %s, want %v", i, brief(v), left)
		}
	}
	if len(s.Log) != 1 {
		t.Errorf("%d places for one stamp", len(s.Log))
	}
}

// D31: WorkSphere#1161. Hits of one moment count one by one, but need one stamp.
func TestD31OneStampAMoment(t *testing.T) {
	r := mustRule(t, Spec{Algorithm: SlidingWindowLog, Limit: 30, Window: time.Minute})
	var s State
	for range 20 {
		s, _ = r.Take(s, start, 1)
	}
	if v := r.Peek(s, start, 11); v.Allowed || v.Remaining != 10 || s.C != 1 {
		t.Errorf("%s, %d stamps", brief(v), s.C)
	}
}

// A log gives back the memory of a burst once it is over.
func TestLogShrinks(t *testing.T) {
	r := mustRule(t, Spec{Algorithm: SlidingWindowLog, Limit: 1000, Window: time.Second})
	var s State
	for i := range int64(1000) {
		s, _ = r.Take(s, start+i, 1)
	}
	if len(s.Log) != 1000 {
		t.Fatalf("%d places for 1000 stamps", len(s.Log))
	}
	s, v := r.Take(s, start+int64(time.Minute), 1)
	if len(s.Log) > 8 || v.Remaining != 999 {
		t.Errorf("%d places for one stamp, %d remain", len(s.Log), v.Remaining)
	}
}

// A counter of the largest window is still right when its end is beyond the
// last moment that the clock can tell.
func TestLongestWindowLate(t *testing.T) {
	r := mustRule(t, Spec{Algorithm: SlidingWindowCounter, Limit: 2, Window: MaxWindow})
	now := time.Date(2160, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano()
	s, v := r.Take(State{}, now, 2)
	end := 2*int64(MaxWindow) - now
	if !v.Allowed || v.ResetAfter != time.Duration(end)+MaxWindow {
		t.Fatalf("%s, reset after %v", brief(v), v.ResetAfter)
	}
	if v := r.Peek(s, now, 1); v.RetryAfter != time.Duration(end)+MaxWindow/2 {
		t.Errorf("%s, want %v", brief(v), time.Duration(end)+MaxWindow/2)
	}
	if fresh := r.FreshAt(s); fresh < now {
		t.Errorf("fresh at %d, before it was charged", fresh)
	}
}

// A window that another node has started may lie a little out of line. So does
// the next one, in which what it counted weighs; a fresh one is in line.
func TestWindowOutOfLine(t *testing.T) {
	r := mustRule(t, Spec{Algorithm: SlidingWindowCounter, Limit: 10, Window: time.Minute})
	late := start + int64(2*time.Second)
	for _, used := range []int64{3, 10} {
		s := State{A: late, C: used}
		v := r.Peek(s, late, 8)
		until := late + int64(v.RetryAfter)
		if v.Allowed || !r.Peek(s, until, 8).Allowed || r.Peek(s, until-1, 8).Allowed {
			t.Errorf("%d used: %s is not exact", used, brief(v))
		}
		if v := r.Peek(s, start+int64(92*time.Second), 10); v.Remaining != 10-(used+1)/2 {
			t.Errorf("%d used, one and a half windows later %d remain", used, v.Remaining)
		}
		if v := r.Peek(s, start+int64(122*time.Second), 10); v.Remaining != 10 {
			t.Errorf("%d used, two windows later %d remain", used, v.Remaining)
		}
		if s, _ := r.Take(s, start+int64(122*time.Second), 10); s.A != start+int64(2*time.Minute) {
			t.Errorf("%d used, the fresh window starts at %d", used, s.A)
		}
	}
}
