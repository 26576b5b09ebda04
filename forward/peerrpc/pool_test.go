package peerrpc

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ringlimit/ringlimit/forward"
	"github.com/ringlimit/ringlimit/membership"
)

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
