package rules

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ringlimit/ringlimit/limit"
)

// TestPlansAreShared: by entities that differ in nothing but how much they admit,
// and only by these.
func TestPlansAreShared(t *testing.T) {
	const same = `"name":"r","route_pattern":"/a","by":["ip","client"],"algorithm":"token_bucket","limit":10,"window":"60s"`
	rule := func(old, new string) string { return "{" + strings.Replace(same, old, new, 1) + "}" }
	for _, tt := range []struct {
		rules  string
		shared bool
	}{
		{rule("10", "20"), true},
		{rule("10", `10,"burst":3,"on_failure":"deny","retry_jitter":"none"`), true},
		{rule("60s", "1h"), true},
		{rule(`"r"`, `"s"`), false},
		{rule("/a", "/b"), false},
		{rule(`"route_pattern":"/a",`, ""), false},
		{rule(`"ip","client"`, `"client","ip"`), false}, // another counter
		{rule(`"ip",`, ""), false},
		{rule("token_bucket", "fixed_window"), false},
		{rule("10", `10,"priority":1`), false},
		{rule("10", `10,"shadow":true`), false},
		{rule("10", `10,"on_missing":"deny"`), false},
		{rule(`"algorithm":"token_bucket","limit":10,"window":"60s"`, `"unlimited":true`), false},
		{rule("", "") + "," + rule(`"r"`, `"s"`), false},
		{"", false},
	} {
		for _, name := range []func(string) EntityName{tierName, clientName} {
			s := changed(t, new(Set), map[EntityName][]byte{
				name("a"): []byte(`{"rules":[` + rule("", "") + `]}`), name("b"): []byte(`{"rules":[` + tt.rules + `]}`),
			})
			all := s.of(name("").Kind)
			if shared := all["a"].plan == all["b"].plan; shared != tt.shared {
				t.Errorf("%s of %v: shared is %v", tt.rules, name("b"), shared)
			}
		}
	}
}

// TestPlansOfTheDefaultTier: its rules with and without a pattern are of one level,
// and those of clients and tiers have other counters.
func TestPlansOfTheDefaultTier(t *testing.T) {
	body := []byte(`{"rules":[{"name":"r",` + countTen + `}]}`)
	s := changed(t, new(Set), map[EntityName][]byte{tierName(DefaultTier): body, tierName("free"): body, clientName("c"): body})
	if a, b, c := s.standard.plan, s.tiers["free"].plan, s.clients["c"].plan; a == b || b == c || a == c {
		t.Error("different levels have one plan")
	}
}

// TestPlanOfTwoTiers: a tier that has the rules of the default tier is still one.
func TestPlanOfTwoTiers(t *testing.T) {
	body := []byte(`{"rules":[{"name":"r","route_pattern":"*",` + countTen + `}]}`)
	s := changed(t, new(Set), map[EntityName][]byte{tierName(DefaultTier): body, tierName("free"): body})
	if s.standard.plan != s.tiers["free"].plan {
		t.Error("equal rules of one level have two plans")
	}
	if got := ruleName(match(t, s, limit.Request{Tier: "free"})); got != "free/r" {
		t.Errorf("the limit is %q", got)
	}
}

// TestSharedPlansKeepLimitsApart: whoever has the plan, the limit and the counter
// are the entity's own.
func TestSharedPlansKeepLimitsApart(t *testing.T) {
	changes := map[EntityName][]byte{}
	for i := range 5 {
		body := fmt.Appendf(nil, `{"rules":[{"name":"r","by":["ip"],"unlimited":true},{"name":"s",%s},{"name":"t",%[1]s}]}`, strings.Replace(countTen, "10", fmt.Sprint(10+i), 1))
		changes[tierName(fmt.Sprint("t", i))], changes[clientName(fmt.Sprint("c", i))] = body, body
	}
	s := changed(t, new(Set), changes)
	if len(s.shared.plans) != 2 {
		t.Fatalf("%d plans of tiers and clients", len(s.shared.plans))
	}
	for i := range 5 {
		for of, req := range map[EntityName]limit.Request{
			tierName(fmt.Sprint("t", i)):   {Key: "k", Tier: fmt.Sprint("t", i)},
			clientName(fmt.Sprint("c", i)): {Key: fmt.Sprint("c", i)},
		} {
			won := matchAll(t, s, req)
			if len(won) != 2 {
				t.Fatalf("%v has the limits %s", of, ruleNames(won))
			}
			for k, w := range won {
				d, err := DescribeCounter(w.Counter)
				if w.Rule.Limit != int64(10+i) || w.Rule.Name != "st"[k:k+1] || err != nil || d.Of != of || d.Rule != w.Rule.Name {
					t.Errorf("%v has the limit %s %d of %+v, %v", of, w.Rule.Name, w.Rule.Limit, d, err)
				}
			}
		}
	}
}

// TestWhatIsSharedIsForgotten: bodies and plans that no entity has any more do not
// pile up.
func TestWhatIsSharedIsForgotten(t *testing.T) {
	for _, name := range []func(string) EntityName{tierName, clientName} {
		body := func(i int) []byte { return fmt.Appendf(nil, `{"rules":[{"name":"r%d",%s}]}`, i, countTen) }
		s := changed(t, new(Set), map[EntityName][]byte{name("a"): body(100)})
		for i := range 20 {
			s = changed(t, s, map[EntityName][]byte{name("b"): body(i)})
		}
		if len(s.shared.bodies) > 6 || len(s.shared.plans) > 6 {
			t.Errorf("%d bodies and %d plans of two entities", len(s.shared.bodies), len(s.shared.plans))
		}
		s = changed(t, s, map[EntityName][]byte{name("c"): body(100)})
		if all := s.of(name("").Kind); all["c"].plan != all["a"].plan || name("").Kind == ClientEntity && all["c"].origin != all["a"].origin {
			t.Error("what an entity has was forgotten")
		}
	}
}

// TestWhatIsSharedIsBoundedInBytes: among many small entities a large one that changes
// often leaves little behind.
func TestWhatIsSharedIsBoundedInBytes(t *testing.T) {
	for _, name := range []func(string) EntityName{tierName, clientName} {
		changes, bytes := map[EntityName][]byte{}, 0
		for i := range 200 {
			changes[name(fmt.Sprint("small", i))] = fmt.Appendf(nil, `{"rules":[{"name":"r%d",%s}]}`, i, countTen)
		}
		s := changed(t, new(Set), changes)
		for i := range 100 {
			rules := make([]string, 100)
			for k := range rules {
				rules[k] = fmt.Sprintf(`{"name":"r%d-%d","route_pattern":"/%[2]d",%s}`, i, k, countTen)
			}
			s = changed(t, s, map[EntityName][]byte{name("large"): fmt.Appendf(nil, `{"rules":[%s]}`, strings.Join(rules, ","))})
		}
		for _, body := range s.Entities() {
			bytes += len(body)
		}
		kept := 0
		for body := range s.shared.bodies {
			kept += len(body)
		}
		for key := range s.shared.plans {
			kept += len(key)
		}
		if kept > 5*bytes {
			t.Errorf("%d bytes are kept of %d", kept, bytes)
		}
	}
}
