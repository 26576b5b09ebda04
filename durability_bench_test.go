package ringlimit

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ringlimit/ringlimit/limit"
)

// onLoopback is a node on free ports that joins the first of others.
func onLoopback(tb testing.TB, cfg Config, others ...*Node) *Node {
	tb.Helper()
	cfg.Peer, cfg.Gossip, cfg.Deadline = "127.0.0.1:0", "127.0.0.1:0", time.Second
	if len(others) > 0 {
		cfg.Join = []string{others[0].GossipAddr()}
	}
	n, err := Start(context.Background(), cfg)
	if err != nil {
		tb.Fatal(err)
	}
	return n
}

func leaveAll(tb testing.TB, nodes ...*Node) {
	var all sync.WaitGroup
	for _, n := range nodes {
		all.Go(func() {
			if err := n.Leave(context.Background()); err != nil {
				tb.Errorf("%s: %v", n.Name(), err)
			}
		})
	}
	all.Wait()
}

// BenchmarkDurability compares the throughput of forwarded checks, with 64
// callers, 10,000 keys and a limit of 1,000,000, by the rule's durability. The
// rounds alternate; auto/ratio and sync/ratio are over none. An iteration is one
// check of each. All three nodes share the machine's cores: copies are made
// where checks are decided.
func BenchmarkDurability(b *testing.B) {
	var text strings.Builder
	text.WriteString("tiers:\n  default:\n    - {name: x, algorithm: token_bucket, limit: 1, window: 1s}\n")
	tiers := []string{"none", "auto", "sync"}
	for _, d := range tiers {
		fmt.Fprintf(&text, "  %s:\n    - {name: all, algorithm: token_bucket, limit: 1000000, window: 1s, durability: %s}\n", d, d)
	}
	set := parseRules(b, text.String())
	one := onLoopback(b, Config{Name: "one", Rules: set})
	two := onLoopback(b, Config{Name: "two", Rules: set}, one)
	gateway := onLoopback(b, Config{Name: "gateway", Rules: set, Forwarder: true}, one)
	defer leaveAll(b, one, two, gateway)
	waitForCopies(b, one, two)

	const round = 64_000
	took := map[string]time.Duration{}
	for _, tier := range tiers {
		runForwarded(b, gateway, tier, round) // every counter exists, every path is warm
	}
	b.ResetTimer()
	for done := 0; done < b.N; done += round {
		for _, tier := range tiers {
			took[tier] += runForwarded(b, gateway, tier, round)
		}
	}
	b.StopTimer()
	rounds := float64((b.N + round - 1) / round)
	b.ReportMetric(rounds*round/took["none"].Seconds(), "none-checks/s")
	b.ReportMetric(took["none"].Seconds()/took["auto"].Seconds(), "auto/ratio")
	b.ReportMetric(took["none"].Seconds()/took["sync"].Seconds(), "sync/ratio")
}

// waitForCopies returns when every partition has a complete copy.
func waitForCopies(tb testing.TB, nodes ...*Node) {
	tb.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		left := 0
		for _, n := range nodes {
			s := n.driver.Stats()
			left += s.Acquiring + s.Unguarded
		}
		if left == 0 {
			return
		}
	}
	tb.Fatal("the copies are not complete")
}

// runForwarded makes so many checks with 64 callers.
func runForwarded(tb testing.TB, n *Node, tier string, checks int) time.Duration {
	const callers, keys = 64, 10_000
	var next, failed atomic.Int64
	began := time.Now()
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for i := next.Add(1); i <= int64(checks); i = next.Add(1) {
				v, err := n.Check(context.Background(), Request{Key: fmt.Sprintf("key-%d", i%keys), Tier: tier})
				if err != nil || v.Source != limit.SourceForwarded {
					failed.Add(1)
				}
			}
		})
	}
	all.Wait()
	if f := failed.Load(); f > 0 {
		tb.Errorf("%s: %d of %d checks were not decided by an owner", tier, f, checks)
	}
	return time.Since(began)
}
