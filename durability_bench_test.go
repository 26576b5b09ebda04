package ringlimit

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ringlimit/ringlimit/internal/floor"
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
// rounds alternate; auto/ratio and sync/ratio are over none, the cpu-ratios the same
// of processor time, which other work on the machine disturbs less. An iteration is one
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
	did := map[string]*floor.Run{}
	for _, tier := range tiers {
		runForwarded(b, gateway, tier, round) // every counter exists, every path is warm
		did[tier] = new(floor.Run)
	}
	b.ResetTimer()
	for done := 0; done < b.N; done += round {
		for _, tier := range tiers {
			did[tier].Add(runForwarded(b, gateway, tier, round))
		}
	}
	b.StopTimer()
	b.ReportMetric(did["none"].Rate(), "none-checks/s")
	for _, tier := range tiers[1:] {
		b.ReportMetric(did[tier].Rate()/did["none"].Rate(), tier+"/ratio")
		b.ReportMetric(did["none"].CPU()/did[tier].CPU(), tier+"/cpu-ratio")
	}
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
func runForwarded(tb testing.TB, n *Node, tier string, checks int) floor.Run {
	tb.Helper()
	keys := benchKeys(10_000)
	return measure(tb, 64, checks, func(_, i int) error {
		v, err := n.Check(context.Background(), Request{Key: keys[i%len(keys)], Tier: tier})
		if err == nil && v.Source != limit.SourceForwarded {
			err = fmt.Errorf("%s: %v decided", tier, v.Source)
		}
		return err
	})
}
