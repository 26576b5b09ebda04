package driver

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ringlimit/ringlimit/membership"
	"github.com/ringlimit/ringlimit/owner/transfer"
)

// ghost is the last word of a node that gossip has dropped.
func ghost(state membership.State) *transfer.Views {
	return &transfer.Views{Records: []transfer.Record{{ID: "ghost", Boot: 99, Seq: 7, State: state, Owner: true}}}
}

func (n *node) record(id membership.NodeID) transfer.Record {
	n.mu.Lock()
	defer n.mu.Unlock()
	r, _ := n.Driver.record(id)
	return r
}

// A member that contradicted its death a moment before it died keeps nobody from
// acquiring for good: neither those who heard it nor those who join later.
func TestGhostsAreBuried(t *testing.T) {
	for _, state := range []membership.State{membership.Draining, membership.Serving} {
		synctest.Test(t, func(t *testing.T) {
			m := newMesh(t)
			defer m.stop()
			a, b := m.join("a"), m.join("b")
			a.Receive("b", b.self.Boot, ghost(state))
			time.Sleep(unseenLook)
			if r := b.record("ghost"); r.State != state {
				t.Fatalf("b has heard of %+v: the test tests nothing", r)
			}
			c := m.add("c")
			m.gossip()
			ctx, cancel := context.WithTimeout(t.Context(), 3*unseenFor)
			defer cancel()
			if err := c.Enter(ctx); err != nil {
				t.Fatal(err)
			}
			if err := c.Serve(ctx); err != nil {
				t.Fatalf("%v: a joiner waits for one who is gone: %v", state, err)
			}
			for id, n := range m.nodes {
				if r := n.record("ghost"); r.State != transfer.Dead {
					t.Errorf("%v: to %s the ghost is %v", state, id, r.State)
				}
			}
		})
	}
}

// A member that talks to all is there, though gossip does not show it.
func TestWhoTalksIsNotBuried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMesh(t)
		defer m.stop()
		a, b := m.join("a"), m.join("b")
		a.Receive("b", b.self.Boot, ghost(membership.Serving))
		for range 20 {
			time.Sleep(unseenFor / 2)
			for _, n := range m.nodes {
				n.Receive("ghost", 99, &transfer.Beat{})
			}
			if r := a.record("ghost"); r.State != membership.Serving {
				t.Fatalf("it is %v", r.State)
			}
		}
		time.Sleep(2 * unseenFor)
		if r := a.record("ghost"); r.State != transfer.Dead {
			t.Errorf("it has fallen silent, and is %v", r.State)
		}
	})
}

// A node that stood still has not looked.
func TestGhostsAreNotBuriedAfterAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMesh(t)
		defer m.stop()
		a := m.join("a")
		a.Receive("ghost", 99, ghost(membership.Serving))
		time.Sleep(2 * unseenLook)
		a.standStill(t, 2*unseenFor)
		time.Sleep(2 * unseenLook)
		if r := a.record("ghost"); r.State != membership.Serving {
			t.Errorf("it is %v", r.State)
		}
	})
}
