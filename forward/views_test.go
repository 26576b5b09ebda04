package forward

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ringlimit/ringlimit/limit"
	"github.com/ringlimit/ringlimit/membership"
	"github.com/ringlimit/ringlimit/owner"
)

// A flood of requests that one limit refuses costs a hop a second for each of the
// others, and every answer shows all of them: wherever the one is counted. The
// times that are shown shrink.
func TestFloodOfRefusals(t *testing.T) {
	for _, refuses := range []membership.NodeID{self, other} {
		synctest.Test(t, func(t *testing.T) {
			k := newTrio(t)
			defer k.Close()
			charges := []limit.Charge{
				unit(k.named(t, refuses, 1), hourly(t, limit.FixedWindow, 1)),
				unit(k.named(t, third, 2), hourly(t, limit.FixedWindow, 100)),
				unit(k.named(t, third, 3), hourly(t, limit.FixedWindow, 100)),
			}
			k.takeAll(t, charges...)
			k.takeAll(t, charges...) // and the deny cache knows
			synctest.Wait()
			asked, last := k.c.asked.Load(), time.Duration(0)
			for i := range 300 {
				v := k.takeAll(t, charges...)
				if v[0].Allowed || !v[1].Allowed || v[1].Remaining != 99 || v[2].Remaining != 99 || v[2].Rule != charges[2].Rule {
					t.Fatalf("request %d: %+v", i, v)
				}
				if i > 0 && v[1].ResetAfter != last-10*time.Millisecond {
					t.Fatalf("request %d: all is back after %v, before after %v", i, v[1].ResetAfter, last)
				}
				last = v[1].ResetAfter
				time.Sleep(10 * time.Millisecond)
			}
			if n := k.c.asked.Load() - asked; n < 4 || n > 8 {
				t.Errorf("refused by %s: the owner of two other limits was asked %d times in 3 s", refuses, n)
			}
			if left := k.left(t, charges[1]); left != 99 {
				t.Errorf("refused by %s: %d left of another limit", refuses, left)
			}
		})
	}
}

// Who is shown a limit learns of the longest wait also when that is not the first
// to be known; and a view ends when its wait is over.
func TestViewOfARefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newTrio(t)
		defer k.Close()
		short := ruleOf(t, limit.Spec{Algorithm: limit.TokenBucket, Limit: 5, Window: time.Second, Burst: 3})
		charges := []limit.Charge{unit(k.named(t, self, 1), hourly(t, limit.FixedWindow, 1)), unit(k.named(t, other, 2), short)}
		charges[1].Cost = 2
		k.takeAll(t, charges...)
		v := k.takeAll(t, charges...) // asks
		if asked := k.b.asked.Load(); v[1].Allowed || v[1].Source != limit.SourceForwarded || v[1].RetryAfter != 200*time.Millisecond || asked != 2 {
			t.Errorf("asked %d times: %+v", asked, v[1])
		}
		time.Sleep(150 * time.Millisecond)
		v = k.takeAll(t, charges...)
		if v[1].Allowed || v[1].Source != limit.SourceDenyCache || v[1].RetryAfter != 50*time.Millisecond || v[1].ResetAfter != 250*time.Millisecond || k.b.asked.Load() != 2 {
			t.Errorf("a view: %+v", v[1])
		}
		time.Sleep(50 * time.Millisecond)
		if v = k.takeAll(t, charges...); !v[1].Allowed || v[1].Remaining != 2 || k.b.asked.Load() != 3 {
			t.Errorf("after the wait: %+v", v[1])
		}
	})
}

// A request of another cost, or under another rule, is not shown by a view; a refund
// drops it; and a peek is always asked for.
func TestWhatDropsAView(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newTrio(t)
		defer k.Close()
		full, wide := unit(k.named(t, self, 1), hourly(t, limit.FixedWindow, 1)), unit(k.named(t, other, 2), hourly(t, limit.FixedWindow, 100))
		k.takeAll(t, full, wide)
		step := func(what string, asks int64, remaining int64, charges ...limit.Charge) {
			t.Helper()
			before := k.b.asked.Load()
			if v := k.takeAll(t, charges...); v[1].Remaining != remaining || v[1].Rule != charges[1].Rule || k.b.asked.Load()-before != asks {
				t.Errorf("%s: asked %d times: %+v", what, k.b.asked.Load()-before, v[1])
			}
		}
		with := func(c limit.Charge, change func(*limit.Charge)) limit.Charge {
			change(&c)
			return c
		}
		step("a view", 0, 99, full, wide)
		step("another cost", 1, 99, full, with(wide, func(c *limit.Charge) { c.Cost = 2 }))
		step("another rule", 1, 89, full, with(wide, func(c *limit.Charge) { c.Rule = hourly(t, limit.FixedWindow, 90) }))
		step("a peek", 1, 99, with(full, func(c *limit.Charge) { c.Mode = limit.Peek }), with(wide, func(c *limit.Charge) { c.Mode = limit.Peek }))
		step("a view of that", 0, 99, full, wide)
		if _, err := k.fixture.Decide(context.Background(), &limit.Charge{Counter: wide.Counter, Rule: wide.Rule, Cost: 1, Mode: limit.Refund}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Nanosecond)
		step("after a refund", 1, 100, full, wide)
	})
}

// Where an owner cannot be asked, on_failure shows what it would say, once a second:
// a flood does not wait for that owner with each request.
func TestViewOfALostOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newTrio(t)
		defer k.Close()
		asked := 0
		k.b.fails = func(c *owner.Call) error {
			if asked++; c.Mode != limit.Peek {
				t.Errorf("asked for %+v", c)
			}
			time.Sleep(10 * time.Millisecond)
			return ErrTimeout
		}
		full := unit(k.named(t, self, 1), hourly(t, limit.FixedWindow, 1))
		full.Cost = 2
		lost := unit(k.named(t, other, 2), withFailure(hourly(t, limit.FixedWindow, 90), limit.FailLocal))
		for range 50 {
			v := k.takeAll(t, full, lost)
			if v[0].Allowed || !v[1].Allowed || v[1].Source != limit.SourceFallback || v[1].Remaining != 30 || v[1].Rule != lost.Rule {
				t.Fatalf("%+v", v)
			}
			time.Sleep(10 * time.Millisecond)
		}
		if asked != 1 {
			t.Errorf("the lost owner was asked %d times in half a second", asked)
		}
	})
}

// ViewAll takes nothing, of one limit or several, in any mode.
func TestViewAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newTrio(t)
		defer k.Close()
		for _, mode := range []limit.Mode{limit.Take, limit.Peek, limit.Refund} {
			for n := range 4 {
				var calls []owner.Call
				for i, id := range []membership.NodeID{other, self, third}[:n] {
					calls = append(calls, owner.Call{Charge: unit(k.named(t, id, i), tokens(t, 9))})
					calls[i].Mode = mode
				}
				verdicts := make([]limit.Verdict, n)
				if err := k.ViewAll(context.Background(), calls, verdicts); err != nil {
					t.Error(err)
				}
				for i, v := range verdicts {
					if !v.Allowed || v.Remaining != 9 || v.Rule != calls[i].Rule {
						t.Errorf("mode %d of %d: %+v", mode, n, v)
					}
				}
			}
		}
	})
}
