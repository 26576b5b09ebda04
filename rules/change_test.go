package rules

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ringlimit/ringlimit/limit"
)

const countTen = `"algorithm":"token_bucket","limit":10,"window":"60s"`

func tierName(name string) EntityName { return EntityName{TierEntity, name} }
func clientName(id string) EntityName { return EntityName{ClientEntity, id} }

// changed is With for changes that have to be fine.
func changed(t failer, s *Set, changes map[EntityName][]byte) *Set {
	t.Helper()
	next, err := s.With(changes)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return next
}

func TestWith(t *testing.T) {
	a := changed(t, new(Set), map[EntityName][]byte{
		tierName("free"):      []byte(`{"rules":[{"name":"all",` + countTen + `}]}`),
		clientName("c/1\x00"): []byte(`{"tier":"free"}`),
	})
	b := changed(t, a, map[EntityName][]byte{clientName("d"): []byte(`{"rules":[{"name":"own","unlimited":true}]}`)})
	if a.tiers["free"].origin != b.tiers["free"].origin {
		t.Error("a tier that did not change was compiled again")
	}
	if _, ok := a.ClientJSON("d"); ok {
		t.Error("the old Set has changed")
	}
	if got := ruleNames(matchAll(t, b, limit.Request{Key: "c/1\x00"})); got != "free/all" {
		t.Errorf("a client's tier gives it %q", got)
	}
	if got := ruleNames(matchAll(t, b, limit.Request{Key: "d", Tier: "free"})); got != "" {
		t.Errorf("an unlimited client has %q", got)
	}
	var names []string
	for n, body := range b.Entities() {
		names = append(names, n.String())
		if again := changed(t, b, map[EntityName][]byte{n: body}); again.of(n.Kind)[n.Name].origin != b.of(n.Kind)[n.Name].origin {
			t.Errorf("%v: its own canonical body is a change", n)
		}
	}
	if !slices.Equal(names, []string{"tier/free", "client/c/1\x00", "client/d"}) {
		t.Errorf("entities are %q", names)
	}
	c := changed(t, b, map[EntityName][]byte{clientName("c/1\x00"): nil, tierName("free"): nil})
	if got := string(c.LimitsJSON()); got != `{"tiers":{},"clients":{"d":{"rules":[{"name":"own","by":["client"],"unlimited":true}]}}}` {
		t.Errorf("what is left is %s", got)
	}
}

func TestWithRefuses(t *testing.T) {
	s := parse(t, "tiers: {free: [{name: a, algorithm: token_bucket, limit: 1, window: 1s}]}\nclients: {c: {tier: free}}")
	rule := func(fields string) string { return `{"rules":[{"name":"x",` + fields + `}]}` }
	tests := []struct {
		name       EntityName
		body, want string
	}{
		{tierName("free"), rule(`"algorithm":"token_bucket","limit":-5,"window":"1s"`), "tier/free:1:58: rules[0].limit: is -5; it must be an integer"},
		{tierName("free"), rule(countTen + `,"limit":1`), "rules[0].limit: stands twice"},
		{tierName("free"), rule(countTen + `,"colour":1`), "rules[0].colour: is no field of a rule"},
		{tierName("free"), rule(countTen + `,"window_s":60`), "rules[0].window_s: says the same as window"},
		{tierName("free"), rule(`"algorithm":"fixed_window","limit":1,"window_s":60,"window":"60s"`), "rules[0].window_s: says the same as window"},
		{tierName("free"), rule(`"algorithm":"fixed_window","limit":1,"window_s":60,"window":""`), "rules[0].window_s: says the same as window"},
		{tierName("free"), rule(`"algorithm":"fixed_window","limit":1,"window_s":0`), "rules[0].window_s: is 0; it must be a whole number from 1 to 3155760000"},
		{tierName("free"), rule(`"algorithm":"fixed_window","limit":1,"window_s":3155760001`), "rules[0].window_s: is 3155760001; it must be a whole number from 1"},
		{tierName("free"), rule(`"algorithm":"fixed_window","limit":1,"window_s":0.5`), "rules[0].window_s: is 0.5; it must be a whole number"},
		{tierName("free"), rule(`"unlimited":true,"limit":1`), "rules[0].limit: means nothing beside unlimited: true"},
		{tierName("free"), rule(countTen + `,"priority":2000000`), "rules[0].priority: is 2000000"},
		{tierName("free"), `{"rules":[]} x`, "tier/free:1:13: is not one JSON value here"},
		{tierName("free"), `{"rules":[{"name":"a",` + countTen + `},{"name":"a",` + countTen + `}]}`, `rules[1].name: "a" is the name of the rule at rules[0] already`},
		{tierName("free"), ``, "is not one JSON value here"},
		{tierName("free"), " \n ", "tier/free:2:2: is not one JSON value here"},
		{tierName("free"), `{"rules": `, "tier/free:1:11: is not one JSON value here"},
		{tierName("free"), strings.Repeat("[", 1000), "is nested too deep"},
		{tierName("frée"), `{"rules":[]}`, "names are of printable ASCII"},
		{clientName(""), `{"rules":[]}`, "is empty"},
		{clientName("d"), `{"tier":"gold"}`, `client/d:1:1: tier: "gold" is unknown; known are free`},
		{clientName("d"), `{}`, "says nothing"},
		{EntityName{"node", "x"}, `{}`, "is neither a tier nor a client"},
	}
	for _, tt := range tests {
		next, err := s.With(map[EntityName][]byte{tt.name: []byte(tt.body)})
		var bad *Error
		if !errors.As(err, &bad) || next != nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v, %s: error %v\nwant %s", tt.name, tt.body, err, tt.want)
		}
	}
	if _, err := s.With(map[EntityName][]byte{tierName("free"): nil}); err == nil || !strings.Contains(err.Error(), `tier/free:1:1: is the tier of "c" and 0 more clients`) {
		t.Errorf("a tier in use is deleted: %v", err)
	}
}

