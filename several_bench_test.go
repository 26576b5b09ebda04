package ringlimit

import (
	"context"
	"testing"
	"time"
)

const benchSeveral = `
tiers:
  default:
    - {name: one, algorithm: token_bucket, limit: 1000000000, window: 1s}
  two:
    - {name: one, algorithm: token_bucket, limit: 1000000000, window: 1s}
    - {name: two, algorithm: token_bucket, limit: 1000000000, window: 1s}
`

// BenchmarkCheckOfTwo is a check of two limits by one caller. Each ratio is to a
// check of one limit: where this node counts them, where one other node does, over
// loopback, and where each of two others counts one.
func BenchmarkCheckOfTwo(b *testing.B) {
	set := parseRules(b, benchSeveral)
	node := func(name string, others ...*Node) *Node {
		return onLoopback(b, Config{Name: name, Rules: set}, others...)
	}
	first := node("first")
	second := node("second", first)
	third := node("third", first, second)
	defer leaveAll(b, first, second, third)
	waitForCopies(b, first, second, third)
	far := keyOwned(b, third, "", "first")
	for _, run := range []struct {
		name     string
		one, two Request
	}{
		{"own", Request{Key: keyOwned(b, third, "", "third")}, Request{Key: keyOwned(b, third, "two", "third", "third"), Tier: "two"}},
		{"one-owner", Request{Key: far}, Request{Key: keyOwned(b, third, "two", "first", "first"), Tier: "two"}},
		{"two-owners", Request{Key: far}, Request{Key: keyOwned(b, third, "two", "first", "second"), Tier: "two"}},
	} {
		b.Run(run.name, func(b *testing.B) {
			const round = 100
			ask := func(req Request) time.Duration {
				return timed(round, func(int) { _, _ = third.Check(context.Background(), req) })
			}
			ask(run.one)
			ask(run.two)
			b.ReportAllocs()
			var one, two time.Duration
			for b.Loop() {
				one += ask(run.one)
				two += ask(run.two)
			}
			per := float64(b.N) * round
			b.ReportMetric(float64(one)/per, "ns/one")
			b.ReportMetric(float64(two)/per, "ns/two")
			b.ReportMetric(float64(two)/float64(one), "ratio")
		})
	}
}
