package rules

import (
	"errors"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/ringlimit/ringlimit/limit"
)

const levels = `
tiers:
  default:
    - {name: all, algorithm: token_bucket, limit: 10, window: 60s}
    - {name: second, algorithm: token_bucket, limit: 10, window: 60s}
    - {name: star, route_pattern: "*", by: [attribute star], algorithm: token_bucket, limit: 10, window: 60s}
    - {name: charges, route_pattern: "POST /v1/charges", algorithm: token_bucket, limit: 10, window: 60s}
  free:
    - {name: v1, route_pattern: "/v1/", algorithm: token_bucket, limit: 10, window: 60s}
    - {name: user, route_pattern: "GET /v1/users/{id}", algorithm: token_bucket, limit: 10, window: 60s}
    - {name: me, route_pattern: "GET /v1/users/me", algorithm: token_bucket, limit: 10, window: 60s}
    - {name: root, route_pattern: "/v2/{$}", algorithm: token_bucket, limit: 10, window: 60s}
    - {name: rest, route_pattern: "/v3/{rest...}", algorithm: token_bucket, limit: 10, window: 60s}
    - {name: job, route_pattern: charge.create, algorithm: token_bucket, limit: 10, window: 60s}
    - {name: rpc, route_pattern: /shop.v1.Orders/Create, algorithm: token_bucket, limit: 10, window: 60s}
  any:
    - {name: plain, algorithm: token_bucket, limit: 10, window: 60s}
    - {name: star, route_pattern: "*", algorithm: token_bucket, limit: 10, window: 60s}
    - {name: slash, route_pattern: "/", algorithm: token_bucket, limit: 10, window: 60s}
  none: []
`

func TestLevelsAndPatterns(t *testing.T) {
	s := parse(t, levels)
	tests := []struct{ tier, route, want string }{
		{"", "", "default/all default/second"},
		{"default", "POST /v1/charges", "default/charges"},
		{"default", "POST /v1/charges/", "default/all default/second"},
		{"default", "GET /v1/charges", "default/all default/second"},
		{"default", "post /v1/charges", "default/all default/second"}, // methods are case-sensitive
		{"none", "POST /v1/charges", "default/charges"},
		{"none", "GET /", "default/all default/second"},

		{"free", "POST /v1/charges", "free/v1"}, // the tier's own level first, however general
		{"free", "GET /v1/users/7", "free/user"},
		{"free", "HEAD /v1/users/7", "free/user"},
		{"free", "POST /v1/users/7", "free/v1"},
		{"free", "GET /v1/users/me", "free/me"},
		{"free", "GET /v1/users/7/cards", "free/v1"},
		{"free", "GET /v1/users/", "free/v1"},
		{"free", "GET /v1", "free/v1"}, // ServeMux redirects to /v1/
		{"free", "GET /v2/", "free/root"},
		{"free", "GET /v2", "free/root"},
		{"free", "GET /v2/a", "default/all default/second"},
		{"free", "GET /v3/", "free/rest"},
		{"free", "GET /v3/a/b", "free/rest"},
		{"free", "charge.create", "free/job"},
		{"free", "charge.creates", "default/all default/second"},
		{"free", "/shop.v1.Orders/Create", "free/rpc"},
		{"free", "POST /shop.v1.Orders/Create", "free/rpc"},
		{"free", "", "default/all default/second"},

		{"any", "GET /x", "any/slash"},
		{"any", "x", "any/star"},
		{"any", "", "any/star"},
	}
	for _, tt := range tests {
		if got := ruleNames(matchAll(t, s, limit.Request{Tier: tt.tier, Route: tt.route})); got != tt.want {
			t.Errorf("tier %q, route %q: rule %q, want %q", tt.tier, tt.route, got, tt.want)
		}
	}
}

// TestSpellings: a path that ServeMux takes for another is limited like it.
func TestSpellings(t *testing.T) {
	s := parse(t, tierOf(`route_pattern: "POST /v1/charges"`, `route_pattern: "GET /v1/users/{id}"`, `route_pattern: "GET /files/a%2Fb"`))
	tests := []struct{ route, want string }{
		{"POST /v1/charges?expand=all", "default/r0"},
		{"POST //v1//charges", "default/r0"},
		{"POST /v1/./charges", "default/r0"},
		{"POST /v1/x/../charges", "default/r0"},
		{"POST /../v1/charges", "default/r0"},
		{"POST /v1/%63harges", "default/r0"},
		{"POST /v1/char%67es?a=/..", "default/r0"},
		{"POST http://api.example.com/v1/charges", "default/r0"},
		{"POST HTTPS://api.example.com:8443//v1/charges?x", "default/r0"},
		{"POST http://api.example.com", ""},
		{"POST http://api.example.com?/v1/charges", ""},
		{"POST ftp://api.example.com/v1/charges", ""},
		{"POST /v1%2Fcharges", ""}, // one segment
		{"GET /v1/users/a%2Fb", "default/r1"},
		{`GET /v1%2Fusers/a"b`, "default/r1"}, // net/url encodes this one anew
		{"GET /v1/users/ü", "default/r1"},
		{"GET /v1/users/%zz", "default/r1"},
		{"GET /files/a%2Fb", "default/r2"},
		{"GET /files/%61%2fb", "default/r2"},
		{"GET /files/a/b", ""},
		{"GET", ""},
		{"GET ", ""},
		{" /v1/users/7", ""},
	}
	for _, tt := range tests {
		if got := ruleName(match(t, s, limit.Request{Route: tt.route})); got != tt.want {
			t.Errorf("route %q: rule %q, want %q", tt.route, got, tt.want)
		}
	}
}

