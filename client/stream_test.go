package client_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ringlimit/ringlimit/client"
	"github.com/ringlimit/ringlimit/limit"
)

// gate holds up the checks of the key "slow" until it is opened.
func gate(c *counters) (open func()) {
	opened := make(chan struct{})
	c.before = func(req limit.Request) error {
		if req.Key == "slow" {
			<-opened
		}
		return nil
	}
	return sync.OnceFunc(func() { close(opened) })
}

// ask makes a check in the background.
func ask(c *client.Client, req limit.Request) <-chan error {
	done := make(chan error, 1)
	go func() {
		_, err := c.Check(context.Background(), req)
		done <- err
	}()
	return done
}

// A rolling restart fails no call, and no call is counted twice.
func TestRollingRestartFailsNoCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNodes(t)
		counters := perMinute(t, 1e9)
		const callersAtOnce = 5
		names := []string{"a", "b", "c"}
		for _, name := range names {
			n.start(name, counters)
		}
		c := n.client(names...)
		ctx, stop := context.WithCancel(t.Context())
		var asked atomic.Int64
		var callers sync.WaitGroup
		for i := range callersAtOnce {
			callers.Go(func() {
				for ctx.Err() == nil {
					if _, err := c.Check(t.Context(), key(i)); err != nil {
						t.Errorf("after %d checks: %v", asked.Load(), err)
						return
					}
					asked.Add(1)
					time.Sleep(5 * time.Millisecond)
				}
			})
		}
		for _, name := range names {
			time.Sleep(1500 * time.Millisecond) // longer than the longest pause: the one before is back
			n.stop(name)
			time.Sleep(500 * time.Millisecond)
			n.start(name, counters)
		}
		stop()
		callers.Wait()
		counted := 0
		for i := range callersAtOnce {
			counted += counters.times(key(i).Key)
		}
		if int64(counted) != asked.Load() {
			t.Errorf("%d checks were made, and %d counted", asked.Load(), counted)
		}
	})
}

// What was in flight when a node broke off is lost, and is not sent again; what comes
// later goes to another node.
func TestBrokenConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNodes(t)
		one, two := perMinute(t, 10), perMinute(t, 10)
		open := gate(one)
		n.start("a", one)
		c := n.client("a", "b")
		synctest.Wait()
		slow := ask(c, limit.Request{Key: "slow"})
		synctest.Wait()
		n.start("b", two)
		n.cut("a")
		if err := <-slow; !errors.Is(err, client.ErrLost) {
			t.Errorf("in flight: %v", err)
		}
		time.Sleep(time.Second) // until b is found
		if _, err := c.Check(t.Context(), limit.Request{Key: "k"}); err != nil {
			t.Errorf("afterwards: %v", err)
		}
		open()
		if one.times("slow") != 1 || two.times("slow") != 0 || two.times("k") != 1 {
			t.Errorf("the lost one was asked for %d and %d times, the later one %d times", one.times("slow"), two.times("slow"), two.times("k"))
		}
	})
}

// While no node could be reached yet calls wait; when all are gone they do not.
func TestUnavailable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNodes(t)
		counters := perMinute(t, 10)
		c := n.client("a", "b")
		began := time.Now()
		if _, err := c.Check(t.Context(), limit.Request{Key: "k"}); !errors.Is(err, client.ErrUnavailable) {
			t.Errorf("without nodes: %v", err)
		}
		synctest.Wait()
		if _, err := c.Refund(t.Context(), limit.Request{Key: "k"}); !errors.Is(err, client.ErrUnavailable) {
			t.Errorf("without nodes: %v", err)
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("they waited %v", took)
		}
		n.start("b", counters)
		time.Sleep(time.Second + time.Millisecond) // the longest pause
		if _, err := c.Check(t.Context(), limit.Request{Key: "k"}); err != nil {
			t.Errorf("with a node: %v", err)
		}
	})
}

// Calls that are made before there is a connection go out with it.
func TestCallsWaitForTheFirstConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNodes(t)
		n.delay = 300 * time.Millisecond
		n.start("a", perMinute(t, 10))
		c := n.client("a")
		began := time.Now()
		if _, err := c.Check(t.Context(), limit.Request{Key: "k"}); err != nil || time.Since(began) != n.delay {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}

