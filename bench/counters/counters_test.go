package counters

import (
	"context"
	"testing"
	"time"

	"github.com/ringlimit/ringlimit/limit"
	"github.com/ringlimit/ringlimit/owner"
)

// The floor decides as the table does, call by call.
func TestFloorDecidesAlike(t *testing.T) {
	const n = 500
	tab, err := newTable(8, true)
	if err != nil {
		t.Fatal(err)
	}
	f := newFloor(n, tab.rule)
	calls := make([]owner.Call, frame)
	ours, theirs := make([]owner.Result, frame), make([]owner.Result, frame)
	allowed := 0
	for round := range 2 * 100 * n / frame {
		for i := range calls {
			calls[i] = tab.call(nil, (round*frame+i)*7%n)
		}
		tab.DecideFrame(start, calls, ours)
		f.decideFrame(start, calls, theirs)
		for i := range ours {
			if a, b := ours[i].Verdict, theirs[i].Verdict; ours[i].Err != nil || a.Allowed != b.Allowed || a.Remaining != b.Remaining || a.RetryAfter != b.RetryAfter {
				t.Fatalf("round %d: %+v, %v; the floor %+v", round, a, ours[i].Err, b)
			}
			if ours[i].Verdict.Allowed {
				allowed++
			}
		}
	}
	if allowed != 100*n {
		t.Errorf("%d were admitted, want %d: each counter has 100", allowed, 100*n)
	}
}

// Two counters never share a name or an id.
func TestCountersAreApart(t *testing.T) {
	tab, err := newTable(16, true)
	if err != nil {
		t.Fatal(err)
	}
	names, ids := map[string]bool{}, map[owner.ID]bool{}
	for i := range 2000 {
		c := tab.call(nil, i)
		names[string(c.Counter)], ids[c.ID] = true, true
		if len(c.Counter) != 31 {
			t.Fatalf("%q has %d bytes", c.Counter, len(c.Counter))
		}
	}
	if len(names) != 2000 || len(ids) != 2000 {
		t.Errorf("%d names, %d ids", len(names), len(ids))
	}
}

// All of it, in small.
func TestMeasure(t *testing.T) {
	const n = 5_000
	parts := 0
	r, err := Measure(t.Context(), Plan{Counters: n, Rounds: 5, Idle: 50 * time.Millisecond}, func(string) { parts++ })
	if err != nil || parts != 4 {
		t.Fatalf("%d parts, %v", parts, err)
	}
	if r.Bare.Table < 30 || r.Bare.Table >= r.Named.Table || r.Named.Table > 2000 {
		t.Errorf("bytes: %+v without names, %+v with", r.Bare, r.Named)
	}
	if r.Frame.Table <= 0 || r.Frame.Floor <= 0 || len(r.Frame.Ratios) != 5 || r.Frame.Allocations > 0.01 {
		t.Errorf("frames: %+v", r.Frame)
	}
	if r.Collection.Map <= 0 || r.Collection.Table <= 0 {
		t.Errorf("collections: %+v", r.Collection)
	}
	for name, w := range map[string]Wait{"idle": r.Stall.Idle, "growth": r.Stall.Growth, "expiry": r.Stall.Expiry} {
		if w.P9999 <= 0 || w.Most < w.P9999 {
			t.Errorf("%s: %+v", name, w)
		}
	}
}

func TestMeasureEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	_, err := Measure(ctx, Plan{Counters: 1000, Rounds: 1}, func(string) { cancel() })
	if err == nil {
		t.Error("it went on")
	}
}

func TestBeyond(t *testing.T) {
	s := Stall{Idle: Wait{P9999: 3}, Growth: Wait{P9999: 5}, Expiry: Wait{P9999: 4}}
	if got := s.Beyond(); got != 2 {
		t.Errorf("%v, want 2", got)
	}
	s.Idle.P9999 = time.Second
	if got := s.Beyond(); got != 0 {
		t.Errorf("%v, want 0: the machine stalled by itself", got)
	}
}

// All counters expire, and none before.
func TestLater(t *testing.T) {
	tab, err := newTable(4, true)
	if err != nil {
		t.Fatal(err)
	}
	if err := tab.fill(0, 1000); err != nil {
		t.Fatal(err)
	}
	if n := tab.Sweep(start, 4); n != 0 {
		t.Errorf("%d were dropped at once", n)
	}
	if n := tab.Sweep(start+later, 4); n != 1000 || tab.Stats().Counters != 0 {
		t.Errorf("%d of 1000 were dropped in the end", n)
	}
	var v limit.Verdict
	c := tab.call(nil, 0)
	if look([]owner.Call{c}); tab.Decide(start+later, &c, &v) != nil || !v.Allowed {
		t.Errorf("%+v", v)
	}
}
