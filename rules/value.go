package rules

import "fmt"

// value is a piece of a rule file or of a body, whichever language it was
// written in.
type value struct {
	kind    valueKind
	at      place
	text    string // of a text: what it says; else as written
	items   []*value
	members []member
}

type valueKind uint8

const (
	nothing valueKind = iota // null, or left out
	boolean
	integer
	text
	list
	mapping
	otherValue // a fraction, a block of text, …
)

// member is one "key: value" of a mapping.
type member struct {
	key   string
	at    place // the key's
	value *value
}

// place is where something stands, from 1. The zero place is unknown.
type place struct{ line, column int }

func (p place) known() bool { return p.line > 0 }

// describe names what stands in the place of the right thing.
func (v *value) describe() string {
	switch v.kind {
	case nothing:
		return "empty"
	case mapping:
		return "a mapping"
	case list:
		return "a list"
	case text:
		return fmt.Sprintf("%.64q", v.text)
	}
	return fmt.Sprintf("%.64s", v.text)
}

// member is the mapping's first value of that key, or nil.
func (v *value) member(key string) *value {
	for i := range v.members {
		if v.members[i].key == key {
			return v.members[i].value
		}
	}
	return nil
}
