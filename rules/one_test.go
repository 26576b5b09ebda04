package rules

import (
	"errors"
	"strings"
	"testing"
)

// put is the tier free after PUTs, one after the other.
func put(t failer, s *Set, bodies ...string) *Set {
	t.Helper()
	for _, body := range bodies {
		canonical, err := ParseTierBody("free", []byte(body), bodyOf(s, "free"))
		if err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		s = changed(t, s, map[EntityName][]byte{tierName("free"): canonical})
	}
	return s
}

// bodyOf is the body that a tier has; nil: it is not there.
func bodyOf(s *Set, tier string) []byte {
	body, _ := s.Entity(tierName(tier))
	return body
}

// ruleOf is a rule as GET shows it, or "".
func ruleOf(s *Set, name string) string {
	body, _ := s.TierJSON("free")
	shown := readShown(body)
	if i, ok := shown.at[name]; ok {
		return string(shown.Rules[i])
	}
	return ""
}

// TestSetOneByPattern: in an incident somebody sets the limit of a route, and
// that is its limit then: no other rule stands beside it, and it counts on.
func TestSetOneByPattern(t *testing.T) {
	s := parse(t, `
tiers:
  free:
    - {name: all, algorithm: token_bucket, limit: 1, window: 1s}
    - {name: charges, route_pattern: POST /charges, by: [client, attribute region], priority: 2, on_missing: deny, on_failure: deny, durability: sync, retry_jitter: none, shadow: true, algorithm: leaky_bucket, limit: 1, burst: 7, window: 1s, delay: false}
    - {name: second, route_pattern: /a, algorithm: token_bucket, limit: 1, window: 1s}
    - {name: hour, route_pattern: /a, algorithm: token_bucket, limit: 1, window: 1h}
    - {name: open, route_pattern: /open, by: [ip], unlimited: true}
`)
	const limitFive = `"algorithm":"token_bucket","limit":5,"window_s":60`
	for _, tt := range []struct {
		name, rule string
		bodies     []string
	}{
		{"charges", `{"name":"charges","route_pattern":"POST /charges","by":["client","attribute region"],"priority":2,"algorithm":"token_bucket","limit":5,"window":"60s","burst":5,"on_failure":"deny","durability":"sync","on_missing":"deny","retry_jitter":"none"}`,
			[]string{`{"route_pattern":"POST /charges",` + limitFive + `}`}},
		{"charges", `{"name":"charges","route_pattern":"POST /charges","by":["ip"],"algorithm":"token_bucket","limit":5,"window":"60s","burst":5,"on_failure":"allow","durability":"sync","on_missing":"skip","retry_jitter":"none"}`,
			[]string{`{"route_pattern":"POST /charges","by":["ip"],"priority":0,"on_failure":"allow","on_missing":"skip",` + limitFive + `}`}},
		{"charges", `{"name":"charges","route_pattern":"POST /charges","by":["client","attribute region"],"priority":2,"unlimited":true}`,
			[]string{`{"route_pattern":"POST /charges","unlimited":true}`}},
		{"open", `{"name":"open","route_pattern":"/open","by":["ip"],"algorithm":"token_bucket","limit":5,"window":"60s","burst":5,"on_failure":"local","durability":"auto","on_missing":"skip","retry_jitter":"full"}`,
			[]string{`{"route_pattern":"/open",` + limitFive + `}`}},
		// named, it is the whole rule
		{"charges", `{"name":"charges","route_pattern":"/c","by":["client"],"algorithm":"token_bucket","limit":5,"window":"60s","burst":5,"on_failure":"local","durability":"auto","on_missing":"skip","retry_jitter":"full"}`,
			[]string{`{"name":"charges","route_pattern":"/c",` + limitFive + `}`}},
		// new, and then set again
		{"GET /b", `{"name":"GET /b","route_pattern":"GET /b","by":["client"],"algorithm":"fixed_window","limit":6,"window":"1s","on_failure":"deny","durability":"auto","on_missing":"skip","retry_jitter":"full"}`,
			[]string{`{"route_pattern":"GET /b","on_failure":"deny",` + limitFive + `}`, `{"route_pattern":"GET /b","algorithm":"fixed_window","limit":6,"window_s":1}`}},
		// of several the one so named
		{"POST /charges", `{"name":"POST /charges","route_pattern":"POST /charges","by":["ip"],"algorithm":"token_bucket","limit":5,"window":"60s","burst":5,"on_failure":"local","durability":"auto","on_missing":"skip","retry_jitter":"full"}`,
			[]string{`{"name":"POST /charges","route_pattern":"POST /charges","by":["ip"],"unlimited":true}`, `{"route_pattern":"POST /charges",` + limitFive + `}`}},
	} {
		next := put(t, s, tt.bodies...)
		if got := ruleOf(next, tt.name); got != tt.rule {
			t.Errorf("%q: the rule is\n%s\nwant\n%s", tt.bodies, got, tt.rule)
		}
		others := 5
		if ruleOf(s, tt.name) == "" {
			others++
		}
		if got := len(next.tiers["free"].rules); got != others {
			t.Errorf("%q: %d rules, want %d", tt.bodies, got, others)
		}
	}
}

func TestSetOneRefuses(t *testing.T) {
	s := parse(t, "tiers: {free: [{name: second, route_pattern: /a, algorithm: token_bucket, limit: 1, window: 1s}, {name: hour, route_pattern: /a, algorithm: token_bucket, limit: 1, window: 1h}]}")
	for _, tt := range []struct{ body, want string }{
		{`{"route_pattern":"/a",` + countTen + `}`, `tier/free:1:1: name: is missing, and several rules have the route_pattern: "second", "hour"; give the name`},
		{`{"route_pattern":"/ü",` + countTen + `}`, "name: is missing, and the route_pattern cannot stand for it, which is \"/ü\"; names are of printable ASCII"},
		{`{"route_pattern":"/` + strings.Repeat("a", 200) + `",` + countTen + `}`, "cannot stand for it, which is 201 bytes long"},
		{`{` + countTen + `}`, "tier/free:1:2: name: is missing; a rule is at least"},
		{`{"name":null,"route_pattern":"/b",` + countTen + `}`, "name: is empty; it must be text"},
		{`{"route_pattern":7,` + countTen + `}`, "route_pattern: is 7; it must be text"},
		{`{"route_pattern":"/{x}/{x}",` + countTen + `}`, `route_pattern: "/{x}/{x}" is no pattern`},
	} {
		if body, err := ParseTierBody("free", []byte(tt.body), bodyOf(s, "free")); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %s, error %v\nwant %s", tt.body, body, err, tt.want)
		}
	}
}

// A newer version may have written what this one cannot read. One rule among it
// would throw the others away; the whole tier may be replaced.
func TestSetOneRefusesAmongWhatItCannotRead(t *testing.T) {
	one, all := []byte(`{"name":"a",`+countTen+`}`), []byte(`{"rules":[{"name":"z",`+countTen+`}]}`)
	for _, current := range []string{`{"rules":[{"name":"a","colour":"red",` + countTen + `}]}`, `{"rules":[],"region":"eu"}`, `{"parts":[]}`, `[]`, `{`} {
		body, err := ParseTierBody("free", one, []byte(current))
		if _, ok := errors.AsType[*Error](err); !ok || !strings.Contains(err.Error(), `replace the whole tier with {"rules":[…]}`) {
			t.Errorf("among %s: %s, %v", current, body, err)
		}
		if _, err := ParseTierBody("free", all, []byte(current)); err != nil {
			t.Errorf("in the place of %s: %v", current, err)
		}
	}
}
