package httpfront

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ringlimit/ringlimit/limit"
)

func TestIdentityErrors(t *testing.T) {
	tests := []struct {
		config IdentityConfig
		want   string
	}{
		{IdentityConfig{Key: []string{"ip", "cookie:x"}}, `identity.key[1]: "cookie:x" is unknown; it must be header:NAME or ip`},
		{IdentityConfig{Key: []string{"header:"}}, `identity.key[0]: names no header`},
		{IdentityConfig{Key: []string{"header:X Key"}}, `identity.key[0]: "X Key" is not a header's name; it may hold letters, digits and -`},
		{IdentityConfig{Key: []string{"header:X-Key", "header:x-key"}}, `identity.key[1]: "header:x-key" is in the list twice`},
		{IdentityConfig{Key: []string{"header:host"}}, `identity.key[0]: Host belongs to the connection and cannot be used here`},
		{IdentityConfig{Missing: "skip"}, `identity.missing: "skip" is unknown; it must be deny or allow`},
		{IdentityConfig{TrustedProxies: []string{"10.0.0.0/8", "10.0.0.1"}}, `identity.trusted_proxies[1]: "10.0.0.1" is an address; the network of this address alone is 10.0.0.1/32`},
		{IdentityConfig{TrustedProxies: []string{"10.0.0.1/8"}}, `identity.trusted_proxies[0]: "10.0.0.1/8" has bits set beyond its length; the network is 10.0.0.0/8`},
		{IdentityConfig{TrustedProxies: []string{"proxy"}}, `identity.trusted_proxies[0]: "proxy" is not a network; write it like 10.0.0.0/8 or 2001:db8::/32`},
		{IdentityConfig{TrustedProxies: []string{"::ffff:10.0.0.0/104"}}, `identity.trusted_proxies[0]: "::ffff:10.0.0.0/104" is an IPv4 network in IPv6 clothing; write it like 10.0.0.0/8`},
		{IdentityConfig{IPv6Prefix: 129}, `identity.ipv6_prefix: is 129; it must be from 1 to 128`},
		{IdentityConfig{IPv6Prefix: -1}, `identity.ipv6_prefix: is -1; it must be from 1 to 128`},
		{IdentityConfig{Tier: "X:Tier"}, `identity.tier: "X:Tier" is not a header's name; it may hold letters, digits and -`},
		{IdentityConfig{Route: []string{"X-Original-URI"}}, `identity.route[0]: "X-Original-URI" must be two headers, that of the method and that of the URI`},
		{IdentityConfig{Route: []string{"X-A x-a"}}, `identity.route[0]: "X-A x-a" names one header for both the method and the URI`},
	}
	for _, test := range tests {
		id, err := NewIdentity(test.config)
		if err == nil || err.Error() != test.want {
			t.Errorf("%+v: %v, want %s", test.config, err, test.want)
		}
		var setting *SettingError
		if !errors.As(err, &setting) || id != nil {
			t.Errorf("%+v: %T, %v", test.config, err, id)
		}
	}
}

var proxied = IdentityConfig{TrustedProxies: []string{"10.0.0.0/8", "2001:db8:f::/48"}}

