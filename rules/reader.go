package rules

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// reader reads values as the types that rules are made of, and collects what is
// wrong with them. It walks the values itself, because a decoder into structs
// stops at the first problem and forgets where they stood.
type reader struct {
	file     string // or the entity that a body is for
	lines    []string
	json     bool // it is in JSON, often in one line: fields say more than lines
	problems []Problem
	warnings []Problem
}

// report notes a problem at a place.
func (r *reader) report(at place, field, format string, args ...any) {
	r.problems = append(r.problems, r.problem(at, field, format, args...))
}

func (r *reader) warn(at place, field, format string, args ...any) {
	w := r.problem(at, field, format, args...)
	w.Source = "" // one line a warning, for logs
	r.warnings = append(r.warnings, w)
}

func (r *reader) problem(at place, field, format string, args ...any) Problem {
	p := Problem{File: r.file, Line: max(at.line, 1), Column: max(at.column, 1), Field: field, Text: fmt.Sprintf(format, args...)}
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

// where names the place of another field in a message: by line in a file, by
// field in a body, which is often one line.
func (r *reader) where(at place, field string) string {
	if r.json {
		return "at " + field
	}
	return fmt.Sprintf("in line %d", at.line)
}

// entries reads a mapping, in the file's order. A key that comes twice is a
// problem and is left out.
func (r *reader) entries(v *value, field, example string) ([]member, bool) {
	if v.kind != mapping {
		r.report(v.at, field, "is %s; it must be a mapping, like %s", v.describe(), example)
		return nil, false
	}
	var list []member
	first := make(map[string]place, len(v.members))
	for _, m := range v.members {
		if at, twice := first[m.key]; twice {
			r.report(m.at, join(field, m.key), "stands twice, first in line %d; leave one of them", at.line)
			continue
		}
		first[m.key] = m.at
		list = append(list, m)
	}
	return list, true
}

// items reads a list.
func (r *reader) items(v *value, field, example string) ([]*value, bool) {
	if v.kind != list {
		r.report(v.at, field, "is %s; it must be a list, like %s", v.describe(), example)
		return nil, false
	}
	return v.items, true
}

func (r *reader) text(v *value, field, example string) (string, bool) {
	if v.kind != text {
		r.report(v.at, field, "is %s; it must be text, like %s", v.describe(), example)
		return "", false
	}
	return v.text, true
}

// integer reads plain decimal digits only: what 010, 0x10 or 1_000 mean depends
// on the version of YAML.
func (r *reader) integer(v *value, field string) (int64, bool) {
	if v.kind == integer {
		if n, err := strconv.ParseInt(v.text, 10, 64); err == nil && strconv.FormatInt(n, 10) == v.text {
			return n, true
		}
	}
	r.report(v.at, field, "is %s; it must be a whole number in plain digits, like 100", v.describe())
	return 0, false
}

func (r *reader) boolean(v *value, field string) (is, ok bool) {
	if v.kind != boolean {
		r.report(v.at, field, "is %s; it must be true or false", v.describe())
		return false, false
	}
	return v.text == "true", true
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
