package forward

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ringlimit/ringlimit/limit"
	"github.com/ringlimit/ringlimit/membership"
	"github.com/ringlimit/ringlimit/owner"
	"github.com/ringlimit/ringlimit/owner/transfer"
)

func TestNotMineFollowsOneHint(t *testing.T) {
	f := newFixture(t, nil)
	var wrong, right atomic.Int32
	f.publish(t, map[membership.NodeID]Peer{
		other: failing(&transfer.NotMine{Hint: third, Ring: 1}, &wrong),
		third: tablePeer(table(params.Partitions, wall), &right),
	})
	v := f.take(t, f.nameOf(t, other), tokens(t, 10), 1)
	if !v.Allowed || v.Source != limit.SourceForwarded || wrong.Load() != 1 || right.Load() != 1 {
		t.Errorf("verdict %+v, wrong asked %d, right %d", v, wrong.Load(), right.Load())
	}
}

// The hint may be this very node: its ring is behind, its table is not.
func TestNotMineHintsAtUs(t *testing.T) {
	f := newFixture(t, nil)
	var asked atomic.Int32
	f.publish(t, map[membership.NodeID]Peer{other: failing(&transfer.NotMine{Hint: self}, &asked)})
	v := f.take(t, f.nameOf(t, other), tokens(t, 10), 1)
	if !v.Allowed || v.Source != limit.SourceOwner || asked.Load() != 1 {
		t.Errorf("verdict %+v, asked %d", v, asked.Load())
	}
}

// A denial that this node gave itself, after a hint, is not remembered: the
// counter may be filled or refunded here behind the cache's back.
func TestOwnDenialIsNotCached(t *testing.T) {
	f := newFixture(t, nil)
	var asked atomic.Int32
	f.publish(t, map[membership.NodeID]Peer{other: failing(&transfer.NotMine{Hint: self}, &asked)})
	rule, name := tokens(t, 1), f.nameOf(t, other)
	for range 3 {
		if v := f.take(t, name, rule, 1); v.Source != limit.SourceOwner {
			t.Errorf("verdict %+v", v)
		}
	}
	if len(f.witness.hops) != 0 {
		t.Errorf("%d hops", len(f.witness.hops))
	}
}

// The time of a hop is that of the whole search.
func TestHopsAreTimed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		f.publish(t, map[membership.NodeID]Peer{other: peerFunc(func(context.Context, *owner.Call, int64) (limit.Verdict, error) {
			time.Sleep(3 * time.Millisecond)
			return limit.Verdict{Allowed: true}, nil
		})})
		f.take(t, f.nameOf(t, other), tokens(t, 1), 1)
		if len(f.witness.hops) != 1 || f.witness.hops[0] != 3*time.Millisecond {
			t.Errorf("hops %v", f.witness.hops)
		}
	})
}

// Two nodes that name each other are asked in turn, each look a wait apart, and
// the deadline ends it. One hint a look is followed.
func TestNotMineEndsAtTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		var first, second atomic.Int32
		f.publish(t, map[membership.NodeID]Peer{
			other: failing(&transfer.NotMine{Hint: third}, &first),
			third: failing(&transfer.NotMine{Hint: other}, &second),
		})
		start := time.Now()
		v := f.take(t, f.nameOf(t, other), withFailure(tokens(t, 10), limit.FailDeny), 1)
		if took := time.Since(start); took > DefaultDeadline || took < DefaultDeadline-2*lookAgain {
			t.Errorf("took %v", took)
		}
		if v.Allowed || v.Reason != limit.Unavailable || v.Source != limit.SourceFallback {
			t.Errorf("verdict %+v", v)
		}
		if first.Load() != 10 || second.Load() != 10 {
			t.Errorf("asked %d and %d times", first.Load(), second.Load())
		}
		if got := f.witness.told(); got != "map[not_holder:1] [true]" {
			t.Errorf("observer was told %s", got)
		}
	})
}

// The ownership is looked up in the loop: a ring that is replaced meanwhile is
// used at once, without a wait.
func TestNotMineLooksInTheNewRing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		var asked atomic.Int32
		stale := peerFunc(func(context.Context, *owner.Call, int64) (limit.Verdict, error) {
			f.publish(t, map[membership.NodeID]Peer{third: tablePeer(table(params.Partitions, wall), &asked)})
			return limit.Verdict{}, &transfer.NotMine{}
		})
		f.publish(t, map[membership.NodeID]Peer{other: stale})
		name := f.nameOf(t, other)
		start := time.Now()
		v := f.take(t, name, tokens(t, 10), 1)
		if !v.Allowed || v.Source == limit.SourceFallback || time.Since(start) != 0 {
			t.Errorf("verdict %+v after %v", v, time.Since(start))
		}
	})
}