func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNodes(t)
		counters := perMinute(t, 10)
		open := gate(counters)
		defer open()
		n.start("a", counters)
		c := n.client("a")
		began := time.Now()
		_, err := c.Check(t.Context(), limit.Request{Key: "slow"})
		if !errors.Is(err, client.ErrTimeout) || !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second {
			t.Errorf("by default: %v after %v", err, time.Since(began))
		}
		began = time.Now()
		short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		_, err = c.Check(short, limit.Request{Key: "slow"})
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != 20*time.Millisecond {
			t.Errorf("with a context: %v after %v", err, time.Since(began))
		}
		began = time.Now()
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(30*time.Millisecond, cancel)
		_, err = c.Check(ctx, limit.Request{Key: "slow"})
		if !errors.Is(err, context.Canceled) || time.Since(began) != 30*time.Millisecond {
			t.Errorf("cancelled: %v after %v", err, time.Since(began))
		}
		if _, err := c.Check(t.Context(), limit.Request{Key: "k"}); err != nil {
			t.Errorf("the stream goes on: %v", err)
		}
	})
}

// What could not be sent within its time is not sent afterwards.
func TestOverdueCallsAreNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNodes(t)
		n.delay = 500 * time.Millisecond
		counters := perMinute(t, 10)
		n.start("a", counters)
		c := n.client("a")
		patient := ask(c, limit.Request{Key: "patient"})
		hasty, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if _, err := c.Check(hasty, limit.Request{Key: "hasty"}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the hasty one gets %v", err)
		}
		last := ask(c, limit.Request{Key: "last"})
		for _, done := range []<-chan error{patient, last} {
			if err := <-done; err != nil {
				t.Errorf("a patient one gets %v", err)
			}
		}
		if counters.times("hasty") != 0 || counters.times("patient") != 1 || counters.times("last") != 1 {
			t.Errorf("counted %v", counters.taken)
		}
	})
}

func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNodes(t)
		counters := perMinute(t, 10)
		open := gate(counters)
		defer open()
		n.start("a", counters)
		c := n.client("a")
		slow := ask(c, limit.Request{Key: "slow"})
		synctest.Wait()
		c.Close()
		if err := <-slow; !errors.Is(err, client.ErrLost) {
			t.Errorf("under way: %v", err)
		}
		if _, err := c.Check(t.Context(), limit.Request{Key: "k"}); !errors.Is(err, client.ErrClosed) {
			t.Errorf("afterwards: %v", err)
		}
		if _, err := c.CheckBatch(t.Context(), []limit.Request{{Key: "k"}}); !errors.Is(err, client.ErrClosed) {
			t.Errorf("a batch afterwards: %v", err)
		}
	})
}

// A node that hangs is not given calls without end.
func TestOverloaded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNodes(t)
		counters := perMinute(t, 10)
		open := gate(counters)
		n.start("a", counters)
		c := n.client("a")
		var refused, failed atomic.Int64
		var callers sync.WaitGroup
		const most = 16 << 10
		for range most + 100 {
			callers.Go(func() {
				switch _, err := c.Check(context.Background(), limit.Request{Key: "slow"}); {
				case errors.Is(err, client.ErrOverloaded):
					refused.Add(1)
				case err != nil:
					failed.Add(1)
				}
			})
		}
		synctest.Wait()
		open()
		callers.Wait()
		if refused.Load() != 100 || failed.Load() != 0 {
			t.Errorf("%d were refused, %d failed", refused.Load(), failed.Load())
		}
	})
}

// All nodes get their turn, also while one of them always owes an answer.
func TestSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNodes(t)
		all := map[string]*counters{"a": perMinute(t, 1e9), "b": perMinute(t, 1e9), "c": perMinute(t, 1e9)}
		for name, c := range all {
			defer gate(c)()
			n.start(name, c)
		}
		c := n.client("a", "b", "c")
		synctest.Wait() // until all are connected
		slow := ask(c, limit.Request{Key: "slow"})
		synctest.Wait()
		const calls = 6000
		for range calls {
			if _, err := c.Check(t.Context(), limit.Request{Key: "k"}); err != nil {
				t.Fatal(err)
			}
		}
		for name, c := range all {
			if got := c.times("k"); got < calls/10 {
				t.Errorf("%s got %d of %d calls", name, got, calls)
			}
		}
		<-slow
	})
}
