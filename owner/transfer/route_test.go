package transfer

import (
	"testing"

	"github.com/ringlimit/ringlimit/membership"
)

func (p *peer) wantRoute(partition int, way Way, to membership.NodeID) {
	p.t.Helper()
	if w, id := p.Route(partition); w != way || id != to {
		p.t.Errorf("partition %d: way %v to %q; want %v to %q", partition, w, id, way, to)
	}
}

// Who does not hold names who may: the owner, who got it, or who decides on
// while we acquire.
func TestRouteNamesWhoMayHold(t *testing.T) {
	p, i := holder(t)
	p.wantRoute(i, Decide, "")
	p.ask("c", i, true)
	p.wantRoute(i, Elsewhere, "c")
	r := p.Ring()
	for other := range partitions {
		if id := r.Nodes()[r.Owner(other)]; id == "b" {
			p.wantRoute(other, Elsewhere, "b")
		}
	}
}

func TestRouteWhileAcquiring(t *testing.T) {
	p := newPeer(t, record("b", membership.Serving), record("c", membership.Serving))
	i := owned(t, "a", "b", "c")[0]
	p.wantRoute(i, Wait, "")
	for _, a := range said[*Acquire](p, "b")[0].Asks {
		if a.Partition == i {
			p.hear("b", &Answers{Parts: []Part{{Partition: i, Attempt: a.Attempt, Status: Held}}})
		}
	}
	p.wantRoute(i, Elsewhere, "b") // c has not answered: b decides on
	p.deny("c")
	p.wantRoute(i, Wait, "") // b is being pulled
}
