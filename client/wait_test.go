package client_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/ringlimit/ringlimit/client"
	"github.com/ringlimit/ringlimit/limit"
)

// everySecond admits one request a second.
func everySecond(t testing.TB) *counters {
	return counting(t, limit.Spec{Algorithm: limit.TokenBucket, Limit: 1, Window: time.Second, Burst: 1})
}

// A wait is spread over [wait, 2·wait): nobody comes too early, and not all at once.
func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNodes(t)
		n.start("a", everySecond(t))
		c := n.client("a")
		took := map[time.Duration]bool{}
		for i := range 20 {
			for _, waits := range []bool{false, true} {
				began := time.Now()
				v, err := c.Wait(t.Context(), key(i))
				d := time.Since(began)
				if err != nil || !v.Allowed || waits != (d > 0) || waits && (d < time.Second || d > 2*time.Second) {
					t.Fatalf("%+v, %v after %v", v, err, d)
				}
				took[d] = true
			}
		}
		if len(took) < 20 {
			t.Errorf("only %d waits differ", len(took)-1)
		}
	})
}

func TestWaitWithoutJitter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNodes(t)
		counters := everySecond(t)
		counters.rule.Jitter = false
		n.start("a", counters)
		c := n.client("a")
		began := time.Now()
		for range 5 {
			if v, err := c.Wait(t.Context(), key(1)); err != nil || !v.Allowed {
				t.Fatalf("%+v, %v", v, err)
			}
		}
		if took := time.Since(began); took != 4*time.Second || counters.times(key(1).Key) != 9 {
			t.Errorf("5 take %v and %d checks", took, counters.times(key(1).Key))
		}
	})
}

// What no wait helps, or none that ctx allows, is denied at once, without another
// check.
func TestWaitInVain(t *testing.T) {
	for name, test := range map[string]struct {
		req     limit.Request
		timeout time.Duration
		reserve int
	}{
		"cost above the limit":       {req: limit.Request{Key: "k", Cost: 2}, timeout: time.Hour},
		"no time":                    {req: limit.Request{Key: "k"}, timeout: 999 * time.Millisecond},
		"time for the wait, no more": {req: limit.Request{Key: "k"}, timeout: time.Second},
		"no retries":                 {req: limit.Request{Key: "k"}, timeout: time.Hour, reserve: -1},
	} {
		synctest.Test(t, func(t *testing.T) {
			n := newNodes(t)
			counters := everySecond(t)
			n.start("a", counters)
			c := n.reserving(test.reserve, "a")
			if v, err := c.Wait(t.Context(), limit.Request{Key: "k"}); err != nil || !v.Allowed {
				t.Fatalf("%s: %+v, %v", name, v, err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), test.timeout)
			defer cancel()
			began := time.Now()
			v, err := c.Wait(ctx, test.req)
			if err != nil || v.Allowed || time.Since(began) != 0 || counters.times("k") != 2 {
				t.Errorf("%s: %+v, %v after %v and %d checks", name, v, err, time.Since(began), counters.times("k"))
			}
		})
	}
}

// Nobody can be asked, and the rule refuses then: another check would only add to the
// load.
func TestWaitForNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNodes(t)
		counters := everySecond(t)
		counters.amend = func(v *limit.Verdict) { v.Allowed, v.Reason = false, limit.Unavailable }
		n.start("a", counters)
		c := n.client("a")
		if v, err := c.Wait(t.Context(), key(1)); err != nil || v.Reason != limit.Unavailable || counters.times(key(1).Key) != 1 {
			t.Errorf("%+v, %v after %d checks", v, err, counters.times(key(1).Key))
		}
	})
}

// A denial without a time is not asked again in a loop.
func TestWaitForNoTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNodes(t)
		counters := everySecond(t)
		counters.amend = func(v *limit.Verdict) { v.Allowed, v.RetryAfter = false, 0 }
		n.start("a", counters)
		c := n.client("a")
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Second)
		defer cancel()
		began := time.Now()
		v, err := c.Wait(ctx, key(1))
		if asked := counters.times(key(1).Key); v.Allowed || err != nil || asked < 10 || asked > 100 {
			t.Errorf("%+v, %v after %v and %d checks", v, err, time.Since(began), asked)
		}
	})
}

func TestWaitIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNodes(t)
		counters := everySecond(t)
		n.start("a", counters)
		c := n.client("a")
		if _, err := c.Wait(t.Context(), key(1)); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(300*time.Millisecond, cancel)
		time.AfterFunc(500*time.Millisecond, c.Close)
		began := time.Now()
		v, err := c.Wait(ctx, key(1))
		if v.Allowed || v.RetryAfter != time.Second || err != context.Canceled || time.Since(began) != 300*time.Millisecond {
			t.Errorf("cancelled: %+v, %v after %v", v, err, time.Since(began))
		}
		v, err = c.Wait(t.Context(), key(1))
		if v.Allowed || err != client.ErrClosed || time.Since(began) != 500*time.Millisecond {
			t.Errorf("closed: %+v, %v after %v", v, err, time.Since(began))
		}
	})
}

