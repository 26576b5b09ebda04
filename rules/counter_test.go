package rules

import (
	"bytes"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ringlimit/ringlimit/limit"
)

// F39: (a, b_c) and (a_b, c), (a, "") and ("", a) are separate counters.
func TestF39NoSeparatorGames(t *testing.T) {
	s := parse(t, tierOf("by: [attribute x, attribute y]"))
	names := map[string][2]string{}
	for _, v := range [][2]string{{"a", "b_c"}, {"a_b", "c"}, {"a", ""}, {"", "a"}, {"", ""}, {"a\x00b", "c"}, {"a", "\x00b\x01c"}, {"a\n", "b"}, {"a", "\nb"}} {
		name := string(match(t, s, limit.Request{Attributes: map[string]string{"x": v[0], "y": v[1]}}).Counter)
		if other, taken := names[name]; taken {
			t.Errorf("%q and %q share the counter %q", v, other, name)
		}
		names[name] = v
	}
}

// tuple is all that makes a counter what it is.
type tuple struct {
	tier, rule, algorithm string
	labels, values        []string
}

func drawTuple(t *rapid.T) tuple {
	word := rapid.SampledFrom([]string{"a", "b", "ab", "a_b", "b_c", "a b", "1"})
	value := rapid.OneOf(rapid.SampledFrom([]string{"", "a", "b", "ab", "\x01a", "\x00", "a\x01b"}), rapid.StringN(0, 3, 200))
	c := tuple{tier: word.Draw(t, "tier"), rule: word.Draw(t, "rule"), algorithm: rapid.SampledFrom([]string{"token_bucket", "fixed_window"}).Draw(t, "algorithm")}
	c.labels = rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"client", "attribute a", "attribute b", "attribute ab"}), 1, 3, rapid.ID[string]).Draw(t, "by")
	for _, label := range c.labels {
		v := value.Draw(t, "value")
		if label == "client" && v == "" {
			v = "a" // a request without a key does not come so far
		}
		c.values = append(c.values, v)
	}
	return c
}

// counter is the name that the tuple's counter gets from a rule file.
func (c tuple) counter(t *rapid.T) string {
	file := fmt.Sprintf("tiers: {%q: [{name: %q, algorithm: %s, limit: 10, window: 60s, by: [%s]}]}", c.tier, c.rule, c.algorithm, strings.Join(c.labels, ", "))
	s, err := Parse("rules.yaml", []byte(file))
	if err != nil {
		t.Fatalf("%v in %s", err, file)
	}
	req := limit.Request{Key: "other", Tier: c.tier, Attributes: map[string]string{}}
	for i, label := range c.labels {
		if attribute, ok := strings.CutPrefix(label, "attribute "); ok {
			req.Attributes[attribute] = c.values[i]
		} else {
			req.Key = c.values[i]
		}
	}
	return string(match(t, s, req).Counter)
}

func TestCountersAreDistinct(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawTuple(t), drawTuple(t)
		equal := fmt.Sprintf("%q", a) == fmt.Sprintf("%q", b)
		if same := a.counter(t) == b.counter(t); same != equal {
			t.Fatalf("%+v and %+v: same counter %t", a, b, same)
		}
	})
}

func TestDescribeCounter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawTuple(t)
		d, err := DescribeCounter([]byte(c.counter(t)))
		if err != nil || d.Of != (EntityName{TierEntity, c.tier}) || d.Rule != c.rule || !slices.Equal(d.Values, c.values) {
			t.Fatalf("%+v is described as %+v, %v", c, d, err)
		}
	})
}

// F42: an address has one counter, however it is written.
func TestF42OneAddressOneCounter(t *testing.T) {
	s := parse(t, tierOf("by: [ip]"))
	counter := func(ip string) string {
		return string(match(t, s, limit.Request{IP: netip.MustParseAddr(ip)}).Counter)
	}
	for a, b := range map[string]string{
		"::ffff:192.0.2.1": "192.0.2.1",
		"2001:db8:0:0::1":  "2001:DB8::1",
		"fe80::1%eth0":     "fe80::1",
	} {
		if counter(a) != counter(b) {
			t.Errorf("%s and %s have two counters", a, b)
		}
	}
	if counter("192.0.2.1") == counter("192.0.2.2") || counter("2001:db8::1") == counter("2001:db8::2") {
		t.Error("two addresses share a counter")
	}
	for _, ip := range []string{"192.0.2.1", "2001:db8::1"} {
		if d, err := DescribeCounter([]byte(counter(ip))); err != nil || !slices.Equal(d.Values, []string{ip}) {
			t.Errorf("%s is described as %+v, %v", ip, d, err)
		}
	}
}

