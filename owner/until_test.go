package owner

import (
	"math"
	"runtime"
	"testing"
	"time"
	"unsafe"

	"github.com/ringlimit/ringlimit/limit"
)

// both asks for a call by itself and in a frame.
func both(tab *Table, now int64, c *Call) (one, framed error) {
	results := make([]Result, 1)
	tab.DecideFrame(now, []Call{*c}, results)
	_, one = answer(tab, now, c)
	return one, results[0].Err
}

// What is asked as of later than the bound is not counted, whatever the phase.
func TestDecideUntilInAnyPhase(t *testing.T) {
	tab := holding(Config{Partitions: 1})
	c := on(tab, "a", mustRule(t, per(5, time.Minute, limit.FixedWindow)))
	tab.DecideUntil(start)
	for _, ph := range []Phase{None, Acquiring, Released, Holding} {
		tab.SetPhase(0, ph)
		for _, mode := range []limit.Mode{limit.Take, limit.Peek, limit.Refund} {
			if one, framed := both(tab, start+1, with(c, mode, 1)); one != ErrNotHolder || framed != ErrNotHolder {
				t.Errorf("mode %d in phase %v: %v and in a frame %v", mode, ph, one, framed)
			}
		}
	}
	if v := decide(t, tab, start, with(c, limit.Peek, 1)); v.Remaining != 5 {
		t.Errorf("after calls that were not to be counted: %+v", v)
	}
}

func TestDecideUntilIsMoved(t *testing.T) {
	tab := holding(Config{Partitions: 1})
	c := with(on(tab, "a", mustRule(t, per(5, time.Minute, limit.FixedWindow))), limit.Peek, 1)
	if one, framed := both(tab, math.MaxInt64, c); one != nil || framed != nil {
		t.Errorf("a new table: %v and in a frame %v", one, framed)
	}
	for _, until := range []int64{start, start + 10, start - 10} {
		tab.DecideUntil(until)
		if one, framed := both(tab, until, c); one != nil || framed != nil {
			t.Errorf("at the bound: %v and in a frame %v", one, framed)
		}
		if one, framed := both(tab, until+1, c); one != ErrNotHolder || framed != ErrNotHolder {
			t.Errorf("behind the bound: %v and in a frame %v", one, framed)
		}
	}
}

// The bound is about the caller's reading of the clock. A floor that the sweep
// has left later than that does not close the fence for it, nor open it.
func TestDecideUntilIgnoresTheFloor(t *testing.T) {
	tab := holding(Config{Partitions: 1})
	rule := mustRule(t, per(5, time.Second, limit.FixedWindow))
	decide(t, tab, start, on(tab, "gone", rule))
	later := start + int64(time.Minute)
	tab.Sweep(later, 1)
	if tab.partitions[0].floor != later {
		t.Fatalf("the floor is %d; want %d", tab.partitions[0].floor, later)
	}
	tab.DecideUntil(start)
	if one, framed := both(tab, start, on(tab, "a", rule)); one != nil || framed != nil {
		t.Errorf("%v and in a frame %v", one, framed)
	}
}

// A frame may be long. The fence that closes in its middle closes for the rest.
func TestDecideUntilInTheMiddleOfAFrame(t *testing.T) {
	tab := holding(Config{Partitions: 2})
	rule := mustRule(t, per(1000, time.Hour, limit.TokenBucket))
	calls, results := make([]Call, 2*run), make([]Result, 2*run)
	for i := range calls {
		calls[i] = *on(tab, key(i), rule)
		calls[i].Partition = i / run
	}
	behind, done := &tab.partitions[1], make(chan struct{})
	behind.mu.Lock()
	go func() {
		defer close(done)
		tab.DecideFrame(start, calls, results)
	}()
	for counted := 0; counted < run; runtime.Gosched() {
		p := &tab.partitions[0]
		p.mu.Lock()
		counted = p.used
		p.mu.Unlock()
	}
	tab.DecideUntil(start - 1)
	behind.mu.Unlock()
	<-done
	for i := range results {
		if want := i >= run; (results[i].Err == ErrNotHolder) != want {
			t.Errorf("call %d: %v", i, results[i].Err)
		}
	}
	if behind.used != 0 {
		t.Errorf("%d calls behind the fence were counted", behind.used)
	}
}

// Every decision reads the bound: a writer on its cache line would slow them all.
func TestDecideUntilHasAQuietCacheLine(t *testing.T) {
	var tab Table
	if d := unsafe.Offsetof(tab.rules) - unsafe.Offsetof(tab.until); d < 64 {
		t.Errorf("the registry lies %d bytes behind the bound", d)
	}
}
