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
