package rules

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestRender(t *testing.T) {
	s := parse(t, `
tiers:
  free:
    - {name: "a \"b\"", route_pattern: "GET /<x>&/{id}", by: [client, attribute x], algorithm: token_bucket, limit: 10, window: 60s, on_missing: deny, retry_jitter: none}
    - {name: queue, algorithm: leaky_bucket, limit: 5, window: 500ms, burst: 3, delay: false, on_failure: deny, durability: none}
  default:
    - {name: monthly, algorithm: fixed_window, limit: 0, window: month}
    - {name: log, algorithm: sliding_window_log, limit: 7, window: 1h, durability: sync}
  empty: []
`)
	const (
		free = `{"rules":[` +
			`{"name":"a \"b\"","route_pattern":"GET /<x>&/{id}","by":["client","attribute x"],"algorithm":"token_bucket","limit":10,"window":"60s","burst":10,"on_failure":"local","durability":"auto","on_missing":"deny","retry_jitter":"none"},` +
			`{"name":"queue","by":["client"],"algorithm":"leaky_bucket","limit":5,"window":"500ms","burst":3,"delay":false,"on_failure":"deny","durability":"none","on_missing":"skip","retry_jitter":"full"}]}`
		standard = `{"rules":[` +
			`{"name":"monthly","by":["client"],"algorithm":"fixed_window","limit":0,"window":"month","timezone":"UTC","on_failure":"local","durability":"auto","on_missing":"skip","retry_jitter":"full"},` +
			`{"name":"log","by":["client"],"algorithm":"sliding_window_log","limit":7,"window":"1h","on_failure":"local","durability":"sync","on_missing":"skip","retry_jitter":"full"}]}`
		empty = `{"rules":[]}`
	)
	if got, want := string(s.LimitsJSON()), `{"tiers":{"default":`+standard+`,"empty":`+empty+`,"free":`+free+`}}`; got != want {
		t.Errorf("limits are\n%s\nwant\n%s", got, want)
	}
	for tier, want := range map[string]string{"free": free, "default": standard, "empty": empty} {
		if got, ok := s.TierJSON(tier); !ok || string(got) != want {
			t.Errorf("tier %s is %t\n%s\nwant\n%s", tier, ok, got, want)
		}
	}
	if got, ok := s.TierJSON("gold"); ok || got != nil {
		t.Errorf("a tier that is not there is %s", got)
	}
	if got := string(new(Set).LimitsJSON()); got != `{"tiers":{}}` {
		t.Errorf("the zero Set is %s", got)
	}
	checkRendered(t, s)
}

// checkRendered holds the JSON to its promise: rules in it have the rule file's
// fields, and mean the same.
func checkRendered(t failer, s *Set) {
	t.Helper()
	var doc struct {
		Tiers   map[string]struct{ Rules []json.RawMessage }
		Clients map[string]json.RawMessage
	}
	if err := json.Unmarshal(s.LimitsJSON(), &doc); err != nil {
		t.Fatalf("%v in %s", err, s.LimitsJSON())
	}
	tiers := map[string][]json.RawMessage{}
	for name, tier := range doc.Tiers {
		tiers[name] = tier.Rules
	}
	file := map[string]any{"tiers": tiers}
	if doc.Clients != nil {
		file["clients"] = doc.Clients
	}
	again, err := Parse("again.json", encode(file))
	if err != nil {
		t.Fatalf("what was rendered cannot be read: %v", err)
	}
	if got, want := string(again.LimitsJSON()), string(s.LimitsJSON()); got != want {
		t.Fatalf("read back it is\n%s\nwas\n%s", got, want)
	}
	var a, b strings.Builder
	for r := range s.Rules() {
		a.WriteString(r.Tier + "/" + r.Name + " " + string(r.Encode()) + "\n")
	}
	for r := range again.Rules() {
		b.WriteString(r.Tier + "/" + r.Name + " " + string(r.Encode()) + "\n")
	}
	if sorted(a.String()) != sorted(b.String()) {
		t.Fatalf("read back the rules are\n%s\nwere\n%s", b.String(), a.String())
	}
}
