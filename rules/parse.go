package rules

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Bounds on a rule file.
const (
	MaxFileBytes = 4 << 20
	MaxRules     = 10_000 // in all tiers together

	// The parser works on paths of nested keys and is quadratic in the depth.
	// A rule file needs six levels.
	maxDepth = 32
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

// parseYAML returns the root of the file's only document, or reports why not.
func (r *reader) parseYAML(data []byte) ast.Node {
	if len(data) > MaxFileBytes {
		r.report(nil, "", "is %d bytes long; at most %d are allowed", len(data), MaxFileBytes)
		return nil
	}
	text := string(bytes.TrimPrefix(data, []byte("\ufeff")))
	r.lines = strings.Split(text, "\n")
	if line, column, ok := findInvalidUTF8(r.lines); ok {
		r.report(token.New("", "", &token.Position{Line: line, Column: column}), "", "is not UTF-8 here")
		return nil
	}
	tokens := lexer.Tokenize(text)
	if deep := findDeep(tokens); deep != nil {
		r.report(deep, "", "is nested more than %d levels deep; a rule file is tiers: {free: [%s]}", maxDepth, ruleExample)
		return nil
	}
	tree, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey()) // entries finds all duplicates, not just the first
	if err != nil {
		r.reportSyntax(err)
		return nil
	}
	return r.onlyDocument(tree)
}

func findInvalidUTF8(lines []string) (line, column int, found bool) {
	for i, l := range lines {
		if utf8.ValidString(l) {
			continue
		}
		valid := strings.ToValidUTF8(l, "\x00")
		return i + 1, utf8.RuneCountInString(valid[:strings.IndexByte(valid, 0)]) + 1, true
	}
	return 0, 0, false
}

// findDeep returns the token that goes too deep in brackets or in "- - - -".
// Nesting by indentation costs the square of its depth in bytes, so the size of
// the file bounds it.
func findDeep(tokens token.Tokens) *token.Token {
	brackets, dashes, line := 0, 0, 0
	for _, t := range tokens {
		if t.Position.Line != line {
			dashes, line = 0, t.Position.Line
		}
		switch t.Type {
		case token.MappingStartType, token.SequenceStartType:
			brackets++
		case token.MappingEndType, token.SequenceEndType:
			brackets--
		case token.SequenceEntryType, token.MappingKeyType, token.AnchorType, token.TagType:
			dashes++
		}
		if brackets > maxDepth || dashes > maxDepth {
			return t
		}
	}
	return nil
}

func (r *reader) reportSyntax(err error) {
	var syntax yaml.Error
	if errors.As(err, &syntax) {
		r.report(syntax.GetToken(), "", "is not YAML: %s", syntax.GetMessage())
		return
	}
	r.report(nil, "", "is not YAML: %v", err)
}

// onlyDocument finds the root. An empty file is refused: it is more likely a
// mistake than a wish to limit nothing.
func (r *reader) onlyDocument(tree *ast.File) ast.Node {
	var body ast.Node
	for _, doc := range tree.Docs {
		switch {
		case doc.Body == nil:
		case body != nil:
			r.report(doc.Body.GetToken(), "", "is a second document; a rule file is one")
			return nil
		default:
			body = doc.Body
		}
	}
	if body == nil {
		r.report(nil, "", "is empty; a rule file is tiers: {default: [%s]}", ruleExample)
	}
	return body
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
	at := d.at["route_pattern"]
	if at == nil {
		return pattern{}
	}
	p, problem := seen.add(d.pattern, at.Position.Line)
	if problem != "" {
		d.refuse("route_pattern", "%s", problem)
	}
	return p
}
