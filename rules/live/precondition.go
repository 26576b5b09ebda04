package live

import "strings"

// Precondition guards a write against lost updates; see RFC 9110, sections 13.1.1
// and 13.1.2. Both fields are header values: * or entity tags, separated by
// commas. The zero Precondition always holds; one that is neither never does, for
// whoever wrote it wanted a guard.
type Precondition struct {
	IfMatch     string // holds when the entity is one of these
	IfNoneMatch string // holds when it is none of these; *: it is not there
}

// check is ErrPrecondition unless p holds. A deleted entity is not there.
func (p Precondition) check(e Entry) error {
	if p.IfMatch != "" {
		if among, ok := isAmong(p.IfMatch, e, false); !ok || !among {
			return ErrPrecondition
		}
	}
	if p.IfNoneMatch != "" {
		if among, ok := isAmong(p.IfNoneMatch, e, true); !ok || among {
			return ErrPrecondition
		}
	}
	return nil
}

// isAmong says whether e is there and one of tags; ok is false if those are none.
// A weak tag is one of e's only if weak is set: If-None-Match compares weakly, and
// If-Match strongly (RFC 9110, section 8.8.3.2).
func isAmong(tags string, e Entry, weak bool) (among, ok bool) {
	there := e.Body != nil
	if strings.Trim(tags, " \t") == "*" {
		return there, true
	}
	list, ok := readTags(tags)
	for _, t := range list {
		among = among || there && t.opaque == e.ETag() && (weak || !t.weak)
	}
	return among, ok
}

// tag is an entity tag. Its opaque part is compared as a whole, quotes included.
type tag struct {
	opaque string
	weak   bool
}

// readTags reads a list of entity tags (RFC 9110, sections 5.6.1 and 8.8.3); false:
// it is none. The text of a tag may hold commas, and an element may be empty.
func readTags(list string) (tags []tag, ok bool) {
	rest := strings.TrimLeft(list, " \t,")
	for rest != "" {
		text, weak := strings.CutPrefix(rest, "W/")
		text, quoted := strings.CutPrefix(text, `"`)
		opaque, behind, closed := strings.Cut(text, `"`)
		rest = strings.TrimLeft(behind, " \t")
		if !quoted || !closed || rest != "" && rest[0] != ',' {
			return nil, false
		}
		tags = append(tags, tag{`"` + opaque + `"`, weak})
		rest = strings.TrimLeft(rest, " \t,")
	}
	return tags, len(tags) > 0
}
