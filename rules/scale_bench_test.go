package rules

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/ringlimit/ringlimit/limit"
)

// BenchmarkMatchScale is the promise of a large cluster: 1,000 rules in 100
// tiers and 10,000 clients with a rule of their own, each request of another
// client. It reports the ratio to the same requests where there are 10 rules in
// one tier and 10 clients.
func BenchmarkMatchScale(b *testing.B) {
	small, large := scaleSet(b, 1, 10, 10), scaleSet(b, 100, 10, 10_000)
	for _, c := range []struct {
		name    string
		clients int // that requests come from
		route   string
	}{
		{"same client", 1, "POST /v1/r4/charges"},
		{"10 clients", 10, "POST /v1/r4/charges"},
		{"all clients", 10_000, "POST /v1/r4/charges"},
		{"wildcard", 10, "GET /v1/r5/users/42"},
		{"no pattern", 10, "GET /health"},
	} {
		b.Run(strings.ReplaceAll(c.name, " ", "-"), func(b *testing.B) {
			const round = 10_000
			few, many := requests(b, small, c.route, min(c.clients, 10)), requests(b, large, c.route, c.clients)
			base, took := time.Duration(1<<62), time.Duration(1<<62)
			b.ReportAllocs()
			for range b.N/round + 1 {
				base = min(base, timeMatches(small, few, round))
				took = min(took, timeMatches(large, many, round))
			}
			b.ReportMetric(float64(took)/round, "ns/match")
			b.ReportMetric(float64(took)/float64(base), "10rules/ratio")
			b.ReportMetric(0, "ns/op") // of both together: says nothing
		})
	}
}

// requests are one of each client, which has two limits.
func requests(b *testing.B, s *Set, route string, clients int) []limit.Request {
	reqs := make([]limit.Request, clients)
	for i := range reqs {
		reqs[i] = limit.Request{Key: fmt.Sprintf("cust_%d", i), Route: route, IP: netip.MustParseAddr("192.0.2.1")}
		var m Matches
		if err := s.Match(&reqs[i], &m); err != nil || len(m.Winners) != 2 {
			b.Fatal(ruleNames(m.Winners), err)
		}
	}
	return reqs
}

// timeMatches times n matches. The least of several times is the one that other
// work on the machine has disturbed least.
func timeMatches(s *Set, reqs []limit.Request, n int) time.Duration {
	var m Matches
	start := time.Now()
	for i := range n {
		_ = s.Match(&reqs[i%len(reqs)], &m)
	}
	return time.Since(start)
}

// scaleSet has tiers of as many rules, one of them by address, and clients
// that have a tier and a rule of their own.
func scaleSet(b *testing.B, tiers, rules, clients int) *Set {
	changes := map[EntityName][]byte{}
	for t := range tiers {
		list := []string{`{"name":"rest","by":["ip"],"algorithm":"token_bucket","limit":10,"window":"60s"}`,
			`{"name":"all","by":["attribute never"],"algorithm":"token_bucket","limit":10,"window":"60s"}`}
		for i := range rules - len(list) {
			pattern := []string{"POST /v1/r%d/charges", "GET /v1/r%d/users/{id}"}[i%2]
			list = append(list, fmt.Sprintf(`{"name":"r%d","by":["ip"],"route_pattern":%q,"algorithm":"token_bucket","limit":10,"window":"60s"}`, i, fmt.Sprintf(pattern, i)))
		}
		changes[EntityName{TierEntity, fmt.Sprintf("tier%d", t)}] = []byte(`{"rules":[` + strings.Join(list, ",") + `]}`)
	}
	for c := range clients {
		body := fmt.Sprintf(`{"tier":"tier%d","rules":[{"name":"own","algorithm":"token_bucket","limit":10,"window":"60s"}]}`, c%tiers)
		changes[EntityName{ClientEntity, fmt.Sprintf("cust_%d", c)}] = []byte(body)
	}
	s, err := new(Set).With(changes)
	if err != nil {
		b.Fatal(err)
	}
	return s
}
