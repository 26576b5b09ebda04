package rules

import (
	"bytes"
	"errors"
	"io"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// jsonReader makes values of a JSON text. It works on tokens, because only there
// does a number still show how it was written.
type jsonReader struct {
	dec    *jsontext.Decoder
	data   []byte
	offset int // of the text up to which at is known
	at     place
}

var (
	errTooDeep  = errors.New("is nested too deep")
	errTrailing = errors.New("goes on behind its end")
)

// isJSON reports whether the text is JSON, keys that stand twice aside. Much of
// YAML is, and is read much faster as such.
func isJSON(data []byte) bool {
	dec := jsontext.NewDecoder(bytes.NewReader(data), jsontext.AllowDuplicateNames(true))
	if dec.PeekKind() != '{' || dec.SkipValue() != nil {
		return false
	}
	_, err := dec.ReadToken()
	return err == io.EOF
}

// parseJSON returns the text's only value, or reports why not. Keys that stand
// twice are left for entries to find, with all the others.
func (r *reader) parseJSON(data []byte) *value {
	j := &jsonReader{
		dec:  jsontext.NewDecoder(bytes.NewReader(data), jsontext.AllowDuplicateNames(true)),
		data: data, at: place{1, 1},
	}
	v, err := j.value(0)
	if err == nil {
		if _, err = j.dec.ReadToken(); err == io.EOF {
			return v
		}
		err = errTrailing
	}
	j.move(max(j.offset, int(j.dec.InputOffset()))) // next has passed blanks, behind which there may be no token
	r.report(j.at, "", "is not one JSON value here: %s", clip(syntaxText(err), maxSyntaxBytes))
	return nil
}

// syntaxText leaves out the place, which the problem has already.
func syntaxText(err error) string {
	var syntax *jsontext.SyntacticError
	if errors.As(err, &syntax) && syntax.Err != nil {
		return syntax.Err.Error()
	}
	return err.Error()
}

func (j *jsonReader) value(depth int) (*value, error) {
	if depth > maxDepth {
		return nil, errTooDeep
	}
	v := &value{at: j.next()}
	token, err := j.dec.ReadToken()
	if err != nil {
		return nil, err
	}
	switch token.Kind() {
	case '{':
		v.kind = mapping
		return v, j.members(v, depth)
	case '[':
		v.kind = list
		return v, j.items(v, depth)
	case 'n':
		v.kind = nothing
	case 't', 'f':
		v.kind, v.text = boolean, token.String()
	case '"':
		v.kind, v.text = text, token.String()
	default:
		v.kind, v.text = numberKind(token.String()), token.String()
	}
	return v, nil
}

func numberKind(digits string) valueKind {
	for _, c := range digits {
		if c != '-' && (c < '0' || c > '9') {
			return otherValue
		}
	}
	return integer
}

func (j *jsonReader) members(v *value, depth int) error {
	for j.dec.PeekKind() != '}' {
		at := j.next()
		key, err := j.dec.ReadToken()
		if err != nil {
			return err
		}
		m := member{key: key.String(), at: at}
		if m.value, err = j.value(depth + 1); err != nil {
			return err
		}
		v.members = append(v.members, m)
	}
	_, err := j.dec.ReadToken()
	return err
}

func (j *jsonReader) items(v *value, depth int) error {
	for j.dec.PeekKind() != ']' {
		item, err := j.value(depth + 1)
		if err != nil {
			return err
		}
		v.items = append(v.items, item)
	}
	_, err := j.dec.ReadToken()
	return err
}

// next is the place of the next token: behind the last one, and what separates
// them.
func (j *jsonReader) next() place {
	start := int(j.dec.InputOffset())
	for start < len(j.data) && bytes.IndexByte([]byte(" \t\r\n,:"), j.data[start]) >= 0 {
		start++
	}
	j.move(start)
	return j.at
}

// move goes on to an offset. It counts only what it passes, so that a long line
// is not counted again for each of its tokens.
func (j *jsonReader) move(to int) {
	passed := j.data[j.offset:to]
	j.offset = to
	if i := bytes.LastIndexByte(passed, '\n'); i >= 0 {
		j.at.line += bytes.Count(passed, []byte("\n"))
		j.at.column, passed = 1, passed[i+1:]
	}
	j.at.column += utf8.RuneCount(passed)
}
