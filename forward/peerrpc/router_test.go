package peerrpc

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ringlimit/ringlimit/forward"
	"github.com/ringlimit/ringlimit/limit"
	"github.com/ringlimit/ringlimit/membership"
	"github.com/ringlimit/ringlimit/owner"
	"github.com/ringlimit/ringlimit/ring"
)

// gateway is a whole node but for the gossip: what it believes about the others
// is what the test publishes.
type gateway struct {
	*forward.Router
	id    membership.NodeID
	table *owner.Table
	pool  *Pool
	net   *network

	failed, outages atomic.Int64
}

func (g *gateway) ForwardFailed(string)    { g.failed.Add(1) }
func (g *gateway) Forwarded(time.Duration) {}
func (g *gateway) Waited(time.Duration)    {}
func (g *gateway) RingMismatch()           {}

func (g *gateway) FallbackActive(active bool) {
	if active {
		g.outages.Add(1)
	}
}

// tableLocal decides at once.
type tableLocal struct{ table *owner.Table }

func (l tableLocal) Decide(_ context.Context, now, _ int64, c *owner.Call, v *limit.Verdict) error {
	return l.table.Decide(now, c, v)
}

func (l tableLocal) DecideGroup(_ context.Context, now, _ int64, calls []owner.Call, results []owner.Result) {
	l.table.DecideFrame(now, calls, results)
}

func (l tableLocal) DecideFrame(now, _ int64, calls []owner.Call, results []owner.Result, _ owner.Late, _ uint64) {
	l.table.DecideFrame(now, calls, results)
}

func newGateway(t *testing.T, n *network, id membership.NodeID) *gateway {
	g := &gateway{id: id, net: n, pool: newPool(t, n.dial),
		table: owner.NewTable(owner.Config{Partitions: testPartitions, Now: wall})}
	g.Router = forward.NewRouter(forward.Config{
		Self: id, Local: tableLocal{g.table}, Fallback: holding(1), Seed: 1, Now: wall, Observer: g, Logger: silent(),
	})
	g.serve(t)
	return g
}

func (g *gateway) serve(t *testing.T) {
	cfg := serverConfig(g.id, g.table)
	cfg.Decider = hinting(g.table, g.OwnerOf)
	serve(t, cfg, g.net.listen(string(g.id)))
}

// believe makes the node's ring one of these nodes, in the order that a node
// does: gain, publish, lose, retain.
func (g *gateway) believe(t *testing.T, ids ...membership.NodeID) *ring.Ring {
	t.Helper()
	rg, err := ring.New(ring.Params{Partitions: testPartitions, VirtualNodes: 20, Load: 1.25}, ids)
	if err != nil {
		t.Fatal(err)
	}
	var members []membership.Member
	for _, id := range ids {
		members = append(members, membership.Member{ID: id, Boot: 1, Peer: string(id)})
	}
	view := membership.NewView(members)
	g.Publish(rg, g.id, func(id membership.NodeID) forward.Peer {
		m, _ := view.Find(id)
		return g.pool.Peer(m)
	})
	for p := range testPartitions {
		phase := owner.None
		if rg.Owner(p) == rg.Index(g.id) && rg.Index(g.id) >= 0 {
			phase = owner.Holding
		}
		g.table.SetPhase(p, phase)
	}
	g.pool.Retain(members)
	return rg
}

func (g *gateway) check(t *testing.T, rule *limit.Rule, name string) limit.Verdict {
	t.Helper()
	var v limit.Verdict
	c := owner.Call{Charge: limit.Charge{Counter: []byte(name), Rule: rule, Cost: 1}}
	if err := g.Decide(context.Background(), &c, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// nameWhere is a counter that one node owns in one ring, and another in another.
func nameWhere(t *testing.T, one *ring.Ring, is membership.NodeID, other *ring.Ring, was membership.NodeID) string {
	t.Helper()
	for i := range 10_000 {
		name := fmt.Sprint("counter-", i)
		p := one.Partition(owner.Seed(1).ID([]byte(name)).Hi)
		if one.Owner(p) == one.Index(is) && other.Owner(p) == other.Index(was) {
			return name
		}
	}
	t.Fatalf("no counter moves from %s to %s", was, is)
	return ""
}

// A node whose ring is behind is told by the node that it asks who owns the
// counter, and asks that one: nobody counts twice, and nothing is answered by
// on_failure.
func TestHintLeadsToTheOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		a, b, c := newGateway(t, n, "a"), newGateway(t, n, "b"), newGateway(t, n, "c")
		a.believe(t, "a", "b")
		now := b.believe(t, "a", "b")
		before := c.believe(t, "a", "b", "c")
		synctest.Wait()
		rule, name, start := tokens(t, 3), nameWhere(t, now, "b", before, "a"), time.Now()
		for i := range 4 {
			if v := c.check(t, rule, name); v.Allowed != (i < 3) || v.Source != limit.SourceForwarded {
				t.Errorf("check %d: %+v", i, v)
			}
		}
		if v := c.check(t, rule, name); v.Allowed || v.Source != limit.SourceDenyCache {
			t.Errorf("then: %+v", v)
		}
		if v := a.check(t, rule, name); v.Allowed || v.Source != limit.SourceForwarded {
			t.Errorf("at a: %+v", v)
		}
		if v := b.check(t, rule, name); v.Allowed || v.Source != limit.SourceOwner {
			t.Errorf("at b: %+v", v)
		}
		if x, y := a.table.Stats().Counters, b.table.Stats().Counters; x != 0 || y != 1 || time.Since(start) != 0 {
			t.Errorf("a has %d counters, b %d; it took %v", x, y, time.Since(start))
		}
		if a.failed.Load()+b.failed.Load()+c.failed.Load() != 0 {
			t.Error("a check failed")
		}
	})
}

// H55: the owner dies. Its counters are answered by on_failure within the
// deadline, by this node's share of the limit, each is counted, no goroutine is
// left behind; and when the owner is back, it decides again.
func TestH55OwnerDies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		a, b := newGateway(t, n, "a"), newGateway(t, n, "b")
		rg := a.believe(t, "a", "b")
		b.believe(t, "a", "b")
		synctest.Wait()
		rule, name := tokens(t, 100), nameWhere(t, rg, "b", rg, "b")
		if v := a.check(t, rule, name); v.Source != limit.SourceForwarded || v.Remaining != 99 {
			t.Fatalf("before: %+v", v)
		}
		before := runtime.NumGoroutine()
		n.forget("b")
		n.cut()
		admitted, died := 0, time.Now()
		for i := range 1000 {
			start := time.Now()
			v := a.check(t, rule, name)
			if took := time.Since(start); v.Source != limit.SourceFallback || took > forward.DefaultDeadline {
				t.Fatalf("check %d: %+v after %v", i, v, took)
			}
			if v.Allowed {
				admitted++
			}
		}
		// Each has looked for another owner until its deadline.
		share := 50 + int(50*time.Since(died)/time.Minute)
		if admitted < 50 || admitted > share || a.failed.Load() != 1000 || a.outages.Load() != 1 {
			t.Errorf("%d admitted of %d, %d counted in %d outages", admitted, share, a.failed.Load(), a.outages.Load())
		}
		if after := runtime.NumGoroutine(); after > before+2 {
			t.Errorf("%d goroutines, before %d", after, before)
		}
		b.serve(t)
		time.Sleep(maxPause)
		if v := a.check(t, rule, name); v.Source != limit.SourceForwarded || !v.Allowed {
			t.Errorf("after its return: %+v", v)
		}
	})
}
