package driver

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ringlimit/ringlimit/membership"
	"github.com/ringlimit/ringlimit/owner/transfer"
)

// A run that the others take for an earlier one than the last says so, and does
// not wait for answers that never come. Unless the later one lives.
func TestOutdatedRunIsTold(t *testing.T) {
	for name, lives := range map[string]bool{"the later one is dead": false, "the later one lives": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMesh(t)
				defer m.stop()
				a := m.join("a")
				later := membership.Member{ID: "b", Boot: 99, Seq: 1, State: membership.Serving, Owner: true}
				a.Members(membership.NewView([]membership.Member{a.cfg.Self, later}))
				a.Members(membership.NewView([]membership.Member{a.cfg.Self}))
				b := m.add("b")
				m.gossip()
				if lives {
					b.Members(membership.NewView([]membership.Member{a.self, later}))
				}
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				outdated, ok := errors.AsType[*LaterRunError](b.Serve(ctx))
				if ok == lives || ok && outdated.Boot != 99 || ctx.Err() != nil {
					t.Errorf("serve: %v", outdated)
				}
			})
		})
	}
}

// A member that is about to serve is waited for, and gets everything.
func TestDrainBesideAJoiner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMesh(t)
		defer m.stop()
		a, b := m.join("a"), m.add("b")
		m.gossip()
		time.AfterFunc(time.Second, func() { b.become(membership.Serving) })
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if err := a.Drain(ctx); err != nil {
			t.Error(err)
		}
		time.Sleep(10 * latency)
		if held := b.table.Stats().Holding; held != 1024 {
			t.Errorf("the joiner has %d partitions", held)
		}
	})
}

// Copies of others are waited for. That they stay is an error only if those who
// sent them may be gone.
func TestDrainWithCopiesLeft(t *testing.T) {
	for name, refuses := range map[string]bool{"the holder lives": false, "the holder is gone": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMesh(t)
				defer m.stop()
				b := m.join("b")
				a := m.add("a")
				m.gossip()
				m.mute("b", true)
				a.Receive("b", b.self.Boot, &transfer.Replicate{Copies: []transfer.Copy{{Partition: 1, Stream: 1, Number: 1}}})
				if refuses {
					a.Refused("b")
				}
				ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
				defer cancel()
				err := a.Drain(ctx)
				if ctx.Err() == nil {
					t.Error("it did not wait for another copy")
				}
				if !refuses && err != nil || refuses && (err == nil || !strings.HasPrefix(err.Error(), "copies of 1 partitions")) {
					t.Errorf("drained: %v", err)
				}
			})
		})
	}
}
