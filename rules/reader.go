package rules

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// reader reads YAML nodes as the types that rules are made of, and collects
// what is wrong with them. It walks the syntax tree itself, because a decoder
// into structs stops at the first problem and forgets where values stood.
type reader struct {
	file     string
	lines    []string
	problems []Problem
	warnings []Problem
}

// report notes a problem at a token.
func (r *reader) report(at *token.Token, field, format string, args ...any) {
	r.problems = append(r.problems, r.problem(at, field, format, args...))
}

func (r *reader) problem(at *token.Token, field, format string, args ...any) Problem {
	p := Problem{File: r.file, Line: 1, Column: 1, Field: field, Text: fmt.Sprintf(format, args...)}
	if at != nil && at.Position != nil {
		p.Line, p.Column = max(at.Position.Line, 1), max(at.Position.Column, 1)
	}
	if p.Line > len(r.lines) {
		return p
	}
	line := strings.TrimRight(r.lines[p.Line-1], "\r")
	p.Column = min(p.Column, utf8.RuneCountInString(line)+1) // a value that is left out stands behind the line
	p.Source = excerpt(line)
	return p
}

// excerpt is the line if it can be shown with a mark under a column: not too
// long, and of printable characters.
func excerpt(line string) string {
	unprintable := func(c rune) bool { return !strconv.IsPrint(c) }
	if utf8.RuneCountInString(line) > maxSourceColumns || strings.ContainsFunc(line, unprintable) {
		return ""
	}
	return line
}

// entry is one "key: value" of a mapping.
type entry struct {
	key   string
	at    *token.Token // the key's place
	value ast.Node
}

// entries reads a mapping, in the file's order. A key that comes twice is a
// problem and is left out.
func (r *reader) entries(n ast.Node, field, example string) ([]entry, bool) {
	m, ok := n.(ast.MapNode)
	if !ok {
		r.report(n.GetToken(), field, "is %s; it must be a mapping, like %s", describe(n), example)
		return nil, false
	}
	var list []entry
	lines := map[string]int{}
	for it := m.MapRange(); it.Next(); {
		e := entry{key: keyText(it.Key()), at: it.Key().GetToken(), value: it.Value()}
		if line, twice := lines[e.key]; twice {
			r.report(e.at, join(field, e.key), "stands twice, first in line %d; leave one of them", line)
			continue
		}
		lines[e.key] = e.at.Position.Line
		list = append(list, e)
	}
	return list, true
}

// items reads a list.
func (r *reader) items(n ast.Node, field, example string) ([]ast.Node, bool) {
	seq, ok := n.(*ast.SequenceNode)
	if !ok {
		r.report(n.GetToken(), field, "is %s; it must be a list, like %s", describe(n), example)
		return nil, false
	}
	return seq.Values, true
}

func (r *reader) text(n ast.Node, field, example string) (string, bool) {
	s, ok := n.(*ast.StringNode)
	if !ok {
		r.report(n.GetToken(), field, "is %s; it must be text, like %s", describe(n), example)
		return "", false
	}
	return s.Value, true
}

// integer reads plain decimal digits only: what 010, 0x10 or 1_000 mean depends
// on the version of YAML.
func (r *reader) integer(n ast.Node, field string) (int64, bool) {
	if _, ok := n.(*ast.IntegerNode); ok {
		digits := n.GetToken().Value
		if v, err := strconv.ParseInt(digits, 10, 64); err == nil && strconv.FormatInt(v, 10) == digits {
			return v, true
		}
	}
	r.report(n.GetToken(), field, "is %s; it must be a whole number in plain digits, like 100", describe(n))
	return 0, false
}

func (r *reader) boolean(n ast.Node, field string) (value, ok bool) {
	b, ok := n.(*ast.BoolNode)
	if !ok {
		r.report(n.GetToken(), field, "is %s; it must be true or false", describe(n))
		return false, false
	}
	return b.Value, true
}

// describe names what stands in the place of the right thing.
func describe(n ast.Node) string {
	switch n := n.(type) {
	case *ast.NullNode:
		return "empty"
	case ast.MapNode:
		return "a mapping"
	case *ast.SequenceNode:
		return "a list"
	case *ast.LiteralNode:
		return "a block of text"
	case *ast.StringNode:
		return fmt.Sprintf("%.64q", n.Value)
	default:
		return fmt.Sprintf("%.64s", n.GetToken().Value)
	}
}

// keyText is the key as written, without quotes.
func keyText(key ast.MapKeyNode) string {
	if s, ok := key.(*ast.StringNode); ok {
		return s.Value
	}
	return key.GetToken().Value
}

// join extends the path of a field. A key that is no plain word is quoted, so
// that an error stays one line.
func join(field, key string) string {
	plain := func(c rune) bool { return c > ' ' && c < 0x7f && c != '.' && c != '"' }
	if key == "" || len(key) > 128 || strings.ContainsFunc(key, func(c rune) bool { return !plain(c) }) {
		key = fmt.Sprintf("%.64q", key)
	}
	if field == "" {
		return key
	}
	return field + "." + key
}
