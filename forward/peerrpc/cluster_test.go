package peerrpc

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ringlimit/ringlimit/forward"
	"github.com/ringlimit/ringlimit/limit"
	"github.com/ringlimit/ringlimit/membership"
	"github.com/ringlimit/ringlimit/owner"
	"github.com/ringlimit/ringlimit/owner/transfer"
)

// node is a table, its server and its ways to the other nodes. Even partitions
// belong to a, odd ones to b.
type node struct {
	id    membership.NodeID
	table *owner.Table
	peers map[membership.NodeID]forward.Peer
}

func ownerOf(partition int) (membership.NodeID, uint64) {
	return []membership.NodeID{"a", "b"}[partition%2], 9
}

func startNodes(t *testing.T, n *network) []*node {
	nodes := []*node{{id: "a"}, {id: "b"}, {id: "c"}}
	for _, nd := range nodes {
		nd.table = owner.NewTable(owner.Config{Partitions: testPartitions, Now: wall})
		for p := range testPartitions {
			if id, _ := ownerOf(p); id == nd.id {
				nd.table.SetPhase(p, owner.Holding)
			}
		}
		cfg := serverConfig(nd.id, nd.table)
		cfg.Decider = hinting(nd.table, ownerOf)
		serve(t, cfg, n.listen(string(nd.id)))
	}
	for _, nd := range nodes {
		pool := newPool(t, n.dial)
		nd.peers = map[membership.NodeID]forward.Peer{}
		for _, peer := range nodes {
			if peer != nd {
				nd.peers[peer.id] = pool.Peer(membership.Member{ID: peer.id, Boot: 1, Peer: string(peer.id)})
			}
		}
	}
	synctest.Wait()
	return nodes
}

// check decides here or one hop away.
func (nd *node) check(rule *limit.Rule, name string) (limit.Verdict, error) {
	c := callOf(rule, name, 1)
	to, _ := ownerOf(c.Partition)
	if to == nd.id {
		var v limit.Verdict
		err := nd.table.Decide(wall(), c, &v)
		return v, err
	}
	return nd.peers[to].Check(context.Background(), c, within(time.Second))
}

// Nodes that ask each other at the same time count each counter once.
func TestNodesAskEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes, rule := startNodes(t, newNetwork()), tokens(t, 100)
		var admitted [8]atomic.Int64
		var wg sync.WaitGroup
		for _, nd := range nodes {
			for range 20 {
				wg.Go(func() {
					for i := range 80 {
						if v, err := nd.check(rule, fmt.Sprint(i%len(admitted))); err != nil {
							t.Error(err)
						} else if v.Allowed {
							admitted[i%len(admitted)].Add(1)
						}
					}
				})
			}
		}
		wg.Wait()
		for i := range admitted {
			if n := admitted[i].Load(); n != 100 {
				t.Errorf("counter %d: %d admitted of 100", i, n)
			}
		}
	})
}

// H63: an exhausted key is denied with the same numbers wherever it is asked.
func TestH63SameNumbersEverywhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes, rule := startNodes(t, newNetwork()), tokens(t, 3)
		for i := range 4 {
			if v, err := nodes[i%3].check(rule, "k"); err != nil || v.Allowed != (i < 3) {
				t.Fatalf("check %d: %+v, %v", i, v, err)
			}
		}
		for _, nd := range nodes {
			v, err := nd.check(rule, "k")
			if want := (limit.Verdict{Limit: 3, RetryAfter: 20 * time.Second, ResetAfter: time.Minute}); err != nil || v != want {
				t.Errorf("at %s: %+v, %v; want %+v", nd.id, v, err, want)
			}
		}
	})
}

// A node asked for what it does not hold says who does, and counts nothing.
func TestWrongNodeHintsAtTheOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes, rule := startNodes(t, newNetwork()), tokens(t, 3)
		c := callOf(rule, "k", 1)
		right, _ := ownerOf(c.Partition)
		_, err := nodes[2].peers[map[membership.NodeID]membership.NodeID{"a": "b", "b": "a"}[right]].Check(context.Background(), c, within(time.Second))
		elsewhere, ok := errors.AsType[*transfer.NotMine](err)
		if !ok || *elsewhere != (transfer.NotMine{Hint: right, Ring: 9}) {
			t.Fatalf("the wrong node: %v", err)
		}
		if v, err := nodes[2].peers[elsewhere.Hint].Check(context.Background(), c, within(time.Second)); err != nil || v.Remaining != 2 {
			t.Errorf("where it hints: %+v, %v", v, err)
		}
	})
}