func TestWithLenient(t *testing.T) {
	s := parse(t, "tiers: {default: [{name: d, algorithm: token_bucket, limit: 1, window: 1s}], free: []}\nclients: {c: {tier: free}}")
	next, warnings := s.WithLenient(map[EntityName][]byte{tierName("free"): nil, tierName("new"): []byte(`{"rules":[{"name":"x","colour":1}]}`)})
	if len(warnings) < 2 || !strings.Contains(strings.Join(warnings, "\n"), `client/c: tier: "free" does not exist; the tier default applies`) || !strings.Contains(warnings[0], "left out") {
		t.Errorf("warnings %q", warnings)
	}
	if got := ruleNames(matchAll(t, next, limit.Request{Key: "c"})); got != "default/d" {
		t.Errorf("a client without its tier has %q", got)
	}
	if _, ok := next.TierJSON("new"); ok {
		t.Error("a body that cannot be read is there")
	}
	if again, warnings := next.WithLenient(map[EntityName][]byte{clientName("e"): []byte(`{"rules":[]}`)}); len(warnings) != 0 || len(again.Warnings()) != 1 {
		t.Errorf("later warnings %q, all %q", warnings, again.Warnings())
	}
}

// Two sides of a partition may together have too many tiers. Then those can be
// changed and deleted, and none can be added.
func TestTooManyTiersCanBeMadeFewer(t *testing.T) {
	merged := map[EntityName][]byte{}
	for i := range MaxTiers + 2 {
		merged[tierName("t"+strconv.Itoa(i))] = []byte(`{"rules":[]}`)
	}
	s, warnings := new(Set).WithLenient(merged)
	if len(s.tiers) != MaxTiers+2 {
		t.Fatal(len(s.tiers), warnings)
	}
	if _, err := s.With(map[EntityName][]byte{tierName("t0"): []byte(`{"rules":[{"name":"x",` + countTen + `}]}`)}); err != nil {
		t.Errorf("changing one: %v", err)
	}
	if _, err := s.With(map[EntityName][]byte{tierName("t0"): nil}); err != nil {
		t.Errorf("deleting one: %v", err)
	}
	if _, err := s.With(map[EntityName][]byte{tierName("new"): []byte(`{"rules":[]}`)}); err == nil || !strings.Contains(err.Error(), "at most 1000 are allowed") {
		t.Errorf("adding one: %v", err)
	}
}

