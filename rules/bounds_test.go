package rules

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/ringlimit/ringlimit/limit"
)

// numbered is n texts, each a format of its number, with commas between them.
func numbered(n int, format string) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf(format, i))
	}
	return strings.Join(all, ",")
}

// checkRefused expects a problem and nothing else.
func checkRefused(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %.400v\nwant %s", err, want)
	}
}

func tierBody(rules string) map[EntityName][]byte {
	return map[EntityName][]byte{tierName("free"): []byte(`{"rules":[` + rules + `]}`)}
}

// TestManyDimensions: as many dimensions as are allowed are all charged, and one
// more is refused.
func TestManyDimensions(t *testing.T) {
	const byAttribute = `{"name":"r%[1]d","by":["attribute a%[1]d"],` + countTen + `}`
	s := changed(t, new(Set), tierBody(numbered(MaxEntityDimensions, byAttribute)))
	attributes := map[string]string{}
	for i := range MaxEntityDimensions {
		attributes[fmt.Sprintf("a%d", i)] = "x"
	}
	found := matchAll(t, s, limit.Request{Tier: "free", Attributes: attributes})
	for i, w := range found {
		if want := fmt.Sprintf("r%d", i); w.Rule.Name != want {
			t.Errorf("limit %d is %s, want %s", i, w.Rule.Name, want)
		}
	}
	if len(found) != MaxEntityDimensions {
		t.Errorf("%d limits", len(found))
	}
	_, err := s.With(tierBody(numbered(MaxEntityDimensions+1, byAttribute)))
	checkRefused(t, err, "rules[32].by: is one dimension too many; the rules of a tier or client have at most 32 different ones")
	_, err = s.With(map[EntityName][]byte{clientName("c"): []byte(`{"rules":[` + numbered(MaxEntityDimensions+1, byAttribute) + `]}`)})
	checkRefused(t, err, "client/c:1:")
}

// TestManyTogether: a request may have to pass as many limits of a client, its tier and
// the default tier as are allowed, and no more; those that cannot apply together are
// not counted.
func TestManyTogether(t *testing.T) {
	body := func(of, n int, more string) []byte {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `,{"name":"r%d","shadow":%v,"by":["attribute a%d_%d"],`+countTen+`}`, i, i%MaxTies >= MaxTies/2, of, i/MaxTies)
		}
		return []byte(`{"rules":[` + b.String()[1:] + more + `]}`)
	}
	names := []EntityName{clientName("c"), tierName("free"), tierName(DefaultTier)}
	all, attributes := map[EntityName][]byte{}, map[string]string{}
	for of, name := range names {
		all[name] = body(of, MaxEntityLimits, "")
		for i := range MaxEntityLimits / MaxTies {
			attributes[fmt.Sprintf("a%d_%d", of, i)] = "x"
		}
	}
	s := changed(t, new(Set), all)
	if found := matchAll(t, s, limit.Request{Key: "c", Tier: "free", Attributes: attributes}); len(found) != limit.MaxLimits {
		t.Errorf("%d limits", len(found))
	}
	for of, name := range names {
		_, err := s.With(map[EntityName][]byte{name: body(of, MaxEntityLimits+1, "")})
		checkRefused(t, err, "rules[64]: is one rule too many that may apply to one request; at most 64 of a tier or client may")
		checkRefused(t, err, name.String())
		other := fmt.Sprintf(`,{"name":"other","by":["attribute a%d_0"],"priority":1,`+countTen+`}`, of)
		changed(t, s, map[EntityName][]byte{name: body(of, MaxEntityLimits, other)})
	}
}

// TestManyTies: as many rules as are allowed apply together, and one more is
// refused; unless it differs in pattern, dimension or priority.
func TestManyTies(t *testing.T) {
	const tie = `{"name":"r%d",` + countTen + `}`
	s := changed(t, new(Set), tierBody(numbered(MaxTies, tie)))
	if found := matchAll(t, s, limit.Request{Tier: "free"}); len(found) != MaxTies || found[15].Rule.Name != "r15" {
		t.Errorf("limits are %s", ruleNames(found))
	}
	_, err := s.With(tierBody(numbered(MaxTies+1, tie)))
	checkRefused(t, err, "rules[16]: is one rule too many of its route_pattern, by and priority; at most 16 apply together")
	for _, other := range []string{`"route_pattern":"/"`, `"by":["ip"]`, `"priority":1`} {
		next := changed(t, s, tierBody(numbered(MaxTies, tie)+`,{"name":"other",`+other+`,`+countTen+`}`))
		if found := matchAll(t, next, limit.Request{Tier: "free", Route: "GET /", IP: netip.MustParseAddr("192.0.2.1")}); found[len(found)-1].Rule.Name != "other" {
			t.Errorf("%s: limits are %s", other, ruleNames(found))
		}
	}
}

