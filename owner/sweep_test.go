package owner

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ringlimit/ringlimit/limit"
)

// The fault of purging under a lock and deleting later: a counter that is
// revived between two steps of the sweep is not lost.
func TestRevivedCounterIsNotLost(t *testing.T) {
	tab := holding(Config{Partitions: 1})
	rule := mustRule(t, per(1, time.Minute, limit.FixedWindow))
	for i := range 100 {
		decide(t, tab, start, on(tab, key(i), rule))
	}
	now := start + int64(time.Minute)
	p := &tab.partitions[0]
	for from, more := uint64(0), true; more; {
		// The one that the next step comes to is used just before it does.
		var revived *slot
		seg := p.segment(from)
		if i := seg.slots.from(from); i < len(seg.slots.at) {
			revived = &seg.slots.at[i]
		}
		c := on(tab, string(seg.names.at(revived.name)), rule)
		if v := decide(t, tab, now, c); !v.Allowed {
			t.Fatalf("%+v", v)
		}
		_, from, more = tab.dropFresh(p, seg, now, from, 2)
		if v := decide(t, tab, now, c); v.Allowed {
			t.Fatalf("%q was charged and then dropped", c.Counter)
		}
	}
	if s := tab.Stats(); s.Counters < 40 || s.Dropped < 40 {
		t.Errorf("%+v; want half revived, half dropped", s)
	}
	check(t, tab)
}

// A caller that read the clock, waited for the lock and found its counter
// dropped meanwhile must not be counted in a window that is over: it would pass
// for free.
func TestStaleCallerAfterTheSweep(t *testing.T) {
	for _, a := range []limit.Algorithm{limit.FixedWindow, limit.SlidingWindowLog, limit.TokenBucket, limit.LeakyBucket} {
		tab := holding(Config{Partitions: 1})
		rule := mustRule(t, per(1, time.Minute, a))
		c := on(tab, "a", rule)
		decide(t, tab, start, c)
		later := start + int64(time.Minute)
		if n := tab.Sweep(later, 1); n != 1 {
			t.Fatalf("%v: %d counters dropped", a, n)
		}
		if v := decide(t, tab, later-int64(55*time.Second), c); !v.Allowed {
			t.Errorf("%v: the stale caller: %+v", a, v)
		}
		if v := decide(t, tab, later+int64(10*time.Second), c); v.Allowed {
			t.Errorf("%v: two in one minute after the sweep", a)
		}
	}
}

// Run drops what is fresh within a round, keeps all else, and ends with its
// context.
func TestRunSweepsWithinARound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tab := holding(Config{Partitions: 64})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { tab.Run(ctx); close(done) }()
		short, long := mustRule(t, per(5, time.Second, limit.FixedWindow)), mustRule(t, per(5, time.Hour, limit.SlidingWindowLog))
		for i := range 1000 {
			decide(t, tab, tab.now(), on(tab, "short"+key(i), short))
			decide(t, tab, tab.now(), on(tab, "long"+key(i), long))
		}
		time.Sleep(sweepRound + 2*time.Second)
		if s := tab.Stats(); s.Counters != 1000 || s.Dropped != 1000 {
			t.Errorf("after a round: %+v", s)
		}
		cancel()
		<-done
		check(t, tab)
	})
}

// A refused counter makes the sweep hurry, so that those to come find room that
// other partitions hold.
func TestRunHurriesWhenFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tab := holding(Config{Partitions: 64, Memory: 256 << 10})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { tab.Run(ctx); close(done) }()
		rule := mustRule(t, per(5, time.Second, limit.SlidingWindowLog))
		for i := range 10_000 {
			answer(tab, tab.now(), on(tab, key(i), rule))
		}
		live := tab.Stats().Counters
		time.Sleep(time.Second) // all are fresh now; the sweep alone would take 20 s
		for i := range 100 {
			answer(tab, tab.now(), on(tab, "new"+key(i), rule))
		}
		time.Sleep(time.Second)
		if s := tab.Stats(); s.Dropped < live || s.Counters > 100 {
			t.Errorf("%+v; want the %d of the start dropped", s, live)
		}
		cancel()
		<-done
		check(t, tab)
	})
}

// Hurrying takes a whole core, so it has its pauses.
func TestRunHurriesOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tab := holding(Config{Partitions: 64})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { tab.Run(ctx); close(done) }()
		rule := mustRule(t, per(5, 100*time.Millisecond, limit.SlidingWindowLog))
		for i := range 1000 {
			decide(t, tab, tab.now(), on(tab, key(i), rule))
		}
		for _, step := range []struct {
			sleep       time.Duration
			least, most int64
		}{
			{0, 0, 0}, // hurries at once, and finds nothing
			{500 * time.Millisecond, 0, 200},
			{600 * time.Millisecond, 1000, 1000},
		} {
			time.Sleep(step.sleep)
			tab.pressed <- struct{}{}
			synctest.Wait()
			if n := tab.Stats().Dropped; n < step.least || n > step.most {
				t.Errorf("%d dropped after another %v; want %d to %d", n, step.sleep, step.least, step.most)
			}
		}
		cancel()
		<-done
	})
}
