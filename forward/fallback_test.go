package forward

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ringlimit/ringlimit/limit"
	"github.com/ringlimit/ringlimit/membership"
	"github.com/ringlimit/ringlimit/owner"
)

// cutOff is a router in a ring of four whose other nodes cannot be reached.
func cutOff(t testing.TB, change func(*Config)) *fixture {
	f := newFixture(t, change)
	var asked atomic.Int32
	dead := failing(ErrUnreachable, &asked)
	f.publish(t, map[membership.NodeID]Peer{other: dead, third: dead, "d": dead})
	return f
}

func TestFallbackAdmitsAShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := cutOff(t, nil)
		rule, name := tokens(t, 100), f.nameOf(t, other)
		admitted := 0
		for range 100 {
			if v := f.take(t, name, rule, 1); v.Allowed {
				admitted++
			} else if v.RetryAfter <= 0 || v.Limit != 25 || v.Rule != rule {
				t.Fatalf("verdict %+v", v)
			}
		}
		if admitted != 25 {
			t.Errorf("admitted %d of 100 as one of four", admitted)
		}
	})
}

func TestOnFailureAllowAndDeny(t *testing.T) {
	f := cutOff(t, nil)
	name := f.nameOf(t, other)
	allow, deny := withFailure(tokens(t, 2), limit.FailAllow), withFailure(tokens(t, 2), limit.FailDeny)
	for range 5 {
		if v := f.take(t, name, allow, 1); v != (limit.Verdict{Allowed: true, Source: limit.SourceFallback, Rule: allow, Limit: 2, Remaining: 2}) {
			t.Errorf("allow: %+v", v)
		}
		if v := f.take(t, name, deny, 1); v != (limit.Verdict{Reason: limit.Unavailable, Source: limit.SourceFallback, Rule: deny, Limit: 2}) {
			t.Errorf("deny: %+v", v)
		}
	}
}

// A share under one admits nothing, and that is not the request's fault; a cost
// that the rule itself could never admit is.
func TestFallbackShareTooSmall(t *testing.T) {
	f := cutOff(t, nil)
	name := f.nameOf(t, other)
	if v := f.take(t, name, tokens(t, 3), 1); v.Allowed || v.Reason != limit.Unavailable {
		t.Errorf("3 among 4: %+v", v)
	}
	if v := f.take(t, name, tokens(t, 100), 26); v.Allowed || v.Reason != limit.Unavailable {
		t.Errorf("26 of 100 among 4: %+v", v)
	}
	if v := f.take(t, name, tokens(t, 100), 101); v.Allowed || v.Reason != limit.CostExceedsLimit {
		t.Errorf("101 of 100: %+v", v)
	}
}

// The node's capacity bounds all counters together, and what it refuses is not
// charged to the counter.
func TestFallbackCapacity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := cutOff(t, func(c *Config) { c.FallbackCapacity = 40 })
		rule := tokens(t, 400)
		names := make([][]byte, 0, 100)
		for i := 0; len(names) < cap(names); i++ {
			name := fmt.Appendf(nil, "spray-%d", i)
			if _, id, _ := f.Locate(name); id != self {
				names = append(names, name)
			}
		}
		admitted := 0
		for _, name := range names {
			switch v := f.take(t, name, rule, 1); {
			case v.Allowed:
				admitted++
			case v.RetryAfter != 100*time.Millisecond || v.Remaining != 100:
				t.Fatalf("verdict %+v", v)
			}
		}
		if admitted != 10 {
			t.Errorf("admitted %d, with 40 a second among 4", admitted)
		}
		time.Sleep(time.Second)
		if v := f.take(t, names[99], rule, 1); !v.Allowed || v.Remaining != 99 {
			t.Errorf("a second later: %+v", v)
		}
	})
}