func TestKey(t *testing.T) {
	const client, proxy = "203.0.113.9:4000", "10.0.0.1:4000"
	only := IdentityConfig{Key: []string{"header:X-API-Key"}}
	tests := map[string]struct {
		config IdentityConfig
		addr   string
		lines  []string
		want   string
	}{
		"header first":                {IdentityConfig{}, client, []string{"X-API-Key: cust_42"}, "cust_42"},
		"else the address":            {IdentityConfig{}, client, nil, "ip:203.0.113.9"},
		"F44: an empty header":        {IdentityConfig{}, client, []string{"X-API-Key:  "}, "ip:203.0.113.9"},
		"F44: absent, nothing else":   {only, client, nil, ""},
		"order is the list's":         {IdentityConfig{Key: []string{"header:X-B", "header:X-A"}}, client, []string{"X-A: a", "X-B: b"}, "b"},
		"a Unix socket has none":      {IdentityConfig{}, "@", nil, ""},
		"F42: mapped IPv4":            {IdentityConfig{}, "[::ffff:192.0.2.1]:80", nil, "ip:192.0.2.1"},
		"F42: a network of IPv6":      {IdentityConfig{}, "[2001:DB8:0:1:ffff::1]:80", nil, "ip:2001:db8:0:1::"},
		"F42: its neighbour":          {IdentityConfig{}, "[2001:db8:0:1::2]:80", nil, "ip:2001:db8:0:1::"},
		"F42: the next network":       {IdentityConfig{}, "[2001:db8:0:2::2]:80", nil, "ip:2001:db8:0:2::"},
		"F42: a prefix of 56":         {IdentityConfig{IPv6Prefix: 56}, "[2001:db8:0:1ff::2]:80", nil, "ip:2001:db8:0:100::"},
		"F42: a prefix of 128":        {IdentityConfig{IPv6Prefix: 128}, "[2001:db8::2]:80", nil, "ip:2001:db8::2"},
		"F42: a zone":                 {IdentityConfig{IPv6Prefix: 128}, "[fe80::1%eth0]:80", nil, "ip:fe80::1"},
		"F43: nobody is trusted":      {IdentityConfig{}, client, []string{"X-Forwarded-For: 1.1.1.1"}, "ip:203.0.113.9"},
		"F43: not this one":           {proxied, client, []string{"X-Forwarded-For: 1.1.1.1"}, "ip:203.0.113.9"},
		"F43: what the proxy saw":     {proxied, proxy, []string{"X-Forwarded-For: 1.1.1.1, 198.51.100.7"}, "ip:198.51.100.7"},
		"F43: over several lines":     {proxied, proxy, []string{"X-Forwarded-For: 1.1.1.1", "X-Forwarded-For: 198.51.100.7, 10.1.1.1", "X-Forwarded-For: 10.2.2.2"}, "ip:198.51.100.7"},
		"F43: forged trusted address": {proxied, proxy, []string{"X-Forwarded-For: 10.9.9.9, 198.51.100.7"}, "ip:198.51.100.7"},
		"F43: proxies alone":          {proxied, proxy, []string{"X-Forwarded-For: 10.9.9.9, 10.8.8.8"}, "ip:10.9.9.9"},
		"F43: IPv6 proxies":           {proxied, "[2001:db8:f::1]:80", []string{"X-Forwarded-For: 2001:db8:5::1, 2001:db8:f:9::1"}, "ip:2001:db8:5::"},
		"F43: mapped proxies":         {proxied, "[::ffff:10.0.0.1]:80", []string{"X-Forwarded-For: 1.1.1.1,::ffff:198.51.100.7,::ffff:10.0.0.2"}, "ip:198.51.100.7"},
		"F43: ports":                  {proxied, proxy, []string{"X-Forwarded-For: 1.1.1.1:1, 198.51.100.7:4711"}, "ip:198.51.100.7"},
		"F43: brackets":               {proxied, proxy, []string{"X-Forwarded-For: [2001:db8:5::1]:80, [2001:db8:f::1]"}, "ip:2001:db8:5::"},
		"F43: a proxy's own request":  {proxied, proxy, nil, "ip:10.0.0.1"},
		"F43: no address":             {proxied, proxy, []string{"X-Forwarded-For: 1.1.1.1, unknown, 10.3.3.3"}, "ip:10.3.3.3"},
		"F43: empty":                  {proxied, proxy, []string{"X-Forwarded-For: "}, "ip:10.0.0.1"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			for _, who := range []caller{gateway, anyone} {
				req, err := identity(t, test.config).request(from(test.addr, "GET", "/x", test.lines...), who, "/x")
				if err != nil || req.Key != test.want {
					t.Errorf("%q, %v; want %q", req.Key, err, test.want)
				}
			}
		})
	}
}

// A request whose key cannot be used is refused, never let through uncounted.
func TestUnusableKeys(t *testing.T) {
	for name, test := range map[string]struct {
		lines        []string
		field, right string
	}{
		"F40: over the bound":             {[]string{"X-API-Key: " + strings.Repeat("k", 513)}, "X-Api-Key", "at most 512"},
		"not UTF-8":                       {[]string{"X-API-Key: \xff"}, "X-Api-Key", "not valid UTF-8"},
		"two keys":                        {[]string{"X-API-Key: a", "X-API-Key: b"}, "X-Api-Key", "is there 2 times; once would be right"},
		"another's address":               {[]string{"X-API-Key: ip:192.0.2.1"}, "X-Api-Key", "must not begin with"},
		"routes that contradict":          {[]string{"X-Forwarded-Method: GET", "X-Forwarded-Uri: /cheap", "X-Original-Method: POST", "X-Original-URI: /dear"}, "X-Original-Uri", "contradicts"},
		"two routes":                      {[]string{"X-Forwarded-Method: GET", "X-Forwarded-Uri: /a", "X-Forwarded-Uri: /b"}, "X-Forwarded-Uri", "once"},
		"two tiers":                       {[]string{"X-Tier: free", "X-Tier: gold"}, "X-Tier", "once"},
		"a route over the bound":          {[]string{"X-Forwarded-Method: GET", "X-Forwarded-Uri: /" + strings.Repeat("a", 9000)}, "route", "at most 8192"},
		"a key of 512 bytes and one more": {[]string{"X-API-Key: " + strings.Repeat("é", 256) + "k"}, "X-Api-Key", "is 513 bytes long"},
	} {
		t.Run(name, func(t *testing.T) {
			c := limited(t, 3)
			cfg := config(c)
			cfg.Identity = identity(t, IdentityConfig{Tier: "X-Tier"})
			h := New(cfg)
			wantProblem(t, do(h, from("192.0.2.1:1", "GET", "/v1/authorize", test.lines...)), 400, test.field, test.right)
			wantProblem(t, do(h, from("192.0.2.1:1", "GET", "/v1/authorize?deny_status=403", test.lines...)), 403, test.field, test.right)
			if len(c.asked) != 0 {
				t.Errorf("asked for %q", c.keys())
			}
		})
	}
}

