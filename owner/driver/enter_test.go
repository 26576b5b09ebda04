package driver

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ringlimit/ringlimit/membership"
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