// Ours by the ring, but not held yet: the check waits for the partition.
func TestAcquiringIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		f.publish(t, nil)
		name := f.nameOf(t, self)
		p, _, _ := f.Locate(name)
		f.local.SetPhase(p, owner.Acquiring)
		time.AfterFunc(12*time.Millisecond, func() { f.local.SetPhase(p, owner.Holding) })
		start := time.Now()
		v := f.take(t, name, tokens(t, 10), 1)
		if !v.Allowed || v.Source != limit.SourceOwner || time.Since(start) != 15*time.Millisecond {
			t.Errorf("verdict %+v after %v", v, time.Since(start))
		}
	})
}

// Ours by the ring, and held by a node that this one knows of: that one is asked,
// and this one not again.
func TestOurOwnHintIsFollowed(t *testing.T) {
	var here, there atomic.Int32
	f := newFixture(t, func(c *Config) {
		c.Local = localFunc(func(context.Context, int64, int64, *owner.Call, *limit.Verdict) error {
			here.Add(1)
			return &transfer.NotMine{Hint: other}
		})
	})
	f.publish(t, map[membership.NodeID]Peer{other: tablePeer(table(params.Partitions, wall), &there)})
	v := f.take(t, f.nameOf(t, self), tokens(t, 10), 1)
	if !v.Allowed || v.Source != limit.SourceForwarded || here.Load() != 1 || there.Load() != 1 {
		t.Errorf("verdict %+v, here asked %d times, there %d", v, here.Load(), there.Load())
	}
}

// Who is leaving the ring holds its counters until others have taken them.
func TestHintOutsideTheRingIsFollowed(t *testing.T) {
	f := newFixture(t, nil)
	var wrong, leaving atomic.Int32
	ways := map[membership.NodeID]Peer{
		other: failing(&transfer.NotMine{Hint: third}, &wrong),
		third: tablePeer(table(params.Partitions, wall), &leaving),
	}
	f.Publish(ringOf(t, self, other), self, func(id membership.NodeID) Peer { return ways[id] })
	v := f.take(t, f.nameOf(t, other), tokens(t, 10), 1)
	if !v.Allowed || v.Source != limit.SourceForwarded || wrong.Load() != 1 || leaving.Load() != 1 {
		t.Errorf("verdict %+v, the owner asked %d times, the leaving one %d", v, wrong.Load(), leaving.Load())
	}
}

// The node that is leaving may be this one. Nobody has a way to itself.
func TestHintAtUsOutsideTheRing(t *testing.T) {
	f := newFixture(t, nil)
	var asked atomic.Int32
	f.Publish(ringOf(t, other), self, func(id membership.NodeID) Peer {
		if id == self {
			t.Error("asked for a way to the node itself")
		}
		return failing(&transfer.NotMine{Hint: self}, &asked)
	})
	v := f.take(t, f.nameOf(t, other), tokens(t, 10), 1)
	if !v.Allowed || v.Source != limit.SourceOwner || asked.Load() != 1 {
		t.Errorf("verdict %+v, asked %d times", v, asked.Load())
	}
}

// A later process of our name is the node that a hint means.
func TestHintAtALaterProcessOfOurName(t *testing.T) {
	f := newFixture(t, nil)
	var wrong, later atomic.Int32
	ways := map[membership.NodeID]Peer{
		other: failing(&transfer.NotMine{Hint: self}, &wrong),
		self:  tablePeer(table(params.Partitions, wall), &later),
	}
	f.Publish(ringOf(t, self, other), "", func(id membership.NodeID) Peer { return ways[id] })
	v := f.take(t, f.nameOf(t, other), tokens(t, 10), 1)
	if v.Source != limit.SourceForwarded || later.Load() != 1 {
		t.Errorf("verdict %+v, the later one asked %d times", v, later.Load())
	}
}

// What a hint leads to may hint further, or back. One is followed a look: else
// two nodes could keep a check going around.
func TestOneHintALook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		var first, second, decides atomic.Int32
		f.publish(t, map[membership.NodeID]Peer{
			other: failing(&transfer.NotMine{Hint: third}, &first),
			third: failing(&transfer.NotMine{Hint: "d"}, &second),
			"d":   tablePeer(table(params.Partitions, wall), &decides),
		})
		f.take(t, f.nameOf(t, other), tokens(t, 10), 1)
		if first.Load() != 10 || second.Load() != 10 || decides.Load() != 0 {
			t.Errorf("asked %d, %d and %d times", first.Load(), second.Load(), decides.Load())
		}
	})
}