// An owner that comes and goes does not give out a fresh share each time.
func TestFallbackIsKeptWarm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := cutOff(t, nil)
		rule, name := tokens(t, 100), f.nameOf(t, other)
		for range 25 {
			f.take(t, name, rule, 1)
		}
		var asked atomic.Int32
		alive := tablePeer(table(params.Partitions, wall), &asked)
		dead := failing(ErrUnreachable, &asked)
		f.publish(t, map[membership.NodeID]Peer{other: alive, third: alive, "d": alive})
		if v := f.take(t, name, rule, 1); v.Source != limit.SourceForwarded {
			t.Fatalf("verdict %+v", v)
		}
		f.publish(t, map[membership.NodeID]Peer{other: dead, third: dead, "d": dead})
		if v := f.take(t, name, rule, 1); v.Allowed || v.Source != limit.SourceFallback {
			t.Errorf("in the second outage: %+v", v)
		}
	})
}

// When the cluster's size changes, shares and capacity change with it, and what
// was used stays used.
func TestFallbackFollowsTheRingsSize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := cutOff(t, func(c *Config) { c.FallbackCapacity = 80 })
		rule, name := tokens(t, 100), f.nameOf(t, other)
		for range 20 {
			f.take(t, name, rule, 1)
		}
		var asked atomic.Int32
		f.publish(t, map[membership.NodeID]Peer{other: failing(ErrUnreachable, &asked)})
		name2 := f.nameOf(t, other)
		if v := f.take(t, name2, rule, 1); !v.Allowed || v.Limit != 50 {
			t.Errorf("as one of two: %+v", v)
		}
		if got := f.fallback.bucket.Limit; got != 40 {
			t.Errorf("capacity %d a second as one of two", got)
		}
		if v := f.fallback.bucket.Peek(f.fallback.level, wall(), 1); v.Remaining > 20 {
			t.Errorf("%d left of a capacity of which 21 were used", v.Remaining)
		}
	})
}

func TestFallbackPeekTakesNothing(t *testing.T) {
	f := cutOff(t, func(c *Config) { c.FallbackCapacity = 4 })
	rule, name := tokens(t, 4), f.nameOf(t, other)
	for range 3 {
		v, err := f.Decide(t.Context(), &limit.Charge{Counter: name, Rule: rule, Cost: 1, Mode: limit.Peek})
		if err != nil || !v.Allowed || v.Remaining != 1 || v.Source != limit.SourceFallback {
			t.Errorf("peek: %+v, %v", v, err)
		}
	}
	if v := f.take(t, name, rule, 1); !v.Allowed {
		t.Errorf("take: %+v", v)
	}
}

// Full tables admit nothing: there is no room to count in.
func TestFallbackWithoutRoom(t *testing.T) {
	f := cutOff(t, func(c *Config) {
		c.Fallback = full{}
	})
	if v := f.take(t, f.nameOf(t, other), tokens(t, 100), 1); v.Allowed || v.Reason != limit.Unavailable {
		t.Errorf("verdict %+v", v)
	}
}

// The owner, this very node, has no room for a new counter: on_failure.
func TestOwnTableFull(t *testing.T) {
	f := newFixture(t, func(c *Config) {
		c.Local = localFunc(func(context.Context, int64, int64, *owner.Call, *limit.Verdict) error { return owner.ErrFull })
	})
	f.publish(t, nil)
	v := f.take(t, f.nameOf(t, self), tokens(t, 10), 1)
	if v.Source != limit.SourceFallback || !v.Allowed || f.witness.counts()["full"] != 1 {
		t.Errorf("verdict %+v, observer was told %s", v, f.witness.told())
	}
}

type full struct{}

func (full) Decide(int64, *owner.Call, *limit.Verdict) error { return owner.ErrFull }

func TestFallbackSharesAreBounded(t *testing.T) {
	f := newFallback(table(1, wall), 0)
	for i := range int64(2*maxShares + 1) {
		f.share(0, tokens(t, 100+i), 2)
	}
	if len(f.shares) > maxShares {
		t.Errorf("%d shares are kept", len(f.shares))
	}
}
