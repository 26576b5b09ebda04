package rules

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/ringlimit/ringlimit/limit"
)

// BenchmarkMatch reports, beside the time of a Match, its ratio to the look-up
// of the same request in an http.ServeMux of the same tier's patterns.
func BenchmarkMatch(b *testing.B) {
	for _, size := range []struct{ tiers, rules int }{{1, 10}, {1, 998}, {100, 10}, {100, 90}} {
		s, patterns := benchSet(b, size.tiers, size.rules)
		mux := newMux(patterns)
		for _, route := range []string{
			fmt.Sprintf("POST /v1/r%d/charges", size.rules-1), // a literal pattern
			fmt.Sprintf("GET /v1/r%d/users/42", size.rules/2), // a wildcard
			"GET /v2/reports/2026/11",                         // the subtree /v2/
			"GET /health",                                     // the rule without a pattern
		} {
			b.Run(fmt.Sprintf("tiers=%d/rules=%d/%s", size.tiers, size.rules, strings.ReplaceAll(route, "/", ".")), func(b *testing.B) {
				benchMatch(b, s, mux, &limit.Request{Key: "cust_42", Tier: "tier0", Route: route})
			})
		}
	}
}

func benchMatch(b *testing.B, s *Set, mux *http.ServeMux, req *limit.Request) {
	var m Matches
	b.ReportAllocs()
	for b.Loop() {
		if err := s.Match(req, &m); err != nil || len(m.Winners) == 0 {
			b.Fatal(m.Winners, err)
		}
	}
	method, path, _ := strings.Cut(req.Route, " ")
	hr := &http.Request{Method: method, Host: "example.com", URL: &url.URL{Path: path}}
	start := time.Now()
	for range b.N {
		mux.Handler(hr)
	}
	b.ReportMetric(float64(b.Elapsed())/float64(time.Since(start)), "mux/ratio")
}

// benchSet makes tiers of one rule without a pattern, one of a subtree, and the
// rest of literals and wildcards by halves.
func benchSet(b *testing.B, tiers, rules int) (*Set, []string) {
	var file strings.Builder
	file.WriteString("tiers:\n")
	var patterns []string
	for t := range tiers {
		patterns = []string{"/v2/"}
		for i := range rules {
			patterns = append(patterns, []string{fmt.Sprintf("POST /v1/r%d/charges", i), fmt.Sprintf("GET /v1/r%d/users/{id}", i)}[(i+rules/2)%2])
		}
		patterns[1+rules-1], patterns[1+rules/2] = fmt.Sprintf("POST /v1/r%d/charges", rules-1), fmt.Sprintf("GET /v1/r%d/users/{id}", rules/2)
		fmt.Fprintf(&file, "  tier%d:\n    - {name: all, algorithm: token_bucket, limit: 10, window: 60s}\n", t)
		for i, p := range patterns {
			fmt.Fprintf(&file, "    - {name: r%d, route_pattern: %q, algorithm: token_bucket, limit: 10, window: 60s}\n", i, p)
		}
	}
	return parse(b, file.String()), patterns
}
