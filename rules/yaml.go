package rules

import (
	"bytes"
	"errors"
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
	maxKeys  = 1_000 // of one mapping; so at most as many tiers
)

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
	if line, column, problem := checkLines(r.lines); problem != "" {
		r.report(token.New("", "", &token.Position{Line: line, Column: column}), "", "%s", problem)
		return nil
	}
	tokens := lexer.Tokenize(text)
	if at, problem := checkShape(tokens); problem != "" {
		r.report(at, "", "%s", problem)
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
		r.report(syntax.GetToken(), "", "is not YAML: %s", clip(syntax.GetMessage(), maxSyntaxBytes))
		return
	}
	r.report(nil, "", "is not YAML: %s", clip(err.Error(), maxSyntaxBytes))
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