func TestManyTiers(t *testing.T) {
	const empty = `"t%d":[]`
	s := parse(t, `{"tiers":{`+numbered(MaxTiers, empty)+`}}`)
	_, err := Parse("rules.json", []byte(`{"tiers":{`+numbered(MaxTiers+1, empty)+`}}`))
	checkRefused(t, err, "tiers.t1000: is one too many; at most 1000 tiers are allowed")

	more, again := EntityName{TierEntity, "one-more"}, EntityName{TierEntity, "t0"}
	_, err = s.With(map[EntityName][]byte{more: []byte(`{"rules":[]}`)})
	checkRefused(t, err, "tiers:1:1: would be 1001; at most 1000 are allowed")
	changed(t, s, map[EntityName][]byte{more: []byte(`{"rules":[]}`), again: nil})
}

func TestManyClients(t *testing.T) {
	const some = `"c%d":{"rules":[]}`
	_, err := Parse("rules.json", []byte(`{"tiers":{"t":[]},"clients":{`+numbered(MaxClients+1, some)+`}}`))
	checkRefused(t, err, "clients.c100000: is one too many; at most 100000 clients are allowed")

	s := parse(t, `{"tiers":{"t":[]},"clients":{`+numbered(1, some)+`}}`)
	for i := range MaxClients {
		s.clients[fmt.Sprintf("c%d", i)] = s.clients["c0"]
	}
	_, err = s.With(map[EntityName][]byte{clientName("one-more"): []byte(`{"tier":"t"}`)})
	checkRefused(t, err, "clients:1:1: would be 100001; at most 100000 are allowed")
	changed(t, s, map[EntityName][]byte{clientName("one-more"): []byte(`{"tier":"t"}`), clientName("c7"): nil})
}

func TestManyBytes(t *testing.T) {
	long := strings.Repeat(" ", MaxBodyBytes)
	_, err := ParseClientBody("c", []byte(`{"rules":[]}`+long))
	checkRefused(t, err, "client/c:1:1: is 1048588 bytes long; at most 1048576 are allowed")
	_, err = ParseTierBody("free", []byte(`{"rules":[]}`+long), nil)
	checkRefused(t, err, "tier/free:1:1: is 1048588 bytes long")
	// short as it is written, too long with the defaults
	var b strings.Builder
	for i := range MaxRules {
		fmt.Fprintf(&b, `,{"name":"r%d","route_pattern":"/%d/%s","algorithm":"fixed_window","limit":1,"window":"1s"}`, i, i, strings.Repeat("a", 880))
	}
	_, err = ParseTierBody("free", []byte(`{"rules":[`+b.String()[1:]+`]}`), nil)
	checkRefused(t, err, "bytes long as JSON; at most 1048576 are allowed")
}

// TestClientsShare: clients with equal rules share them, but no counter, and are
// told apart when their limits are explained.
func TestClientsShare(t *testing.T) {
	const body = `{"rules":[{"name":"own",` + countTen + `}]}`
	s := changed(t, new(Set), map[EntityName][]byte{clientName("a"): []byte(body), clientName("b"): []byte(body)})
	s = changed(t, s, map[EntityName][]byte{clientName("c"): []byte(body)})
	if s.clients["a"].origin != s.clients["b"].origin || s.clients["a"].origin != s.clients["c"].origin {
		t.Error("equal rules are compiled for each client")
	}
	counters := map[string]string{}
	for _, id := range []string{"a", "b", "c"} {
		w := matchAll(t, s, limit.Request{Key: id})
		if other, taken := counters[string(w[0].Counter)]; taken {
			t.Errorf("%s and %s share a counter", id, other)
		}
		counters[string(w[0].Counter)] = id
		if d, err := DescribeCounter(w[0].Counter); err != nil || d.Of != clientName(id) {
			t.Errorf("the counter of %s is of %v, %v", id, d.Of, err)
		}
		if x, err := s.Explain(&limit.Request{Key: id}); err != nil || x.Client != id || x.Rules[0].Of != "client/"+id {
			t.Errorf("%s is explained as %+v, %v", id, x, err)
		}
	}
}

// TestWarningsAreNotShared: each client has its own, with its name.
func TestWarningsAreNotShared(t *testing.T) {
	const body = `{"rules":[{"name":"few","algorithm":"sliding_window_counter","limit":3,"window":"60s"}]}`
	s := changed(t, new(Set), map[EntityName][]byte{clientName("a"): []byte(body), clientName("b"): []byte(body)})
	if w := s.Warnings(); len(w) != 2 || !strings.HasPrefix(w[0], "client/a:") || !strings.HasPrefix(w[1], "client/b:") {
		t.Errorf("warnings %q", w)
	}
}

func TestClientsWithoutLimitAreWarnedOf(t *testing.T) {
	const file = `
tiers:
  free: []
  paid: [{name: p, algorithm: token_bucket, limit: 10, window: 60s}]
%s
clients:
  a: {tier: free}
  b: {tier: paid}
  c: {tier: free, rules: [{name: own, unlimited: true}]}
`
	want := `client/a: tier: "free" has no rules, and nor has the tier default: nothing limits the client`
	for standard, n := range map[string]int{"": 1, "  default: []": 1, "  default: [{name: d, algorithm: token_bucket, limit: 10, window: 60s}]": 0} {
		s := parse(t, fmt.Sprintf(file, standard))
		if w := s.Warnings(); len(w) != n || n > 0 && w[0] != want {
			t.Errorf("%s: warnings %q", standard, w)
		}
	}
}
