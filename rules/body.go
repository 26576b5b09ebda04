package rules

import (
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
// canonical form. It is either all rules of the tier, {"rules":[…]}, or one rule
// to set among those of current, the body that the tier has; nil: there is none:
//
//   - With a name it takes the place of the rule of that name, whole; or it is
//     added behind the others.
//   - Without one it sets the limit of its route_pattern: of the rule that has
//     this pattern, whose name and other fields stay unless they are given. Where
//     there is none it is added, named by the pattern. Of several it is the one so
//     named; else the error says which there are.
//
// One rule is refused where this version cannot read current, which a newer one may
// have written: the others would be lost. The error is an *Error.
func ParseTierBody(tier string, body, current []byte) (canonical []byte, err error) {
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
func compileBody(name EntityName, body []byte) (entity, []Problem) {
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
func (r *reader) finish(ed *entityDraft) (entity, []Problem) {
	if len(r.problems) > 0 {
		return entity{}, r.problems
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
func (r *reader) checkBody(ed *entityDraft, e entity) {
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