func TestParseTierBody(t *testing.T) {
	s := parse(t, `tiers: {free: [{name: a, algorithm: token_bucket, limit: 1, window: 1s}, {name: b, algorithm: fixed_window, limit: 1, window: 1s}]}`)
	for _, tt := range []struct{ body, want string }{
		{`{"route_pattern":"POST /v1/charges","algorithm":"token_bucket","limit":5,"window_s":60,"burst":2}`, "a b POST /v1/charges"},
		{`{"name":"a",` + countTen + `}`, "a b"},
		{`{"rules":[{"name":"z",` + countTen + `}]}`, "z"},
		{`{"rules":[]}`, ""},
	} {
		body, err := ParseTierBody("free", []byte(tt.body), bodyOf(s, "free"))
		if err != nil {
			t.Errorf("%s: %v", tt.body, err)
			continue
		}
		var names []string
		for r := range changed(t, s, map[EntityName][]byte{tierName("free"): body}).Rules() {
			names = append(names, r.Name)
		}
		if got := strings.Join(names, " "); got != tt.want {
			t.Errorf("%s makes the rules %q, want %q", tt.body, got, tt.want)
		}
	}
	if _, err := ParseTierBody("free", []byte(`{"name":"a","algorithm":"token_bucket","limit":-1,"window_s":1}`), bodyOf(s, "free")); err == nil || !strings.Contains(err.Error(), "tier/free:1:48: limit: is -1") {
		t.Errorf("a bad rule: %v", err)
	}
}

func TestDiff(t *testing.T) {
	a := parse(t, "tiers: {free: [{name: a, algorithm: token_bucket, limit: 1, window: 1s}, {name: b, algorithm: token_bucket, limit: 1, window: 1s}], gone: []}")
	b := parse(t, "tiers: {free: [{name: a, algorithm: token_bucket, limit: 1, burst: 1, window: 2s, priority: 3}, {name: c, unlimited: true}]}\nclients: {x: {tier: free}}")
	var got []string
	for _, c := range Diff(a, b) {
		got = append(got, c.String())
	}
	want := []string{
		`tier/free: a.window: "1s" -> "2s"`, `tier/free: a.priority: added: 3`,
		`tier/free: c: added: {"name":"c","by":["client"],"unlimited":true}`,
		`tier/free: b: removed: {"name":"b","by":["client"],"algorithm":"token_bucket","limit":1,"window":"1s","burst":1,"on_failure":"local","durability":"auto","on_missing":"skip","retry_jitter":"full"}`,
		`tier/gone: removed: {"rules":[]}`, `client/x: added: {"tier":"free","rules":[]}`,
	}
	if !slices.Equal(got, want) || len(Diff(b, b)) != 0 {
		t.Errorf("changes are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// FuzzBodies: what is refused is explained, and what is accepted is canonical
// and can be put in force.
func FuzzBodies(f *testing.F) {
	for _, seed := range []string{`{"rules":[{"name":"x",` + countTen + `}]}`, `{"route_pattern":"GET /{x}",` + countTen + `}`, `{"tier":"free","rules":[]}`, `{"rules":[{"name":"u","unlimited":true,"by":["ip"],"priority":-1}]}`, `[`, `{"rules":null}`, `{"a":1}{`, "\"\xff\""} {
		f.Add([]byte(seed), "free")
	}
	f.Add([]byte(`{"route_pattern":"/b","limit":1,"algorithm":"leaky_bucket","window_s":1}`), "free")
	f.Add([]byte(`{"route_pattern":"/c","unlimited":true,"priority":1}`), "free")
	s := parse(f, `
tiers:
  free:
    - {name: a, algorithm: token_bucket, limit: 1, window: 1s}
    - {name: b, route_pattern: /b, unlimited: true}
    - {name: c, route_pattern: /c, by: [ip], on_failure: deny, on_missing: deny, algorithm: token_bucket, limit: 1, window: 1s}
    - {name: d1, route_pattern: /d, algorithm: token_bucket, limit: 1, window: 1s}
    - {name: d2, route_pattern: /d, algorithm: token_bucket, limit: 1, window: 1s}
`)
	f.Fuzz(func(t *testing.T, body []byte, name string) {
		if tier, err := ParseTierBody(name, body, bodyOf(s, name)); err == nil {
			checkCanonical(t, s, tierName(name), tier)
		}
		if client, err := ParseClientBody(name, body); err == nil && !strings.Contains(string(client), `"tier"`) {
			checkCanonical(t, s, clientName(name), client)
		}
	})
}

func checkCanonical(t failer, s *Set, n EntityName, body []byte) {
	t.Helper()
	if got, ok := changed(t, s, map[EntityName][]byte{n: body}).Entity(n); !ok || string(got) != string(body) {
		t.Fatalf("%s becomes %s", body, got)
	}
	if again, err := ParseEntityName(n.String()); err != nil || again != n {
		t.Fatalf("%q is read as %v, %v", n, again, err)
	}
}