func TestUnknownTier(t *testing.T) {
	s := parse(t, levels)
	err := s.Match(&limit.Request{Key: "k", Tier: "gold"}, new(Matches))
	var input *limit.InputError
	if !errors.As(err, &input) || input.Field != "tier" || input.Problem != `"gold" is unknown; known are any, default, free, none` {
		t.Errorf("error %v", err)
	}

	var file strings.Builder
	file.WriteString("tiers:\n")
	for c := 'a'; c <= 'z'; c++ {
		file.WriteString("  " + string(c) + ": []\n")
	}
	err = parse(t, file.String()).Match(&limit.Request{Key: "k", Tier: strings.Repeat("ü", 4<<20)}, new(Matches))
	if err == nil || len(err.Error()) > 600 || !strings.HasSuffix(err.Error(), "known are a, b, c, d, e, f, g, h, i, j and 16 more") {
		t.Errorf("error %.700v", err)
	}
}

func TestNoDefaultTier(t *testing.T) {
	s := parse(t, "tiers: {free: [{name: a, algorithm: token_bucket, limit: 1, window: 1s, by: [ip]}]}")
	for _, req := range []limit.Request{{}, {Tier: "free"}} {
		if m := match(t, s, req); m.Rule != nil || m.Counter != nil || m.Missing != "" {
			t.Errorf("%+v matches %+v", req, m)
		}
	}
	if err := s.Match(&limit.Request{Key: "k", Tier: "default"}, new(Matches)); err == nil {
		t.Error("the default tier exists without being in the file")
	}
	var zero Set
	if m := match(t, &zero, limit.Request{Route: "GET /"}); m.Rule != nil {
		t.Errorf("the zero Set matches %+v", m)
	}
}

// F44: a rule keyed by what the request lacks does as configured, and never
// counts such requests together.
func TestF44MissingDimension(t *testing.T) {
	s := parse(t, `
tiers:
  default:
    - {name: fallback, by: [ip], algorithm: token_bucket, limit: 1, window: 1s}
  skip:
    - {name: tenant, by: [attribute tenant], route_pattern: "GET /a", algorithm: token_bucket, limit: 1, window: 1s}
    - {name: region, by: [client, attribute region], route_pattern: "GET /a", algorithm: token_bucket, limit: 1, window: 1s}
    - {name: below, by: [attribute zone], route_pattern: "/", algorithm: token_bucket, limit: 1, window: 1s}
  deny:
    - {name: tenant, by: [client, attribute tenant], on_missing: deny, algorithm: token_bucket, limit: 1, window: 1s}
  route:
    - {name: route, by: [route], on_missing: deny, algorithm: token_bucket, limit: 1, window: 1s}
`)
	ip := netip.MustParseAddr("192.0.2.1")
	with := func(name, value string) map[string]string { return map[string]string{name: value} }
	tests := []struct {
		req           limit.Request
		want, missing string
	}{
		{limit.Request{Tier: "skip", Route: "GET /a", Attributes: with("tenant", "t")}, "skip/tenant", ""},
		{limit.Request{Tier: "skip", Route: "GET /a", Attributes: with("tenant", "")}, "skip/tenant", ""}, // there, if empty
		{limit.Request{Tier: "skip", Route: "GET /a", Attributes: with("region", "eu")}, "skip/region", ""},
		{limit.Request{Tier: "skip", Route: "GET /a", Attributes: with("zone", "z")}, "skip/below", ""},
		{limit.Request{Tier: "skip", Route: "GET /a", IP: ip}, "default/fallback", ""},
		{limit.Request{Tier: "skip", Route: "GET /a"}, "", ""},
		{limit.Request{Tier: "deny", Attributes: with("tenant", "t")}, "deny/tenant", ""},
		{limit.Request{Tier: "deny", Attributes: with("tenants", "t")}, "deny/tenant", "attribute tenant"},
		{limit.Request{Tier: "route", Route: "GET /"}, "route/route", ""},
		{limit.Request{Tier: "route"}, "route/route", "route"},
	}
	for _, tt := range tests {
		m := match(t, s, tt.req)
		if ruleName(m) != tt.want || m.Missing != tt.missing {
			t.Errorf("%+v: rule %q, missing %q; want %q, %q", tt.req, ruleName(m), m.Missing, tt.want, tt.missing)
		}
		if counted := m.Counter != nil; counted != (tt.want != "" && tt.missing == "") {
			t.Errorf("%+v: counter %q", tt.req, m.Counter)
		}
	}
}

