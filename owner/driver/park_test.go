package driver

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/ringlimit/ringlimit/limit"
	"github.com/ringlimit/ringlimit/membership"
	"github.com/ringlimit/ringlimit/owner"
)

// A refund grows older while it waits for its partition: what was taken in a window
// that ends meanwhile is not given back to the next one, where others have been
// charged.
func TestParkedRefundsAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMesh(t)
		defer m.stop()
		a := m.join("a")
		r, err := limit.NewRule(limit.Spec{Algorithm: limit.FixedWindow, Limit: 9, Window: 10 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Until(time.Now().Truncate(10 * time.Second).Add(10*time.Second - 20*time.Millisecond)))
		b := m.add("b")
		m.gossip()
		i := 0
		m.mute("a", true)
		b.become(membership.Serving)
		for b.core.Phase(call(r, b.partition, i).Partition) != owner.Acquiring {
			i++
		}
		refund := call(r, b.partition, i)
		refund.Mode, refund.Age = limit.Refund, 2*time.Millisecond
		take := call(r, a.partition, i)
		take.Cost = 5
		charge := func() (v limit.Verdict) {
			now := m.clock.Now()
			if err := a.table.Decide(now, take, &v); err != nil || !v.Allowed {
				t.Fatalf("%+v, %v", v, err)
			}
			return v
		}
		charge()
		late, results := answers{make(chan owner.Result, 1)}, make([]owner.Result, 1)
		now := m.clock.Now()
		if b.DecideFrame(now, now+int64(time.Minute), []owner.Call{*refund}, results, late, 1); results[0].Err != owner.ErrLater {
			t.Fatalf("it does not wait: %+v", results[0])
		}
		time.Sleep(50 * time.Millisecond) // another window
		charge()
		m.mute("a", false)
		if got := <-late.got; got.Err != nil || got.Verdict.Remaining != 4 {
			t.Errorf("%+v; want 4 of 9 left", got)
		}
	})
}
