package rules

import (
	"errors"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/ringlimit/ringlimit/limit"
)

// sorted puts lines in order: tiers are rendered by name, not as in the file.
func sorted(lines string) string {
	return strings.Join(slices.Sorted(strings.SplitSeq(lines, "\n")), "\n")
}

// FuzzParse: no file does harm. What is refused is explained, and what is
// accepted can be rendered, read again, and matches the same each time.
func FuzzParse(f *testing.F) {
	example, err := os.ReadFile("../examples/rules.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{
		string(example), levels, "", "tiers:", "tiers: {a: []}\nclients: {c: {tier: a, rules: [{name: u, unlimited: true, priority: -3}]}, d: {tier: b}}", "tiers: {a: [{}]}", "tiers: {a: [&x {name: *x}]}", "? [a]\n: b", "tiers: !!map {a: []}",
		"tiers: {a: [{name: a, algorithm: token_bucket, limit: 1, window: 1s, burst: 2, durability: sync, by: [ip, attribute x], route_pattern: 'GET /{x...}'}]}",
		"- - - -", "[[[[", "a: |\n  b\n", "%YAML 1.2\n---\ntiers: {}\n", "tiers:\n  a:\n  - <<: {name: b}\n", "\"\\x00\": {", "tiers: {\"\": []}",
	} {
		f.Add([]byte(seed), "GET /v1/users/7")
	}
	f.Add([]byte("''''"+strings.Repeat(">", 2100)+"''''se"), "") // the parser's message repeats it
	f.Fuzz(func(t *testing.T, data []byte, route string) {
		s, err := Parse("rules.yaml", data)
		if err != nil {
			checkExplained(t, err)
			return
		}
		checkRendered(t, s)
		again := parse(t, string(data))
		for n := range s.entities() {
			req := limit.Request{Route: route, IP: netip.MustParseAddr("192.0.2.1")}
			if n.Kind == TierEntity {
				req.Tier = n.Name
			} else {
				req.Key = n.Name
			}
			checkEqual(t, req, matchAll(t, s, req), matchAll(t, again, req))
		}
	})
}

// checkEqual compares two answers to one request.
func checkEqual(t failer, req limit.Request, a, b []Winner) {
	t.Helper()
	equal := func(a, b Winner) bool {
		return ruleName(a) == ruleName(b) && string(a.Counter) == string(b.Counter) && a.Missing == b.Missing
	}
	if !slices.EqualFunc(a, b, equal) {
		t.Fatalf("%+v matches %+v, then %+v", req, a, b)
	}
}

func checkExplained(t *testing.T, err error) {
	var bad *Error
	if !errors.As(err, &bad) || len(bad.Problems) == 0 || len(bad.Problems) > maxProblems {
		t.Fatalf("Parse fails with %#v", err)
	}
	for _, p := range bad.Problems {
		if p.File != "rules.yaml" || p.Line < 1 || p.Column < 1 || p.Text == "" || len(p.Text) > 2000 || strings.Count(p.Field, "\n") > 0 {
			t.Fatalf("a problem is %#v", p)
		}
	}
}

// FuzzMatch: whatever a request says, it has one answer, and its counter's name
// can be read back.
func FuzzMatch(f *testing.F) {
	s := parse(f, levels+`
  mixed:
    - {name: compound, by: [client, ip, route, attribute a], algorithm: token_bucket, limit: 1, window: 1s}
    - {name: route, by: [route], algorithm: token_bucket, limit: 1, window: 1s}
`)
	f.Add("free", "k", "GET /v1/users/%37?x", "a", []byte{192, 0, 2, 1})
	f.Add("mixed", "a\x00b", "POST http://x//a/../%2f", "", []byte("\x20\x01\x0d\xb8000000000000"))
	f.Add("", "", "", "", []byte(nil))
	f.Add("gold", "k", `/v1%2Fusers/a"b`, "", []byte{1})
	f.Fuzz(func(t *testing.T, tier, key, route, attribute string, addr []byte) {
		ip, _ := netip.AddrFromSlice(addr)
		req := limit.Request{Key: key, Tier: tier, Route: route, IP: ip, Attributes: map[string]string{"a": attribute}}
		var m, again Matches
		again.names = make([]byte, 7, 4096)
		if s.Match(&req, &m) != nil {
			return
		}
		if err := s.Match(&req, &again); err != nil {
			t.Fatal(err)
		}
		checkEqual(t, req, m.Winners, again.Winners)
		for _, w := range m.Winners {
			if w.Missing != "" {
				continue
			}
			if d, err := DescribeCounter(w.Counter); err != nil || d.Of.Name+"/"+d.Rule != ruleName(w) {
				t.Fatalf("%q is described as %+v, %v", w.Counter, d, err)
			}
		}
	})
}

// FuzzDescribeCounter: what can be described is a name that we could have
// written, byte for byte.
func FuzzDescribeCounter(f *testing.F) {
	f.Add(appendPart(appendPrefix(appendPart([]byte(nil), "free"), "charges", limit.TokenBucket, []dimension{{kind: byClient, label: "client"}}), "cust_42"))
	f.Add(appendPart(appendPrefix(appendPart([]byte(nil), "free"), "x", limit.FixedWindow, []dimension{{kind: byIP, label: "ip"}}), "\xc0\x00\x02\x01"))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Fuzz(func(t *testing.T, name []byte) {
		if _, err := DescribeCounter(name); err != nil {
			return
		}
		var again []byte
		for rest := name; len(rest) > 0; {
			part, after, ok := cutPart(rest)
			if !ok {
				t.Fatalf("%q has a part that cannot be read", name)
			}
			again, rest = appendPart(again, part), after
		}
		if string(again) != string(name) {
			t.Fatalf("%q is written %q", name, again)
		}
	})
}
