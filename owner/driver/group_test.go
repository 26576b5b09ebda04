package driver

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ringlimit/ringlimit/limit"
	"github.com/ringlimit/ringlimit/owner"
	"github.com/ringlimit/ringlimit/owner/transfer"
)

// held is the first n counters that a node holds, and lost the first that it does
// not.
func (n *node) held(count int, r *limit.Rule) (held []owner.Call, lost owner.Call) {
	for i := 0; len(held) < count || lost.Rule == nil; i++ {
		if c := call(r, n.partition, i); n.table.Phase(c.Partition) == owner.Holding {
			held = append(held, *c)
		} else {
			lost = *c
		}
	}
	held = held[:count]
	for i := 1; i < count; i++ {
		held[i].Joined = true
	}
	lost.Joined = true
	return held, lost
}

// The reply to a group waits for the copies of all its charges at once, and of one
// that is refused for none. A group of which a part is elsewhere is not for here,
// and does not wait.
func TestGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMesh(t)
		defer m.stop()
		a := m.join("a")
		m.join("b")
		time.Sleep(time.Second)
		calls, lost := a.held(3, rule(t, limit.DurabilitySync, 2))
		results := make([]owner.Result, 3)
		decide := func(calls []owner.Call) time.Duration {
			began, now := time.Now(), m.clock.Now()
			a.DecideGroup(t.Context(), now, now+int64(patience), calls, results)
			return time.Since(began)
		}
		for i := range 3 {
			took := decide(calls)
			for _, r := range results {
				if want := i < 2; r.Err != nil || r.Taken != want || r.Verdict.Allowed != want || want != (took == 2*latency) || !want && took != 0 {
					t.Errorf("request %d, after %v: %+v", i+1, took, r)
				}
			}
		}
		if took := decide([]owner.Call{calls[0], calls[1], lost}); took != 0 {
			t.Errorf("a part is elsewhere: it took %v", took)
		}
		late := answers{make(chan owner.Result, 9)}
		for _, frame := range []bool{false, true} {
			if now := m.clock.Now(); frame {
				a.DecideFrame(now, now+int64(patience), []owner.Call{calls[0], calls[1], lost}, results, late, 1)
			}
			for _, r := range results {
				if _, ok := errors.AsType[*transfer.NotMine](r.Err); !ok || r.Taken {
					t.Errorf("a part is elsewhere: %+v", r)
				}
			}
		}
		fresh, _ := a.held(6, rule(t, limit.DurabilitySync, 2))
		fresh[3].Joined = false
		now := m.clock.Now()
		a.DecideFrame(now, now+int64(patience), fresh[3:], results, late, 1)
		time.Sleep(10 * latency)
		if len(late.got) != 3 {
			t.Errorf("%d late answers to a group of three: %+v", len(late.got), results)
		}
	})
}

// A charge whose copy is late is an error to its asker, who learns that it was
// charged all the same, and can give it back.
func TestLateCopyOfAGroupIsTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMesh(t)
		defer m.stop()
		a := m.join("a")
		m.join("b")
		time.Sleep(time.Second)
		calls, _ := a.held(2, rule(t, limit.DurabilitySync, 9))
		results := make([]owner.Result, 2)
		m.mute("b", true)
		now := m.clock.Now()
		a.DecideGroup(t.Context(), now, now+int64(latency), calls, results)
		for _, r := range results {
			if !errors.Is(r.Err, context.DeadlineExceeded) || !r.Taken {
				t.Errorf("%+v", r)
			}
		}
		var v limit.Verdict
		alone, _ := a.held(1, rule(t, limit.DurabilitySync, 9))
		if err := a.Decide(t.Context(), now, now+int64(2*latency), &alone[0], &v); !errors.Is(err, context.DeadlineExceeded) || !v.Allowed {
			t.Errorf("by itself: %+v, %v", v, err)
		}
	})
}
