package rules

import (
	"bytes"
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Bounds on the shape of a file, far above what rules need. The parser takes
// time, and stack, in the square of them.
const (
	maxDepth = 32    // of nesting
	maxKeys  = 1_000 // of one mapping
)

// parseYAML returns the root of the file's only document, or reports why not.
func (r *reader) parseYAML(data []byte) *value {
	text := string(bytes.TrimPrefix(data, []byte("\ufeff")))
	r.lines = strings.Split(text, "\n")
	if line, column, ok := findInvalidUTF8(r.lines); ok {
		r.report(place{line, column}, "", "is not UTF-8 here")
		return nil
	}
	if line, column, problem := checkLines(r.lines); problem != "" {
		r.report(place{line, column}, "", "%s", problem)
		return nil
	}
	tokens := lexer.Tokenize(text)
	if at, problem := checkShape(tokens); problem != "" {
		r.report(placeOf(at), "", "%s", problem)
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
	for i, rest := range lines {
		if utf8.ValidString(rest) {
			continue
		}
		for column := 1; ; column++ {
			c, size := utf8.DecodeRuneInString(rest)
			if c == utf8.RuneError && size == 1 {
				return i + 1, column, true
			}
			rest = rest[size:]
		}
	}
	return 0, 0, false
}

// maxSyntaxBytes bounds what the parser says: it may repeat half the file.
const maxSyntaxBytes = 200

func (r *reader) reportSyntax(err error) {
	var syntax yaml.Error
	if errors.As(err, &syntax) {
		r.report(placeOf(syntax.GetToken()), "", "is not YAML: %s", clip(syntax.GetMessage(), maxSyntaxBytes))
		return
	}
	r.report(place{}, "", "is not YAML: %s", clip(err.Error(), maxSyntaxBytes))
}

// onlyDocument finds the root. An empty file is refused: it is more likely a
// mistake than a wish to limit nothing.
func (r *reader) onlyDocument(tree *ast.File) *value {
	var body ast.Node
	for _, doc := range tree.Docs {
		switch {
		case doc.Body == nil:
		case body != nil:
			r.report(placeOf(doc.Body.GetToken()), "", "is a second document; a rule file is one")
			return nil
		default:
			body = doc.Body
		}
	}
	if body == nil {
		r.report(place{}, "", "is empty; a rule file is tiers: {default: [%s]}", ruleExample)
		return nil
	}
	return valueOf(body)
}

func placeOf(t *token.Token) place {
	if t == nil || t.Position == nil {
		return place{}
	}
	return place{t.Position.Line, t.Position.Column}
}

// valueOf is a node of the syntax tree, whose depth was checked.
func valueOf(n ast.Node) *value {
	t := n.GetToken()
	v := &value{at: placeOf(t), text: t.Value}
	switch n := n.(type) {
	case *ast.NullNode:
		v.kind = nothing
	case *ast.BoolNode:
		v.kind, v.text = boolean, strconv.FormatBool(n.Value)
	case *ast.IntegerNode:
		v.kind = integer
	case *ast.StringNode:
		v.kind, v.text = text, n.Value
	case *ast.SequenceNode:
		v.kind = list
		for _, item := range n.Values {
			v.items = append(v.items, valueOf(item))
		}
	case ast.MapNode:
		v.kind = mapping
		for it := n.MapRange(); it.Next(); {
			v.members = append(v.members, member{keyText(it.Key()), placeOf(it.Key().GetToken()), valueOf(it.Value())})
		}
	case *ast.LiteralNode:
		v.kind, v.text = otherValue, "a block of text"
	default:
		v.kind = otherValue
	}
	return v
}

// keyText is the key as written, without quotes.
func keyText(key ast.MapKeyNode) string {
	if s, ok := key.(*ast.StringNode); ok {
		return s.Value
	}
	return key.GetToken().Value
}
