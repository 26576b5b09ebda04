package rules

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ringlimit/ringlimit/limit"
)

// modelRule is a rule as a person reads it, in a tier or of a client.
type modelRule struct {
	Name      string   `json:"name"`
	Pattern   string   `json:"route_pattern,omitempty"`
	By        []string `json:"by"`
	Priority  int      `json:"priority"`
	Unlimited bool     `json:"unlimited,omitempty"`
	Shadow    bool     `json:"shadow,omitempty"`
	OnMissing string   `json:"on_missing,omitempty"`
	Algorithm string   `json:"algorithm,omitempty"`
	Limit     *int     `json:"limit,omitempty"`
	Window    string   `json:"window,omitempty"`

	of    string
	order int
}

// model is a rule file.
type model struct {
	tiers, clients map[string][]modelRule
	tierOf         map[string]string

	match   map[[2]string]bool // pattern, route
	compare map[[2]string]int  // two patterns
}

// ask makes the tables of what ServeMux says of the patterns.
func (m *model) ask() {
	m.match, m.compare = map[[2]string]bool{}, map[[2]string]int{}
	for _, a := range modelPatterns {
		for _, route := range append([]string{"", "job"}, modelPaths...) {
			m.match[[2]string{a, route}] = matchesRoute(a, route)
		}
		for _, b := range modelPatterns {
			m.compare[[2]string{a, b}] = comparePatterns(a, b)
		}
	}
}

func (m *model) parse(t *rapid.T) *Set {
	type client struct {
		Tier  string      `json:"tier,omitempty"`
		Rules []modelRule `json:"rules"`
	}
	file := struct {
		Tiers   map[string][]modelRule `json:"tiers"`
		Clients map[string]client      `json:"clients"`
	}{m.tiers, map[string]client{}}
	for id, rules := range m.clients {
		file.Clients[id] = client{m.tierOf[id], rules}
	}
	data, _ := json.Marshal(file)
	return parse(t, string(data))
}

// winners does what the contract says, rule by rule: all rules that could apply,
// those of the most specific level, of these the highest priority, of these the
// most specific pattern; in each dimension. The enforced rules are chosen as if
// there were no others; one in shadow has to win among all.
func (m *model) winners(req limit.Request) (names []string) {
	own := cmp.Or(req.Tier, m.tierOf[req.Key], "default")
	var can []modelRule
	for _, list := range [][]modelRule{m.clients[req.Key], m.tiers[own], m.tiers["default"]} {
		for _, r := range list {
			if m.match[[2]string{r.Pattern, req.Route}] && (r.OnMissing == "deny" || lacks(r, req) == "") && !slices.ContainsFunc(can, func(o modelRule) bool { return o.of == r.of && o.Name == r.Name }) {
				can = append(can, r)
			}
		}
	}
	enforcedOnes := slices.DeleteFunc(slices.Clone(can), func(r modelRule) bool { return r.Shadow })
	var won []modelRule
	for _, r := range can {
		rivals := enforcedOnes
		if r.Shadow {
			rivals = can
		}
		if !r.Unlimited && !slices.ContainsFunc(rivals, func(o modelRule) bool { return m.beats(o, r) }) {
			won = append(won, r)
		}
	}
	slices.SortStableFunc(won, func(a, b modelRule) int {
		return cmp.Or(cmp.Compare(levelRank(a), levelRank(b)), cmp.Compare(a.order, b.order))
	})
	for _, r := range won {
		names = append(names, fmt.Sprintf("%s/%s %d %s", r.of, r.Name, *r.Limit, lacks(r, req)))
	}
	return names
}

func (m *model) beats(o, r modelRule) bool {
	if dimOf(o) != dimOf(r) {
		return false
	}
	return cmp.Or(cmp.Compare(levelRank(o), levelRank(r)), cmp.Compare(r.Priority, o.Priority), m.compare[[2]string{o.Pattern, r.Pattern}]) < 0
}

