package rules

import (
	"fmt"

	"github.com/goccy/go-yaml/ast"
)

// Bounds on a rule file.
const (
	MaxFileBytes = 4 << 20
	MaxRules     = 10_000 // in all tiers together
)

// Parse reads and compiles a rule file. file names it in messages. The error is
// an *Error with all problems, not just the first.
func Parse(file string, data []byte) (*Set, error) {
	r := &reader{file: file}
	body := r.parseYAML(data)
	if len(r.problems) > 0 {
		return nil, newError(r.problems)
	}
	tiers := r.readTiers(body)
	if len(r.problems) > 0 {
		return nil, newError(r.problems)
	}
	return r.compile(tiers), nil
}

// tierDraft is a tier while it is read.
type tierDraft struct {
	name     string
	rules    []*draft
	patterns []pattern // of each rule that has one; else its zero value
}

func (r *reader) readTiers(root ast.Node) []tierDraft {
	const example = "tiers: {default: [" + ruleExample + "]}"
	top, ok := r.entries(root, "", example)
	var tiers []tierDraft
	found := !ok
	for _, e := range top {
		if e.key != "tiers" {
			r.report(e.at, join("", e.key), "is no field of a rule file; the only one is tiers")
			continue
		}
		found = true
		tiers = r.readTierMap(e.value)
	}
	if !found {
		r.report(nil, "tiers", "is missing; a rule file is %s", example)
	}
	return tiers
}

func (r *reader) readTierMap(n ast.Node) []tierDraft {
	entries, ok := r.entries(n, "tiers", "{default: ["+ruleExample+"]}")
	if ok && len(entries) == 0 {
		r.report(n.GetToken(), "tiers", "is empty; give at least one tier, like default: [%s]", ruleExample)
	}
	var tiers []tierDraft
	left := MaxRules
	for _, e := range entries {
		if problem := nameProblem(e.key); problem != "" {
			r.report(e.at, join("tiers", e.key), "the tier's name %s", problem)
		}
		t, n := r.readTier(e, left)
		tiers = append(tiers, t)
		if left -= n; left < 0 {
			break
		}
	}
	return tiers
}

// readTier reads a tier of at most left rules. n is how many it has.
func (r *reader) readTier(e entry, left int) (t tierDraft, n int) {
	t, path := tierDraft{name: e.key}, join("tiers", e.key)
	items, _ := r.items(e.value, path, "["+ruleExample+"]")
	n = len(items)
	if n > left {
		r.report(items[left].GetToken(), fmt.Sprintf("%s[%d]", path, left), "is one rule too many; a rule file has at most %d", MaxRules)
		items = items[:left]
	}
	names, seen := map[string]int{}, newPatterns()
	for i, item := range items {
		at := fmt.Sprintf("%s[%d]", path, i)
		d := r.readRule(item, at)
		d.checkName(names)
		t.rules = append(t.rules, d)
		t.patterns = append(t.patterns, d.checkPattern(seen))
	}
	return t, n
}

// checkName refuses a name that the tier has already. lines has the line of
// each name.
func (d *draft) checkName(lines map[string]int) {
	at := d.at["name"]
	if at == nil || d.name == "" {
		return
	}
	if line, twice := lines[d.name]; twice {
		d.refuse("name", "%q is the name of the rule in line %d already; names are unique in a tier", clip(d.name, maxNameBytes), line)
		return
	}
	lines[d.name] = at.Position.Line
}

func (d *draft) checkPattern(seen *patterns) pattern {
	if d.pattern == "" {
		return pattern{}
	}
	p, problem := seen.add(d.pattern, d.at["route_pattern"].Position.Line)
	if problem != "" {
		d.refuse("route_pattern", "%s", problem)
	}
	return p
}
