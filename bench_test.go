package ringlimit

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/ringlimit/ringlimit/limit"
)

const benchRules = `
tiers:
  default:
    - {name: global, algorithm: token_bucket, limit: 1000000000, window: 1s}
`

// alone is a node that owns every counter, on free ports.
func alone(tb testing.TB) *Node {
	tb.Helper()
	n, err := Start(context.Background(), Config{
		Name: "alone", Rules: parseRules(tb, benchRules), Peer: "127.0.0.1:0", Gossip: "127.0.0.1:0",
	})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = n.Leave(context.Background()) })
	return n
}

func TestCheckOfOwnCounterAllocatesNothing(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector makes pools forget")
	}
	n, req := alone(t), Request{Key: "cust_42", Route: "POST /v1/charges"}
	ctx := t.Context()
	if a := testing.AllocsPerRun(1000, func() { _, _ = n.Check(ctx, req) }); a != 0 {
		t.Errorf("%v allocations, want 0", a)
	}
}

// BenchmarkCheckOwned compares Node.Check on a counter of this node with the
// least that any limiter has to do: read the clock, look a key up in a map and
// Take. ratio is ours over that; ratio-without-clock leaves the clock out of
// the floor.
func BenchmarkCheckOwned(b *testing.B) {
	const keys = 1000
	n, ctx := alone(b), context.Background()
	requests := make([]Request, keys)
	states := make(map[string]*limit.State, keys)
	for i := range requests {
		requests[i] = Request{Key: fmt.Sprintf("cust_%d", i), Route: "POST /v1/charges"}
		states[requests[i].Key] = new(limit.State)
	}
	rule := firstRule(n)
	for i := range requests { // every counter exists
		_, _ = n.Check(ctx, requests[i])
	}
	b.ReportAllocs()
	var check, clocked, bare time.Duration
	const round = 1000
	for b.Loop() {
		check += timed(round, func(i int) { _, _ = n.Check(ctx, requests[i%keys]) })
		clocked += timed(round, func(i int) {
			s := states[requests[i%keys].Key]
			*s, _ = rule.Take(*s, n.clock.Now(), 1)
		})
		now := n.clock.Now()
		bare += timed(round, func(i int) {
			s := states[requests[i%keys].Key]
			*s, _ = rule.Take(*s, now+int64(i), 1)
		})
	}
	per := float64(b.N) * round
	b.ReportMetric(float64(check)/per, "ns/check")
	b.ReportMetric(float64(clocked)/per, "ns/clock+map+take")
	b.ReportMetric(float64(bare)/per, "ns/map+take")
	b.ReportMetric(float64(check)/float64(clocked), "ratio")
	b.ReportMetric(float64(check)/float64(bare), "ratio-without-clock")
}

func timed(n int, f func(i int)) time.Duration {
	began := time.Now()
	for i := range n {
		f(i)
	}
	return time.Since(began)
}

func firstRule(n *Node) *limit.Rule {
	for r := range n.cfg.Rules.Rules() {
		return r
	}
	return nil
}

// BenchmarkCheckForwarded is a check that the other of two nodes decides, over
// loopback, by 64 callers.
func BenchmarkCheckForwarded(b *testing.B) {
	first := alone(b)
	second, err := Start(context.Background(), Config{
		Name: "second", Rules: parseRules(b, benchRules), Peer: "127.0.0.1:0", Gossip: "127.0.0.1:0", Join: []string{first.GossipAddr()},
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = second.Leave(context.Background()) })
	var keys []string
	for i := 0; len(keys) < 256; i++ {
		key := fmt.Sprintf("cust_%d", i)
		if l, err := second.Locate(context.Background(), Request{Key: key}); err == nil && l.Owner == "alone" {
			keys = append(keys, key)
		}
	}
	b.ReportAllocs()
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		for i := 0; pb.Next(); i++ {
			_, _ = second.Check(context.Background(), Request{Key: keys[i%len(keys)]})
		}
	})
}