func dimOf(r modelRule) string { return strings.Join(slices.Sorted(slices.Values(r.By)), ",") }

func levelRank(r modelRule) int {
	switch {
	case r.of == "tier/default":
		return 4
	case strings.HasPrefix(r.of, "tier/") && r.Pattern == "":
		return 3
	case strings.HasPrefix(r.of, "tier/"):
		return 2
	case r.Pattern == "":
		return 1
	}
	return 0
}

// comparePatterns is negative when a is more specific: a ServeMux with both
// gives a request that either would take to a.
func comparePatterns(a, b string) int {
	rank := func(p string) int { return map[string]int{"": 2, "*": 1}[p] }
	if a == b || rank(a) != rank(b) || rank(a) != 0 {
		return cmp.Compare(rank(a), rank(b))
	}
	if !strings.Contains(a, "/") || !strings.Contains(b, "/") {
		return 0 // no request has both
	}
	both := newMux([]string{a, b})
	for _, path := range modelPaths {
		if matchesRoute(a, path) && matchesRoute(b, path) {
			return map[bool]int{true: -1, false: 1}[muxPattern(both, path) == a]
		}
	}
	return 0
}

func matchesRoute(pattern, route string) bool {
	switch {
	case pattern == "" || pattern == "*":
		return true
	case !strings.Contains(pattern, "/"):
		return pattern == route
	}
	return strings.Contains(route, " /") && muxPattern(newMux([]string{pattern}), route) == pattern
}

func muxPattern(mux *http.ServeMux, route string) string {
	method, path, _ := strings.Cut(route, " ")
	req, _ := http.NewRequest(method, "http://example.com"+path, nil)
	_, pattern := mux.Handler(req)
	return pattern
}

func lacks(r modelRule, req limit.Request) string {
	for _, by := range r.By {
		_, has := req.Attributes[strings.TrimPrefix(by, "attribute ")]
		switch {
		case by == "client", by == "ip" && req.IP.IsValid(), by == "route" && (r.Pattern != "" || req.Route != ""), has:
			continue
		}
		return by
	}
	return ""
}

// The patterns have no conflicts, and the paths tell all of them apart.
var (
	modelPatterns = []string{"", "", "*", "job", "/", "/a/", "/a/{x}", "GET /a/{x}", "GET /a/b", "/a/b/{rest...}", "POST /c"}
	modelPaths    = []string{"GET /a/b", "POST /a/b", "GET /a/c", "HEAD /a/b", "GET /a/b/c", "POST /a/b/c/d", "GET /", "POST /c", "GET /a/", "POST /a/", "GET /x/y", "DELETE /a/c"}
)

func drawRules(t *rapid.T, of string) []modelRule {
	by := rapid.SampledFrom([][]string{{"client"}, {"client"}, {"ip"}, {"route"}, {"client", "route"}, {"route", "client"}, {"attribute x"}, {"ip", "attribute x"}})
	list := []modelRule{}
	for i := range rapid.IntRange(0, 7).Draw(t, "rules of "+of) {
		r := modelRule{Name: fmt.Sprintf("r%d", i), of: of, order: i, By: by.Draw(t, "by"),
			Pattern:  rapid.SampledFrom(modelPatterns).Draw(t, "pattern"),
			Priority: rapid.SampledFrom([]int{0, 0, 0, 1, -1}).Draw(t, "priority"),
		}
		if r.Unlimited = rapid.IntRange(0, 5).Draw(t, "unlimited") == 0; !r.Unlimited {
			n := rapid.IntRange(0, 2).Draw(t, "limit")
			r.Algorithm, r.Limit, r.Window = "token_bucket", &n, "1s"
			r.Shadow = rapid.IntRange(0, 3).Draw(t, "shadow") == 0
			r.OnMissing = rapid.SampledFrom([]string{"", "", "deny"}).Draw(t, "missing")
		}
		list = append(list, r)
	}
	return list
}

