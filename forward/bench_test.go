package forward

import (
	"context"
	"syscall"
	"testing"
	"time"

	"github.com/ringlimit/ringlimit/limit"
	"github.com/ringlimit/ringlimit/membership"
	"github.com/ringlimit/ringlimit/owner"
)

// BenchmarkDecideHere is what routing adds to a counter that this node owns:
// table-x compares with the owner's table, given the counter's hash.
func BenchmarkDecideHere(b *testing.B) {
	f := newFixture(b, func(c *Config) { c.Now = limit.NewClock().Now })
	f.publish(b, map[membership.NodeID]Peer{other: nil})
	ch := limit.Charge{Counter: f.nameOf(b, self), Rule: tokens(b, 1e9), Cost: 1}
	call := owner.Call{ID: owner.Seed(1).ID(ch.Counter), Charge: ch}
	call.Partition, _ = f.routes.Load().locate(call.ID.Hi)
	b.ReportAllocs()
	var v limit.Verdict
	for b.Loop() {
		if err := f.Router.Decide(context.Background(), &call, &v); err != nil {
			b.Fatal(err)
		}
	}
	routed := b.Elapsed()
	start := time.Now()
	for range b.N {
		if err := f.local.Decide(f.cfg.Now(), &call, &v); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(routed)/float64(time.Since(start)), "table-x")
}

// BenchmarkDenyCache is a client who is over the limit of another node's
// counter, on all cores. cpu-ns is processor time a check, on whatever core;
// clock-x compares it with reading the clock, which is part of it.
func BenchmarkDenyCache(b *testing.B) {
	clock := limit.NewClock()
	f := newFixture(b, func(c *Config) { c.Now = clock.Now })
	f.publish(b, map[membership.NodeID]Peer{other: peerFunc(func(context.Context, *owner.Call, int64) (limit.Verdict, error) {
		return limit.Verdict{RetryAfter: time.Hour}, nil
	})})
	name, rule := f.nameOf(b, other), tokens(b, 1)
	b.ReportAllocs()
	used := processors()
	b.RunParallel(func(pb *testing.PB) {
		call := owner.Call{Charge: limit.Charge{Counter: name, Rule: rule, Cost: 1}}
		var v limit.Verdict
		for pb.Next() {
			if err := f.Router.Decide(context.Background(), &call, &v); err != nil || v.Allowed {
				b.Errorf("%+v, %v", v, err)
				return
			}
		}
	})
	used = processors() - used
	clocked := processors()
	for range b.N {
		clock.Now()
	}
	clocked = processors() - clocked
	b.ReportMetric(float64(used)/float64(b.N), "cpu-ns")
	b.ReportMetric(float64(used)/float64(max(1, clocked)), "clock-x")
}

// processors is what the process has used, user and system.
func processors() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