func TestMatchIsConcurrent(t *testing.T) {
	s := parse(t, levels)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			var m Matches
			for range 200 {
				err := s.Match(&limit.Request{Key: "k", Tier: "free", Route: "GET /v1//users/%37"}, &m)
				if err != nil || ruleNames(m.Winners) != "free/user" {
					t.Errorf("rules %q, error %v", ruleNames(m.Winners), err)
				}
			}
		})
	}
	wg.Wait()
}

func TestMatchDoesNotAllocate(t *testing.T) {
	s := parse(t, levels)
	var m Matches
	for _, req := range []limit.Request{
		{Tier: "free", Route: "GET /v1/users/7"},
		{Tier: "free", Route: "GET /v1"},
		{Tier: "free", Route: "HEAD /v9/a/b/c?d=e"},
		{Tier: "free", Route: "charge.create"},
		{Tier: "none", Route: "POST http://example.com/v1/charges"},
		{IP: netip.MustParseAddr("::ffff:192.0.2.1"), Attributes: map[string]string{"star": "x"}},
	} {
		req.Key = "cust_42"
		if n := testing.AllocsPerRun(100, func() { _ = s.Match(&req, &m) }); n != 0 {
			t.Errorf("%+v: %v allocations", req, n)
		}
	}
}

// TestShadow: a rule in shadow applies beside the enforced rule that it would
// replace, and lifts no limit.
func TestShadow(t *testing.T) {
	s := parse(t, `
tiers:
  default:
    - {name: all, algorithm: token_bucket, limit: 10, window: 60s}
  free:
    - {name: trial, algorithm: token_bucket, limit: 5, window: 60s, shadow: true}
`)
	w := matchAll(t, s, limit.Request{Tier: "free"})
	if got := ruleNames(w); got != "free/trial default/all" || !w[0].Rule.Shadow || w[1].Rule.Shadow {
		t.Errorf("limits are %q", got)
	}
}

// TestG47Compose: rules that are equal in level, priority and pattern all apply,
// and so do the winners of other dimensions.
func TestG47Compose(t *testing.T) {
	s := parse(t, `
tiers:
  default:
    - {name: address, by: [ip], algorithm: token_bucket, limit: 10, window: 60s}
  free:
    - {name: second, route_pattern: /a, algorithm: token_bucket, limit: 5, window: 1s}
    - {name: plain, algorithm: token_bucket, limit: 5, window: 1s}
    - {name: hour, route_pattern: /a, algorithm: token_bucket, limit: 1000, window: 1h}
clients:
  vip: {tier: free, rules: [{name: free, route_pattern: /a, unlimited: true}]}
`)
	ip := netip.MustParseAddr("192.0.2.1")
	for _, tt := range []struct {
		req  limit.Request
		want string
	}{
		{limit.Request{Tier: "free", Route: "GET /a", IP: ip}, "free/second free/hour default/address"},
		{limit.Request{Tier: "free", Route: "GET /b"}, "free/plain"},
		{limit.Request{Key: "vip", Route: "GET /a", IP: ip}, "default/address"},
		{limit.Request{Key: "vip", Route: "GET /b"}, "free/plain"},
	} {
		if got := ruleNames(matchAll(t, s, tt.req)); got != tt.want {
			t.Errorf("%+v has the limits %q, want %q", tt.req, got, tt.want)
		}
	}
}

func TestIdleRulesAreWarnedOf(t *testing.T) {
	s := parse(t, `
tiers:
  default:
    - {name: low, algorithm: token_bucket, limit: 10, window: 60s}
    - {name: high, priority: 1, algorithm: token_bucket, limit: 10, window: 60s}
    - {name: lift, by: [ip], unlimited: true}
    - {name: count, by: [ip], algorithm: token_bucket, limit: 10, window: 60s}
`)
	w := s.Warnings()
	if len(w) != 2 || !strings.Contains(w[0], `tiers.default[0]: never applies: "high" has`) || !strings.Contains(w[1], `tiers.default[2]: lifts no limit: "count" has`) {
		t.Errorf("warnings are %q", w)
	}
}