// What may have been counted is not asked again, neither at first nor later.
func TestWaitDoesNotRepeatWhatMayHaveBeenCounted(t *testing.T) {
	for _, want := range []error{client.ErrTimeout, client.ErrLost} {
		for answered := range 2 {
			synctest.Test(t, func(t *testing.T) {
				n := newNodes(t)
				counters := everySecond(t)
				counters.rule.Jitter = false
				counters.amend = func(v *limit.Verdict) { v.Allowed, v.RetryAfter = false, time.Second }
				defer gateAfter(counters, answered)()
				n.start("a", counters)
				n.start("b", counters)
				c := n.client("a", "b")
				synctest.Wait()
				if want == client.ErrLost {
					time.AfterFunc(time.Duration(answered)*time.Second+500*time.Millisecond, func() { n.cut("a"); n.cut("b") })
				}
				v, err := c.Wait(t.Context(), key(1))
				if got := counters.times(key(1).Key); v.Allowed || !errors.Is(err, want) || got != answered+1 {
					t.Errorf("%+v, %v after %d checks; want %v", v, err, got, want)
				}
			})
		}
	}
}

// An admitted request waits for its turn; one whose turn comes after ctx ends is told
// so at once, and keeps it.
func TestWaitForATurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNodes(t)
		counters := counting(t, limit.Spec{Algorithm: limit.LeakyBucket, Limit: 1, Window: time.Second, Burst: 3})
		n.start("a", counters)
		c := n.client("a")
		began := time.Now()
		for i := range 2 {
			v, err := c.Wait(t.Context(), limit.Request{Key: "k"})
			if want := time.Duration(i) * time.Second; err != nil || !v.Allowed || v.Delay != 0 || v.ResetAfter != time.Second || time.Since(began) != want {
				t.Errorf("turn %d: %+v, %v after %v", i, v, err, time.Since(began))
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), 999*time.Millisecond)
		defer cancel()
		v, err := c.Wait(ctx, limit.Request{Key: "k"})
		if !v.Allowed || v.Delay != time.Second || err != context.DeadlineExceeded || time.Since(began) != time.Second {
			t.Errorf("too late: %+v, %v after %v", v, err, time.Since(began))
		}
		ctx, cancel = context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if v, err = c.Wait(ctx, limit.Request{Key: "k"}); !v.Allowed || err != context.Canceled || time.Since(began) != 2*time.Second {
			t.Errorf("cancelled: %+v, %v after %v", v, err, time.Since(began))
		}
		if v, err := c.Check(t.Context(), limit.Request{Key: "k"}); err != nil || !v.Allowed || v.Delay != 2*time.Second {
			t.Errorf("a check, which does not wait: %+v, %v", v, err)
		}
	})
}

// A crowd that is denied does not multiply its load, whatever the limit and its size:
// retries in vain stay within the budget, nobody waits beyond ctx, and the limit is
// used up all the same.
func TestWaitOfACrowd(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		spec := limit.Spec{
			Algorithm: rapid.SampledFrom([]limit.Algorithm{limit.TokenBucket, limit.FixedWindow, limit.SlidingWindowLog}).Draw(rt, "algorithm"),
			Limit:     rapid.Int64Range(1, 100).Draw(rt, "limit"), Window: 5 * time.Second,
		}
		reserve := rapid.IntRange(1, 50).Draw(rt, "reserve")
		crowd := rapid.IntRange(1, 300).Draw(rt, "crowd")
		timeout := time.Duration(rapid.IntRange(1, 20_000).Draw(rt, "ms")) * time.Millisecond
		var asked, allowed int
		var took time.Duration
		synctest.Test(t, func(t *testing.T) {
			counters := counting(t, spec)
			began := time.Now()
			allowed = waitTogether(t, counters, reserve, crowd, timeout)
			asked, took = counters.times("k"), time.Since(began)
		})
		if most := float64(crowd+allowed+reserve) + 10*took.Seconds() + float64(crowd)/5; float64(asked) > most {
			rt.Fatalf("%d callers asked %d times and %d were allowed; the most is %v", crowd, asked, allowed, most)
		}
		if allowed < min(int(spec.Limit), crowd) || took > timeout {
			rt.Fatalf("%d were allowed after %v", allowed, took)
		}
	})
}

// waitTogether says how many of a crowd were allowed.
func waitTogether(t *testing.T, c *counters, reserve, crowd int, timeout time.Duration) int {
	n := newNodes(t)
	n.start("a", c)
	cl := n.reserving(reserve, "a")
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	var allowed atomic.Int64
	var callers sync.WaitGroup
	for range crowd {
		callers.Go(func() {
			v, err := cl.Wait(ctx, limit.Request{Key: "k"})
			if err != nil {
				t.Error(err)
			}
			if v.Allowed {
				allowed.Add(1)
			}
		})
	}
	callers.Wait()
	return int(allowed.Load())
}

// A worker that only waits for its turns never uses the budget up.
func TestWaitOfAWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNodes(t)
		n.start("a", counting(t, limit.Spec{Algorithm: limit.TokenBucket, Limit: 1000, Window: time.Second, Burst: 1}))
		c := n.reserving(1, "a")
		for range 1000 {
			if v, err := c.Wait(t.Context(), limit.Request{Key: "k"}); err != nil || !v.Allowed {
				t.Fatalf("%+v, %v", v, err)
			}
		}
	})
}

// gateAfter holds up all checks but the first ones until it is opened.
func gateAfter(c *counters, first int) (open func()) {
	opened := make(chan struct{})
	c.before = func(req limit.Request) error {
		if c.times(req.Key) > first {
			<-opened
		}
		return nil
	}
	return sync.OnceFunc(func() { close(opened) })
}
