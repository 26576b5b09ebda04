package rules

import (
	"slices"
	"strconv"
	"strings"
)

// label is the entity's name in messages, which stay one line.
func (n EntityName) label() string {
	if strings.ContainsFunc(n.Name, func(c rune) bool { return !strconv.IsPrint(c) }) {
		return string(n.Kind) + "/" + strconv.Quote(n.Name)
	}
	return n.String()
}

// ParseTierBody reads the body of a PUT of a tier and returns it in its
// canonical form. It is either all rules of the tier, {"rules":[…]}, or one rule:
// this takes the place of the rule of its name that the tier has in current, or
// is added behind the others. A single rule without a name is named by its
// route_pattern. current may be nil. The error is an *Error.
func ParseTierBody(tier string, body []byte, current *Set) (canonical []byte, err error) {
	name := EntityName{TierEntity, tier}
	r := &reader{file: name.label(), json: true}
	v := r.parseBody(name, body)
	if len(r.problems) > 0 {
		return nil, newError(r.problems)
	}
	ed := &entityDraft{name: name}
	if v.kind != mapping || v.member("rules") != nil || len(v.members) == 0 {
		r.readEntity(ed, v)
	} else {
		r.readOne(ed, v, current)
	}
	return r.canonical(ed)
}

// ParseClientBody reads the body of a PUT of a client, {"tier":…,"rules":[…]},
// and returns it in its canonical form. Whether the tier exists is With's to
// check. The error is an *Error.
func ParseClientBody(id string, body []byte) (canonical []byte, err error) {
	e, problems := compileBody(EntityName{ClientEntity, id}, body)
	if len(problems) > 0 {
		return nil, newError(problems)
	}
	return e.body, nil
}

// compileBody compiles a whole entity.
func compileBody(name EntityName, body []byte) (*entity, []Problem) {
	r := &reader{file: name.label(), json: true}
	ed := &entityDraft{name: name}
	if v := r.parseBody(name, body); v != nil {
		r.readEntity(ed, v)
	}
	return r.finish(ed)
}

// parseBody checks what a body is for, and its syntax.
func (r *reader) parseBody(name EntityName, body []byte) *value {
	switch problem := name.problem(); {
	case problem != "":
		r.report(place{}, "", "the name of the %s %s", name.Kind, problem)
		return nil
	case len(body) > MaxBodyBytes:
		r.report(place{}, "", "is %d bytes long; at most %d are allowed", len(body), MaxBodyBytes)
		return nil
	}
	return r.parseJSON(body)
}

// finish compiles a draft unless it has problems.
func (r *reader) finish(ed *entityDraft) (*entity, []Problem) {
	if len(r.problems) > 0 {
		return nil, r.problems
	}
	e := r.compile(ed)
	r.checkBody(ed, e)
	return e, r.problems
}

func (r *reader) canonical(ed *entityDraft) ([]byte, error) {
	e, problems := r.finish(ed)
	if len(problems) > 0 {
		return nil, newError(problems)
	}
	return e.body, nil
}

// checkBody bounds what is replicated as one.
func (r *reader) checkBody(ed *entityDraft, e *entity) {
	if len(e.body) > MaxBodyBytes {
		r.report(ed.at, ed.path, "is %d bytes long as JSON; at most %d are allowed", len(e.body), MaxBodyBytes)
	}
}

func (r *reader) readEntity(ed *entityDraft, v *value) {
	if ed.name.Kind == ClientEntity {
		r.readClient(ed, v)
		return
	}
	const example = `{"rules":[…]}`
	fields, ok := r.entries(v, "", example)
	if ok && len(fields) == 0 {
		r.report(v.at, "rules", "is missing; a tier is %s", example)
	}
	for _, f := range fields {
		if f.key != "rules" {
			r.report(f.at, join("", f.key), "is no field of a tier; the only one is rules")
			continue
		}
		items, _ := r.items(f.value, f.key, `[{"name":"global","algorithm":"token_bucket","limit":100,"window":"60s"}]`)
		r.readRules(ed, items, indexed(f.key))
	}
}

// readOne reads a single rule among those that the tier has.
func (r *reader) readOne(ed *entityDraft, one *value, current *Set) {
	nameByPattern(one)
	items := r.itemsOf(ed.name, current)
	at := slices.IndexFunc(items, func(item *value) bool { return item.sameText("name", one) })
	if at < 0 {
		at, items = len(items), append(items, nil)
	}
	items[at] = one
	r.readRules(ed, items, func(i int) string {
		if i == at {
			return ""
		}
		return indexed("rules")(i)
	})
}

func nameByPattern(rule *value) {
	pattern := rule.member("route_pattern")
	if rule.member("name") == nil && pattern != nil && pattern.kind == text {
		rule.members = append(rule.members, member{"name", pattern.at, pattern})
	}
}

// itemsOf are the rules that the entity has in current.
func (r *reader) itemsOf(name EntityName, current *Set) []*value {
	if current == nil {
		return nil
	}
	body, ok := current.Entity(name)
	if !ok {
		return nil
	}
	return r.parseJSON(body).member("rules").items
}

// sameText reports whether both values have the same text in a field.
func (v *value) sameText(field string, other *value) bool {
	a, b := v.member(field), other.member(field)
	return a != nil && b != nil && a.kind == text && b.kind == text && a.text == b.text
}
