package rules

import (
	"fmt"
	"strings"

	"github.com/ringlimit/ringlimit/limit"
)

// failer is what a *testing.T and a *rapid.T have in common.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// parse is Parse for files that have to be right.
func parse(t failer, file string) *Set {
	t.Helper()
	s, err := Parse("rules.yaml", []byte(file))
	if err != nil {
		t.Fatalf("%v\nin\n%.2000s", err, file)
	}
	return s
}

// tierOf is a rule file with one tier, "default", of rules that are named r0,
// r1 and so on. Each is given by the fields that matter to the test.
func tierOf(rules ...string) string {
	var b strings.Builder
	b.WriteString("tiers:\n  default:\n")
	for i, fields := range rules {
		fmt.Fprintf(&b, "    - {name: r%d, algorithm: token_bucket, limit: 10, window: 60s, %s}\n", i, fields)
	}
	return b.String()
}

// matchAll is Match for requests that have to be fine.
func matchAll(t failer, s *Set, req limit.Request) []Winner {
	t.Helper()
	if req.Key == "" {
		req.Key = "client"
	}
	var m Matches
	if err := s.Match(&req, &m); err != nil {
		t.Fatalf("Match(%+v): %v", req, err)
	}
	return m.Winners
}

// match is matchAll for requests that have at most one limit; none is the zero
// Winner.
func match(t failer, s *Set, req limit.Request) Winner {
	t.Helper()
	switch w := matchAll(t, s, req); len(w) {
	case 0:
		return Winner{}
	case 1:
		return w[0]
	default:
		t.Fatalf("%+v has the limits %s", req, ruleNames(w))
		return Winner{}
	}
}

// ruleName is "tier/name" of the rule, or "".
func ruleName(w Winner) string {
	if w.Rule == nil {
		return ""
	}
	return w.Rule.Tier + "/" + w.Rule.Name
}

// ruleNames are those of all winners, in one line.
func ruleNames(winners []Winner) string {
	var names []string
	for _, w := range winners {
		names = append(names, ruleName(w))
	}
	return strings.Join(names, " ")
}
