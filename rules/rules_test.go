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

// matchInto is Match with the result as a value; buf is room for the counter's
// name.
func matchInto(s *Set, req *limit.Request, buf []byte) (Match, error) {
	m := Match{Counter: buf}
	err := s.Match(req, &m)
	return m, err
}

// match is Match for requests that have to be fine.
func match(t failer, s *Set, req limit.Request) Match {
	t.Helper()
	if req.Key == "" {
		req.Key = "client"
	}
	m, err := matchInto(s, &req, nil)
	if err != nil {
		t.Fatalf("Match(%+v): %v", req, err)
	}
	return m
}

// ruleName is "tier/name" of the rule that applies, or "".
func ruleName(m Match) string {
	if m.Rule == nil {
		return ""
	}
	return m.Rule.Tier + "/" + m.Rule.Name
}