func TestRouteAndTier(t *testing.T) {
	const client, proxy = "203.0.113.9:4000", "10.0.0.1:4000"
	forwarded := []string{"X-Forwarded-Method: POST", "X-Forwarded-Uri: /v1/charges?x=1", "X-Tier: free"}
	original := []string{"X-Original-Method: PUT", "X-Original-URI: /v1/a%2Fb?x", "X-Tier: free"}
	tests := map[string]struct {
		addr  string
		who   caller
		lines []string
		route string
		tier  string
	}{
		"a gateway is believed":                   {client, gateway, forwarded, "POST /v1/charges", "free"},
		"nginx's headers; the path stays encoded": {client, gateway, original, "PUT /v1/a%2Fb", "free"},
		"a client is not":                         {client, anyone, forwarded, "GET /own%20path", ""},
		"a trusted proxy is":                      {proxy, anyone, forwarded, "POST /v1/charges", "free"},
		"both pairs, agreed":                      {proxy, gateway, append(slices.Clone(original), "X-Forwarded-Method: PUT", "X-Forwarded-Uri: /v1/a%2Fb"), "PUT /v1/a%2Fb", "free"},
		"half a pair is none":                     {proxy, gateway, []string{"X-Forwarded-Uri: /v1/charges", "X-Original-Method: PUT"}, "GET /own%20path", ""},
		"half a pair does not hide the next":      {proxy, gateway, append(slices.Clone(original), "X-Forwarded-Uri: /v1/charges"), "PUT /v1/a%2Fb", "free"},
		"none":                                    {proxy, gateway, nil, "GET /own%20path", ""},
	}
	config := proxied
	config.Tier = "X-Tier"
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := from(test.addr, "GET", "/own%20path?query", test.lines...)
			req, err := identity(t, config).request(r, test.who, r.URL.EscapedPath())
			if err != nil || req.Route != test.route || req.Tier != test.tier {
				t.Errorf("%q, %q, %v; want %q, %q", req.Route, req.Tier, err, test.route, test.tier)
			}
		})
	}
}

// Against an obvious model: of all hops, the last one is the connection; from
// there leftwards, the first that is not a proxy is the client.
func TestForwardedForModel(t *testing.T) {
	id := identity(t, proxied)
	rapid.Check(t, func(t *rapid.T) {
		hops := rapid.SliceOfN(rapid.SampledFrom([]string{"10.0.0.1", "10.0.0.2", "192.0.2.1", "198.51.100.1"}), 1, 8).Draw(t, "hops")
		want := 0
		for i := len(hops) - 1; i > 0; i-- {
			if !strings.HasPrefix(hops[i], "10.") {
				want = i
				break
			}
		}
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = hops[len(hops)-1] + ":1"
		for rest := hops[:len(hops)-1]; len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "line")
			r.Header.Add("X-Forwarded-For", strings.Join(rest[:n], rapid.SampledFrom([]string{",", ", ", " ,\t"}).Draw(t, "comma")))
			rest = rest[n:]
		}
		if got, _ := id.client(r); got.String() != hops[want] {
			t.Errorf("%v, want %s of %v", got, hops[want], hops)
		}
	})
}

// What stands in a forwarded header never leads to a panic, to a key that the
// checker refuses, or to an address that a stranger chose.
func FuzzIdentity(f *testing.F) {
	f.Add("10.0.0.1:1", "1.1.1.1, 10.0.0.2", "k", "GET", "/a?b", "free")
	f.Add("[fe80::1%x]:1", "[::ffff:1.2.3.4]:99999,,", "ip:x", "", "http://h?/", "")
	f.Add("203.0.113.9:1", "10.0.0.1", "\xff", "GET POST", "//a/../%zz", "\x00")
	id, _ := NewIdentity(IdentityConfig{TrustedProxies: proxied.TrustedProxies, Tier: "X-Tier"})
	f.Fuzz(func(t *testing.T, addr, hops, key, method, uri, tier string) {
		r := &http.Request{Method: "GET", RemoteAddr: addr, Header: http.Header{
			"X-Forwarded-For": {hops}, "X-Api-Key": {key}, "X-Forwarded-Method": {method}, "X-Forwarded-Uri": {uri}, "X-Tier": {tier},
		}}
		for _, who := range []caller{gateway, anyone} {
			req, err := id.request(r, who, "/")
			var input *limit.InputError
			if err != nil && !errors.As(err, &input) {
				t.Fatal(err)
			}
			if err != nil || req.Key == "" {
				continue
			}
			if err := req.Validate(); errors.As(err, &input) && input.Field == "key" {
				t.Fatalf("%q: %v", req.Key, err)
			}
			peer, perr := netip.ParseAddrPort(addr)
			if perr == nil && !id.trusts(peer.Addr().Unmap()) && req.IP != id.Network(peer.Addr().Unmap().WithZone("")) {
				t.Fatalf("%s is %v", addr, req.IP)
			}
		}
	})
}