// Who names itself is not asked twice in one look.
func TestHintAtTheAnswererIsNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		var asked atomic.Int32
		f.publish(t, map[membership.NodeID]Peer{other: failing(&transfer.NotMine{Hint: other}, &asked)})
		f.take(t, f.nameOf(t, other), tokens(t, 10), 1)
		if asked.Load() != 10 {
			t.Errorf("asked %d times", asked.Load())
		}
	})
}

// Nobody has counted what nobody received: the next owner is asked once the ring
// names it.
func TestAbsentOwnerIsLookedForAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		var gone, heir atomic.Int32
		f.publish(t, map[membership.NodeID]Peer{other: failing(ErrAbsent, &gone)})
		name := f.nameOf(t, other)
		time.AfterFunc(12*time.Millisecond, func() {
			f.publish(t, map[membership.NodeID]Peer{third: tablePeer(table(params.Partitions, wall), &heir)})
		})
		start := time.Now()
		v := f.take(t, name, tokens(t, 10), 1)
		if v.Source == limit.SourceFallback || gone.Load() != 3 || time.Since(start) != 15*time.Millisecond {
			t.Errorf("verdict %+v after %v; the absent one was asked %d times", v, time.Since(start), gone.Load())
		}
		if got := f.witness.told(); got != "map[] []" {
			t.Errorf("observer was told %s", got)
		}
	})
}

// A witness of the death may have replaced the ring before we are back.
func TestAbsentOwnerIsReplacedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		refused := peerFunc(func(context.Context, *owner.Call, int64) (limit.Verdict, error) {
			f.publish(t, nil)
			return limit.Verdict{}, ErrAbsent
		})
		f.publish(t, map[membership.NodeID]Peer{other: refused})
		start := time.Now()
		v := f.take(t, f.nameOf(t, other), tokens(t, 10), 1)
		if v.Source != limit.SourceOwner || time.Since(start) != 0 {
			t.Errorf("verdict %+v after %v", v, time.Since(start))
		}
	})
}

// A ring that is replaced all the time does not keep a check past its deadline.
func TestReplacedRingsEndAtTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		var asked atomic.Int32
		var flap peerFunc
		flap = func(context.Context, *owner.Call, int64) (limit.Verdict, error) {
			asked.Add(1)
			time.Sleep(20 * time.Millisecond)
			f.publish(t, map[membership.NodeID]Peer{other: flap})
			return limit.Verdict{}, ErrAbsent
		}
		f.publish(t, map[membership.NodeID]Peer{other: flap})
		v := f.take(t, f.nameOf(t, other), tokens(t, 10), 1)
		if v.Source != limit.SourceFallback || asked.Load() != 3 {
			t.Errorf("verdict %+v, asked %d times", v, asked.Load())
		}
		if got := f.witness.told(); got != "map[absent:1] [true]" {
			t.Errorf("observer was told %s", got)
		}
	})
}

// A node of the ring that is not known yet by its address is absent, whether the
// ring names it or a hint.
func TestUnknownWayIsAbsent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		var asked atomic.Int32
		f.publish(t, map[membership.NodeID]Peer{other: nil, third: failing(&transfer.NotMine{Hint: "nobody"}, &asked)})
		for _, id := range []membership.NodeID{other, third} {
			if v := f.take(t, f.nameOf(t, id), tokens(t, 10), 1); v.Source != limit.SourceFallback {
				t.Errorf("owned by %s: %+v", id, v)
			}
		}
		if got := f.witness.told(); got != "map[absent:2] [true]" {
			t.Errorf("observer was told %s", got)
		}
		name := f.nameOf(t, other)
		time.AfterFunc(8*time.Millisecond, func() {
			f.publish(t, map[membership.NodeID]Peer{other: tablePeer(table(params.Partitions, wall), &asked), third: nil})
		})
		if v := f.take(t, name, tokens(t, 10), 1); v.Source != limit.SourceForwarded {
			t.Errorf("once the way is known: %+v", v)
		}
	})
}

// Only who does not hold the counter and has another ring is told of.
func TestRingMismatchIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		var asked atomic.Int32
		answer := &transfer.NotMine{Hint: self}
		f.publish(t, map[membership.NodeID]Peer{other: failing(answer, &asked)})
		_, answer.Ring = f.OwnerOf(0)
		name := f.nameOf(t, other)
		f.take(t, name, tokens(t, 10), 1)
		if f.witness.strange != 0 {
			t.Errorf("our own ring: told %d times", f.witness.strange)
		}
		answer.Ring++
		f.take(t, name, tokens(t, 10), 1)
		if f.witness.strange != 1 {
			t.Errorf("another ring: told %d times", f.witness.strange)
		}
	})
}
