package driver

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/ringlimit/ringlimit/limit"
	"github.com/ringlimit/ringlimit/membership"
	"github.com/ringlimit/ringlimit/owner"
	"github.com/ringlimit/ringlimit/owner/transfer"
	"github.com/ringlimit/ringlimit/ring"
)

// BenchmarkDecide is a check of a counter that this node holds, with a standby
// that is a goroutine away: bare is the table alone, none a rule without copies,
// auto one whose replies do not wait. Their ratios are over bare.
func BenchmarkDecide(b *testing.B) {
	clock := limit.NewClock()
	d, stop := guarded(b, clock)
	defer stop()
	const counters = 10_000
	calls := map[string][]*owner.Call{}
	for name, durability := range map[string]limit.Durability{"none": limit.DurabilityNone, "auto": limit.DurabilityAuto} {
		r := rule(b, durability, limit.MaxLimit/4)
		for i := 0; len(calls[name]) < counters; i++ {
			if c := call(r, d.core.Ring().Partition, i); d.cfg.Table.Phase(c.Partition) == owner.Holding {
				calls[name] = append(calls[name], c)
			}
		}
	}
	ctx := context.Background()
	var v limit.Verdict
	decide := func(c *owner.Call) {
		now := clock.Now()
		if err := d.Decide(ctx, now, now+int64(time.Second), c, &v); err != nil || !v.Allowed {
			b.Fatal(v, err)
		}
	}
	took, rounds := map[string]time.Duration{}, 0
	b.ReportAllocs()
	for b.Loop() {
		for name, list := range calls {
			began := time.Now()
			for _, c := range list {
				decide(c)
			}
			took[name] += time.Since(began)
		}
		began := time.Now()
		for _, c := range calls["none"] {
			_ = d.cfg.Table.Decide(clock.Now(), c, &v)
		}
		took["bare"] += time.Since(began)
		rounds++
	}
	b.ReportMetric(float64(took["auto"])/float64(rounds*counters), "auto-ns")
	b.ReportMetric(float64(took["none"])/float64(took["bare"]), "none/ratio")
	b.ReportMetric(float64(took["auto"])/float64(took["bare"]), "auto/ratio")
}

// guarded is a driver whose copies are complete at another.
func guarded(b *testing.B, clock *limit.Clock) (d *Driver, stop func()) {
	type letter struct {
		from membership.Member
		m    transfer.Message
	}
	members := []membership.Member{
		{ID: "a", Boot: 1, Seq: 1, State: membership.Joining, Owner: true},
		{ID: "b", Boot: 2, Seq: 1, State: membership.Joining, Owner: true},
	}
	var all sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	boxes, nodes := map[membership.NodeID]chan letter{}, map[membership.NodeID]*Driver{}
	for _, m := range members {
		boxes[m.ID] = make(chan letter, 10_000)
	}
	for _, m := range members {
		nodes[m.ID] = New(Config{
			Self: m, Table: owner.NewTable(owner.Config{Partitions: ring.Defaults().Partitions, Now: clock.Now}),
			Ring: ring.Defaults(), Now: clock.Now,
			Send: func(to membership.NodeID, msg transfer.Message) {
				select {
				case boxes[to] <- letter{m, msg}:
				default:
				}
			},
			Dial: func(membership.NodeID) {}, Announce: func(membership.State, uint64) {}, Publish: func(*ring.Ring) {},
			Observer: &events{}, Logger: slog.New(slog.DiscardHandler),
		})
	}
	for id, n := range nodes {
		all.Go(func() { n.Run(ctx) })
		all.Go(func() {
			for {
				select {
				case l := <-boxes[id]:
					n.Receive(l.from.ID, l.from.Boot, l.m)
				case <-ctx.Done():
					return
				}
			}
		})
		n.Members(membership.NewView(members))
	}
	for _, n := range nodes {
		if err := n.Serve(ctx); err != nil {
			b.Fatal(err)
		}
	}
	for s := nodes["a"].Stats(); s.Acquiring+s.Unguarded > 0 || nodes["a"].cfg.Table.Stats().Holding > 600; s = nodes["a"].Stats() {
		time.Sleep(10 * time.Millisecond)
	}
	return nodes["a"], func() {
		cancel()
		all.Wait()
	}
}
