package ringlimit

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/time/rate"

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

// BenchmarkCheckOwned compares Node.Check on a counter of this node with the least
// that any limiter has to do: read the clock, look a key up in a map and Take; and with
// golang.org/x/time/rate, a limiter a key in a map behind a lock. ratio is ours over the
// first, ratio-without-clock leaves the clock out of it, and rate-x is how many times as
// long x/time/rate takes as we do. All is processor time of one goroutine.
func BenchmarkCheckOwned(b *testing.B) {
	for _, keys := range []int{1, 1000, 1_000_000} {
		b.Run(fmt.Sprintf("keys=%d", keys), func(b *testing.B) { benchOwned(b, keys) })
	}
}

func benchOwned(b *testing.B, keys int) {
	n, ctx := alone(b), context.Background()
	requests := make([]Request, keys)
	states := make(map[string]*limit.State, keys)
	limiters := map[string]*rate.Limiter{}
	var guard sync.RWMutex
	for i := range requests {
		requests[i] = Request{Key: fmt.Sprintf("cust_%d", i), Route: "POST /v1/charges"}
		states[requests[i].Key] = new(limit.State)
		limiters[requests[i].Key] = rate.NewLimiter(1e9, 1e9)
		_, _ = n.Check(ctx, requests[i]) // every counter exists
	}
	rule := firstRule(n)
	rand.Shuffle(keys, func(i, j int) { requests[i], requests[j] = requests[j], requests[i] })
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	b.ReportAllocs()
	var check, clocked, bare, others time.Duration
	const round = 1000
	for at := 0; b.Loop(); at += round {
		check += burned(round, func(i int) { _, _ = n.Check(ctx, requests[(at+i)%keys]) })
		clocked += burned(round, func(i int) {
			s := states[requests[(at+i)%keys].Key]
			*s, _ = rule.Take(*s, n.clock.Now(), 1)
		})
		now := n.clock.Now()
		bare += burned(round, func(i int) {
			s := states[requests[(at+i)%keys].Key]
			*s, _ = rule.Take(*s, now+int64(i), 1)
		})
		others += burned(round, func(i int) {
			guard.RLock()
			l := limiters[requests[(at+i)%keys].Key]
			guard.RUnlock()
			l.Allow()
		})
	}
	per := float64(b.N) * round
	b.ReportMetric(float64(check)/per, "ns/check")
	b.ReportMetric(float64(clocked)/per, "ns/clock+map+take")
	b.ReportMetric(float64(bare)/per, "ns/map+take")
	b.ReportMetric(float64(check)/float64(clocked), "ratio")
	b.ReportMetric(float64(check)/float64(bare), "ratio-without-clock")
	b.ReportMetric(float64(others)/float64(check), "rate-x")
}

// burned is the processor time that this thread takes to call f so often.
func burned(n int, f func(i int)) time.Duration {
	began := threadTime()
	for i := range n {
		f(i)
	}
	return threadTime() - began
}

func threadTime() time.Duration {
	const ofThread = 1 // RUSAGE_THREAD, which package syscall does not name
	var u syscall.Rusage
	if err := syscall.Getrusage(ofThread, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
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