func drawModel(t *rapid.T, asked model) *model {
	m := &asked
	m.tiers, m.clients, m.tierOf = map[string][]modelRule{}, map[string][]modelRule{}, map[string]string{}
	m.tiers["free"] = drawRules(t, "tier/free")
	if rapid.IntRange(0, 3).Draw(t, "default") > 0 {
		m.tiers["default"] = drawRules(t, "tier/default")
	}
	m.tiers["other"] = drawRules(t, "tier/other")
	m.clients["a"] = drawRules(t, "client/a")
	m.tierOf["a"] = rapid.SampledFrom([]string{"", "free", "other"}).Draw(t, "tier of a")
	m.clients["b"], m.tierOf["b"] = []modelRule{}, "free"
	return m
}

func drawRequest(t *rapid.T) limit.Request {
	req := limit.Request{
		Key:   rapid.SampledFrom([]string{"a", "a", "b", "c"}).Draw(t, "key"),
		Tier:  rapid.SampledFrom([]string{"", "", "free", "other"}).Draw(t, "tier"),
		Route: rapid.SampledFrom(append([]string{"", "job"}, modelPaths...)).Draw(t, "route"),
	}
	if rapid.Bool().Draw(t, "ip") {
		req.IP = netip.MustParseAddr("192.0.2.1")
	}
	if rapid.Bool().Draw(t, "x") {
		req.Attributes = map[string]string{"x": "1"}
	}
	return req
}

// TestSpecificity holds Match, and Explain, to the model.
func TestSpecificity(t *testing.T) {
	var asked model
	asked.ask()
	rapid.Check(t, func(t *rapid.T) {
		m := drawModel(t, asked)
		s := m.parse(t)
		var found Matches
		for range 12 {
			req := drawRequest(t)
			if err := s.Match(&req, &found); err != nil {
				t.Fatal(err)
			}
			m.check(t, s, req, found.Winners)
		}
	})
}

func (m *model) check(t failer, s *Set, req limit.Request, winners []Winner) {
	t.Helper()
	if got, want := matchedNames(t, req.Key, winners), m.winners(req); !slices.Equal(got, want) {
		t.Fatalf("%+v in\n%s\nhas the limits %q, want %q", req, s.LimitsJSON(), got, want)
	}
	checkExplanation(t, s, req, winners)
}

// matchedNames are "tier/free/r1 limit missing dimension". What is of no tier is the
// client's, which its counter says, too.
func matchedNames(t failer, key string, winners []Winner) (names []string) {
	for _, w := range winners {
		of := "tier/" + w.Rule.Tier
		if w.Rule.Tier == "" {
			of = "client/" + key
		}
		if w.Missing == "" {
			d, err := DescribeCounter(w.Counter)
			if err != nil || d.Of.String() != of || d.Rule != w.Rule.Name {
				t.Fatalf("the counter of %s/%s is %+v, %v", of, w.Rule.Name, d, err)
			}
		}
		names = append(names, fmt.Sprintf("%s/%s %d %s", of, w.Rule.Name, w.Rule.Limit, w.Missing))
	}
	return names
}

func checkExplanation(t failer, s *Set, req limit.Request, winners []Winner) {
	t.Helper()
	x, err := s.Explain(&req)
	if err != nil {
		t.Fatalf("%v", err)
	}
	var applying []string
	for _, c := range x.Rules {
		if c.Applies && !c.Unlimited {
			applying = append(applying, c.Of+"/"+c.Name)
		}
		if c.Outcome == "" || c.Applies != strings.HasPrefix(c.Outcome, "applies") {
			t.Fatalf("an explanation is %+v", c)
		}
	}
	var want []string
	for _, name := range matchedNames(t, req.Key, winners) {
		want = append(want, strings.SplitN(name, " ", 2)[0])
	}
	if !slices.Equal(applying, want) {
		t.Fatalf("%+v: explained are %q, matched %q", req, applying, want)
	}
}
