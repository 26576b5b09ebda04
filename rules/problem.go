package rules

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// maxProblems bounds what one Error lists. The rest is counted.
const maxProblems = 20

// maxSourceColumns bounds the excerpt: a longer line is not shown.
const maxSourceColumns = 160

// Problem is one thing that is wrong with a rule file.
type Problem struct {
	File   string
	Line   int    // from 1
	Column int    // from 1, in characters
	Field  string // path of the field, like tiers.free[0].limit; may be empty
	Text   string // what is wrong, and what would be right
	Source string // the line itself; may be empty
}

// String is "file:line:column: field: text" and the line with a mark under the
// column.
func (p Problem) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s:%d:%d: ", p.File, p.Line, p.Column)
	if p.Field != "" {
		b.WriteString(p.Field + ": ")
	}
	b.WriteString(p.Text)
	if p.Source != "" {
		fmt.Fprintf(&b, "\n%6d | %s\n       | %s^", p.Line, p.Source, strings.Repeat(" ", p.Column-1))
	}
	return b.String()
}

// Error is all that is wrong with a rule file, in the file's order.
type Error struct {
	Problems []Problem // at least one, at most 20
	More     int       // how many further ones are not listed
}

func (e *Error) Error() string {
	lines := make([]string, 0, len(e.Problems)+1)
	for _, p := range e.Problems {
		lines = append(lines, p.String())
	}
	if e.More > 0 {
		lines = append(lines, fmt.Sprintf("… and %d more", e.More))
	}
	return strings.Join(lines, "\n")
}

// newError sorts the problems by place: tiers and patterns are checked after
// the rules, but are read by people from top to bottom.
func newError(problems []Problem) *Error {
	slices.SortStableFunc(problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	listed := min(len(problems), maxProblems)
	return &Error{Problems: problems[:listed], More: len(problems) - listed}
}

// clip shortens a caller's text for an error.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}
