package live

import "strings"

// Precondition guards a write against lost updates; see RFC 9110, sections 13.1.1
// and 13.1.2. Both fields are header values: * or entity tags, separated by
// commas. The zero Precondition always holds.
type Precondition struct {
	IfMatch     string // holds when the entity is one of these
	IfNoneMatch string // holds when it is none of these; *: it is not there
}

// check is ErrPrecondition unless p holds. A deleted entity is not there.
func (p Precondition) check(e Entry) error {
	if p.IfMatch != "" && !matches(p.IfMatch, e, false) || p.IfNoneMatch != "" && matches(p.IfNoneMatch, e, true) {
		return ErrPrecondition
	}
	return nil
}

// matches says whether e is there and one of tags. A tag with W/ in front is
// compared without it if weak is set, as section 8.8.3.2 asks for If-None-Match, and
// is else none of e's.
func matches(tags string, e Entry, weak bool) bool {
	if e.Body == nil || strings.TrimSpace(tags) == "*" {
		return e.Body != nil
	}
	for tag := range strings.SplitSeq(tags, ",") {
		tag = strings.TrimSpace(tag)
		if weak {
			tag = strings.TrimPrefix(tag, "W/")
		}
		if tag == e.ETag() {
			return true
		}
	}
	return false
}
