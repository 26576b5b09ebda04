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
	if p.IfMatch != "" && !matches(p.IfMatch, e) || p.IfNoneMatch != "" && matches(p.IfNoneMatch, e) {
		return ErrPrecondition
	}
	return nil
}

func matches(tags string, e Entry) bool {
	if e.Body == nil {
		return false
	}
	for tag := range strings.SplitSeq(tags, ",") {
		if tag = strings.TrimSpace(tag); tag == "*" || tag == e.ETag() {
			return true
		}
	}
	return false
}
