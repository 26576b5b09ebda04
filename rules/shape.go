package rules

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/token"
)

// checkLines looks at the lines before the lexer does, which takes time in the
// square of a block of text, and of the tabs in a quoted one.
func checkLines(lines []string) (line, column int, problem string) {
	for i, l := range lines {
		l = strings.TrimSuffix(l, "\r")
		indent := len(l) - len(strings.TrimLeft(l, " \t"))
		if at := strings.IndexAny(l[indent:], "\t\r"); at >= 0 {
			return i + 1, utf8.RuneCountInString(l[:indent+at]) + 1, "has a tab or a carriage return inside a line; use spaces"
		}
		if l[indent:] != "" && l[indent] != '#' && opensBlock(l) {
			return i + 1, indent + 1, "has a block of text (| or >); a rule has none: write the value into its line"
		}
	}
	return 0, 0, ""
}

// opensBlock reports whether the line may end with the header of a block, such
// as |, >- or |2, with or without a comment.
func opensBlock(line string) bool {
	for {
		s := strings.TrimRight(strings.TrimRight(line, " "), "+-0123456789")
		if head, ok := strings.CutSuffix(strings.ReplaceAll(s[max(len(s)-2, 0):], ">", "|"), "|"); ok && (head == "" || head == " ") {
			return true
		}
		i := strings.LastIndex(line, " #")
		if i < 0 {
			return false
		}
		line = line[:i]
	}
}

// shape follows the nesting of a file's tokens.
type shape struct {
	brackets int     // open [ and {
	blocks   []block // open mappings and lists by indentation
}

// block is a mapping or a list that has no brackets.
type block struct {
	column int
	keys   int
}

// checkShape looks at the tokens before the parser does, and finds what would
// cost it too much: a file need not be large for that. Anchors, aliases and
// tags are refused altogether: a short file of aliases to aliases can stand for
// one of any size, and a rule is read more often than written.
func checkShape(tokens token.Tokens) (at *token.Token, problem string) {
	var s shape
	for _, t := range tokens {
		switch t.Type {
		case token.AnchorType, token.AliasType, token.TagType, token.MergeKeyType, token.MappingKeyType, token.DirectiveType:
			return t, fmt.Sprintf("has %q, an anchor, alias, tag, merge, complex key or directive of YAML; rule files do without: write the value out", t.Value)
		}
		keys := s.next(t)
		if s.brackets+len(s.blocks) > maxDepth {
			return t, fmt.Sprintf("is nested more than %d levels deep; a rule file is tiers: {free: [%s]}", maxDepth, ruleExample)
		}
		if keys > maxKeys {
			return t, fmt.Sprintf("is a mapping of more than %d keys; YAML of that size is too slow to read: write the file as JSON", maxKeys)
		}
	}
	return nil, ""
}

// next takes a token into account. After a key it returns how many its block
// has by now.
func (s *shape) next(t *token.Token) (keys int) {
	switch t.Type {
	case token.MappingStartType, token.SequenceStartType:
		s.brackets++
	case token.MappingEndType, token.SequenceEndType:
		s.brackets--
	case token.SequenceEntryType:
		s.enter(t.Position.Column)
	case token.MappingValueType:
		if s.brackets == 0 && t.Prev != nil {
			b := s.enter(t.Prev.Position.Column)
			b.keys++
			return b.keys
		}
	}
	return 0
}

// enter returns the block at the column, and leaves those further in.
func (s *shape) enter(column int) *block {
	for len(s.blocks) > 0 && s.blocks[len(s.blocks)-1].column > column {
		s.blocks = s.blocks[:len(s.blocks)-1]
	}
	if len(s.blocks) == 0 || s.blocks[len(s.blocks)-1].column < column {
		s.blocks = append(s.blocks, block{column: column})
	}
	return &s.blocks[len(s.blocks)-1]
}
