package rules

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"unicode"
)

const maxPatternBytes = 1 << 10

// pattern is a route_pattern, read. It is an asterisk, for every request, also
// one without a route; or "[METHOD ]/path" as for http.ServeMux, but without a
// host, which a route does not have; or the name of a route that is not HTTP,
// like charge.create.
type pattern struct {
	kind     patternKind
	method   string // empty: any
	segments []segment
}

type patternKind uint8

const (
	everyRoute patternKind = iota
	pathPattern
	routeName
)

// segment is one piece of a path pattern.
type segment struct {
	kind    segmentKind
	literal string // percent-decoded; "/" for {$}, as ServeMux has it
}

type segmentKind uint8

const (
	literalSegment segmentKind = iota
	wildSegment                // {name}
	subtreeSegment             // {name...}, or a slash at the end
)

// pathEnd is the segment of a slash at the end of a path.
const pathEnd = "/"

const patternSyntax = "write METHOD /path, /path, *, or a plain name for routes that are not HTTP"

// patterns reads the patterns of one tier and refuses those that conflict. An
// http.ServeMux does the checking, so that its rules of precedence hold.
type patterns struct {
	mux   *http.ServeMux
	where map[string]string // of each pattern: where it stood first
}

func newPatterns() *patterns {
	return &patterns{mux: http.NewServeMux(), where: map[string]string{}}
}

// add reads a pattern. The problem is empty when it is fine. The same text may
// come again: several rules can have one pattern.
func (ps *patterns) add(text, where string) (p pattern, problem string) {
	switch {
	case text == "*":
		return pattern{kind: everyRoute}, ""
	case len(text) > maxPatternBytes:
		return p, fmt.Sprintf("is %d bytes long; at most %d are allowed", len(text), maxPatternBytes)
	case strings.ContainsFunc(text, unicode.IsControl):
		return p, "has a control character; " + patternSyntax
	case !strings.ContainsAny(text, "/{} "):
		return pattern{kind: routeName}, ""
	}
	p = splitPattern(text)
	if len(p.segments) == 0 {
		return p, fmt.Sprintf("%q has no path that starts with a slash; %s", text, patternSyntax)
	}
	if _, again := ps.where[text]; !again {
		problem = ps.register(text, where)
	}
	return p, problem
}

// splitPattern takes the pattern apart. It finds no segments where there is no
// path, or a host before it. The rest of the syntax is checked by the ServeMux.
func splitPattern(text string) pattern {
	method, rest := "", text
	if i := strings.IndexByte(text, ' '); i >= 0 {
		method, rest = text[:i], strings.TrimLeft(text[i:], " ")
	}
	p := pattern{kind: pathPattern, method: method}
	if !strings.HasPrefix(rest, "/") {
		return p
	}
	for s := range strings.SplitSeq(rest[1:], "/") {
		p.segments = append(p.segments, parseSegment(s))
	}
	return p
}

func parseSegment(s string) segment {
	switch {
	case s == "":
		return segment{kind: subtreeSegment}
	case s == "{$}":
		return segment{literal: pathEnd}
	case s[0] != '{':
		return segment{literal: unescape(s)}
	case strings.HasSuffix(s, "...}"):
		return segment{kind: subtreeSegment}
	}
	return segment{kind: wildSegment}
}

// register has the ServeMux check the pattern, alone and against the others.
func (ps *patterns) register(text, where string) (problem string) {
	path := text[strings.IndexByte(text, '/'):]
	if clean := cleanPath(path); clean != path {
		return fmt.Sprintf("%q matches no request, because paths are cleaned first; write %s", text, clean)
	}
	message := handle(ps.mux, text)
	if message == "" {
		ps.where[text] = where
		return ""
	}
	if other, why, ok := parseConflict(message); ok {
		return fmt.Sprintf("conflicts with the pattern %s: %s", ps.where[other], why)
	}
	_, why, _ := strings.Cut(message, ": ") // parsing "…": why
	return fmt.Sprintf("%q is no pattern: %s; %s", text, why, patternSyntax)
}

// handle registers the pattern and returns the message of the panic by which
// ServeMux refuses one, or "".
func handle(mux *http.ServeMux, text string) (message string) {
	defer func() {
		if refused := recover(); refused != nil {
			message = fmt.Sprint(refused)
		}
	}()
	mux.Handle(text, http.NotFoundHandler())
	return ""
}

// parseConflict finds in the message the other pattern and the explanation,
// which follows the first line.
func parseConflict(message string) (other, why string, ok bool) {
	_, rest, ok := strings.Cut(message, "conflicts with pattern ")
	if !ok {
		return "", "", false
	}
	quoted, err := strconv.QuotedPrefix(rest)
	if err != nil {
		return "", "", false
	}
	other, err = strconv.Unquote(quoted)
	_, why, ok = strings.Cut(rest, ":\n")
	return other, strings.ReplaceAll(why, "\n", " "), ok && err == nil
}
