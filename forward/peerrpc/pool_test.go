package peerrpc

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ringlimit/ringlimit/forward"
	"github.com/ringlimit/ringlimit/membership"
	"github.com/ringlimit/ringlimit/owner"
)

// A connection that is not retained answers what was asked on it, and then is
// closed: a node that has restarted may be the one at its other end.
func TestRetainLetsChecksFinish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rule := tokens(t, 1)
		for _, c := range []struct {
			comes, ends time.Duration
			err         error
		}{
			{10 * time.Millisecond, 10 * time.Millisecond, nil},
			{time.Hour, farewellTime, forward.ErrUnreachable}, // nobody waits for ever
		} {
			p := newPairWith(t, deferringConfig("owner", &deferring{table: knowing(rule), wait: func(*owner.Call) time.Duration { return c.comes }}))
			synctest.Wait()
			start := time.Now()
			done := make(chan error)
			go func() {
				_, err := p.check(rule, "k", 1, time.Minute)
				done <- err
			}()
			synctest.Wait()
			p.pool.Retain(nil)
			synctest.Wait() // it retires beside us
			if _, err := p.check(rule, "k", 1, time.Minute); err != forward.ErrAbsent || time.Since(start) != 0 {
				t.Errorf("asked afterwards: %v after %v", err, time.Since(start))
			}
			if err := <-done; err != c.err || time.Since(start) != c.ends {
				t.Errorf("asked before: %v after %v", err, time.Since(start))
			}
			p.pool.wg.Wait() // nothing is left of it
			if time.Since(start) != c.ends {
				t.Errorf("closed after %v", time.Since(start))
			}
		}
	})
}

// Closing the pool does not wait for what is under way.
func TestCloseCutsRetiredConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rule := tokens(t, 1)
		p := newPairWith(t, deferringConfig("owner", &deferring{table: knowing(rule), wait: func(*owner.Call) time.Duration { return time.Hour }}))
		synctest.Wait()
		start, done := time.Now(), make(chan error)
		for range 2 {
			go func() {
				_, err := p.pool.Peer(ownerMember).Check(context.Background(), callOf(rule, "k", 1), within(time.Minute))
				done <- err
			}()
			synctest.Wait()
			if p.pool.conns["owner"] == p.peer {
				p.pool.Retain(nil)
			}
		}
		p.pool.Close()
		for range 2 {
			if err := <-done; err != forward.ErrUnreachable || time.Since(start) != 0 {
				t.Errorf("%v after %v", err, time.Since(start))
			}
		}
	})
}

func TestPoolKeepsReplacesAndDropsPeers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, holding(testPartitions))
		if p.pool.Peer(ownerMember) != p.peer {
			t.Error("another connection to the same member")
		}
		later := ownerMember
		later.Boot++
		again := p.pool.Peer(later)
		if again == p.peer {
			t.Error("the same connection to another run")
		}
		if _, err := p.check(tokens(t, 1), "k", 1, time.Second); err != nil {
			t.Errorf("over the replaced connection, before its successor is known: %v", err)
		}
		p.pool.Retain([]membership.Member{later})
		synctest.Wait()
		if _, err := p.check(tokens(t, 1), "k", 1, time.Second); !errors.Is(err, forward.ErrAbsent) {
			t.Errorf("over the replaced connection, afterwards: %v", err)
		}
		moved := later
		moved.Peer = "owner:2"
		if p.pool.Peer(moved) == again {
			t.Error("the same connection to another address")
		}
		p.pool.Retain([]membership.Member{later})
		if n := len(p.pool.conns); n != 0 {
			t.Errorf("%d connections to where the view has nobody", n)
		}
		last := p.pool.Peer(later)
		p.pool.Retain([]membership.Member{later, {ID: "x"}})
		synctest.Wait()
		if _, err := last.Check(context.Background(), callOf(tokens(t, 1), "k", 1), within(time.Second)); err != nil {
			t.Errorf("a member in the view: %v", err)
		}
		p.pool.Retain(nil)
		synctest.Wait()
		if _, err := last.Check(context.Background(), callOf(tokens(t, 1), "k", 1), within(time.Second)); !errors.Is(err, forward.ErrAbsent) {
			t.Errorf("a member that is gone: %v", err)
		}
		p.pool.Close()
		if _, err := p.pool.Peer(later).Check(context.Background(), callOf(tokens(t, 1), "k", 1), within(time.Second)); !errors.Is(err, forward.ErrAbsent) {
			t.Errorf("from a closed pool: %v", err)
		}
	})
}