// F45: two rules with the same key count apart.
func TestF45RulesAreIndependent(t *testing.T) {
	s := parse(t, tierOf(`route_pattern: "/a"`, `route_pattern: "/b"`))
	a := match(t, s, limit.Request{Route: "GET /a"})
	b := match(t, s, limit.Request{Route: "GET /b"})
	if bytes.Equal(a.Counter, b.Counter) {
		t.Error("two rules share a counter")
	}
}

// TestWhatKeepsACounter: limit, window, burst, durability, pattern and what is
// done on failure may change without loss; algorithm, by, name and tier make another
// counter.
func TestWhatKeepsACounter(t *testing.T) {
	rule := func(tier, fields string) string {
		s := parse(t, "tiers: {"+tier+": [{"+fields+"}]}")
		return string(match(t, s, limit.Request{Tier: tier, Route: "GET /a", IP: netip.MustParseAddr("192.0.2.1")}).Counter)
	}
	base := rule("free", "name: a, algorithm: token_bucket, limit: 10, window: 60s")
	for _, fields := range []string{
		"name: a, algorithm: token_bucket, limit: 20, window: 60s",
		"name: a, algorithm: token_bucket, limit: 10, window: 1h",
		"name: a, algorithm: token_bucket, limit: 10, window: 60s, burst: 3",
		"name: a, algorithm: token_bucket, limit: 10, window: 60s, durability: sync",
		"name: a, algorithm: token_bucket, limit: 10, window: 60s, route_pattern: /a, on_failure: deny, on_missing: deny",
	} {
		if rule("free", fields) != base {
			t.Errorf("{%s} has another counter", fields)
		}
	}
	for _, fields := range []string{
		"name: b, algorithm: token_bucket, limit: 10, window: 60s",
		"name: a, algorithm: fixed_window, limit: 10, window: 60s",
		"name: a, algorithm: token_bucket, limit: 10, window: 60s, by: [ip]",
		"name: a, algorithm: token_bucket, limit: 10, window: 60s, by: [client, ip]",
	} {
		if rule("free", fields) == base {
			t.Errorf("{%s} has the same counter", fields)
		}
	}
	if rule("gold", "name: a, algorithm: token_bucket, limit: 10, window: 60s") == base {
		t.Error("another tier has the same counter")
	}
}

func TestByRoute(t *testing.T) {
	s := parse(t, `
tiers:
  default:
    - {name: user, by: [route], route_pattern: "GET /users/{id}", algorithm: token_bucket, limit: 10, window: 60s}
    - {name: rest, by: [route], algorithm: token_bucket, limit: 10, window: 60s}`)
	tests := []struct{ route, want string }{
		{"GET /users/1", "GET /users/{id}"},
		{"HEAD /users/2", "GET /users/{id}"},
		{"POST /a//b/?c", "POST /a/b/"},
		{"PUT /%61%2f%25", "PUT /a%2F%25"},
		{"/shop.v1.Orders/Create", "/shop.v1.Orders/Create"},
		{"charge.create", "charge.create"},
	}
	for _, tt := range tests {
		d, err := DescribeCounter(match(t, s, limit.Request{Route: tt.route}).Counter)
		if err != nil || !slices.Equal(d.Values, []string{tt.want}) {
			t.Errorf("route %q counts as %+v, %v; want %q", tt.route, d, err, tt.want)
		}
	}
}

func TestDescribeRefuses(t *testing.T) {
	good := appendPrefix(appendPart([]byte(nil), "t"), "r", limit.TokenBucket, []dimension{{kind: byIP, label: "ip"}})
	good = appendPart(good, "\xc0\x00\x02\x01")
	if _, err := DescribeCounter(good); err != nil {
		t.Fatal(err)
	}
	bad := map[string][]byte{
		"nothing":           nil,
		"an address cut":    append(slices.Clone(good[:len(good)-5]), 3, 1, 2, 3),
		"no value":          good[:len(good)-5],
		"trailing data":     append(slices.Clone(good), 0),
		"a long length":     append([]byte{0x81, 0x00}, good[1:]...),
		"an absurd length":  {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01},
		"another algorithm": appendPart(appendPart(appendPart(appendPart(nil, "t"), "r"), "magic"), ""),
		"no dimensions":     appendPart(appendPart(appendPart(appendPart(nil, "t"), "r"), "token_bucket"), ""),
		"another dimension": appendPart(appendPart(appendPart(appendPart(nil, "t"), "r"), "token_bucket"), "colour"),
	}
	for what, name := range bad {
		if _, err := DescribeCounter(name); err == nil {
			t.Errorf("%s: %q is described", what, name)
		}
	}
	for n := range good {
		if _, err := DescribeCounter(good[:n]); err == nil {
			t.Errorf("%q, cut short, is described", good[:n])
		}
	}
}
