package rules

import (
	"slices"
	"strconv"
	"strings"
)

// readOne reads a single rule among those that the tier has.
func (r *reader) readOne(ed *entityDraft, one *value, current []byte) {
	items, ok := r.itemsOf(ed.name, current)
	if !ok {
		r.report(one.at, "", "is one rule, and this version cannot read those that the tier has: a newer one may have written them; replace the whole tier with {\"rules\":[…]}, or ask a node of that version")
		return
	}
	if one.member("name") == nil && !r.nameOne(one, items) {
		return
	}
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

// nameOne names the rule that sets the limit of its pattern. A rule that the
// pattern has already would apply beside it, and its limit could not be raised:
// so it is that one, and keeps its name, and with it what was used.
func (r *reader) nameOne(one *value, items []*value) (ok bool) {
	pattern := one.member("route_pattern")
	if pattern == nil || pattern.kind != text {
		return true // and is told to have a name
	}
	var same []*value
	for _, item := range items {
		if item.sameText("route_pattern", one) {
			same = append(same, item)
		}
	}
	own := slices.IndexFunc(same, func(item *value) bool { return item.member("name").text == pattern.text })
	problem := nameProblem(pattern.text)
	switch {
	case own >= 0:
		one.keep(same[own])
	case len(same) == 1:
		one.keep(same[0])
	case len(same) > 1:
		r.report(one.at, "name", "is missing, and several rules have the route_pattern: %s; give the name of the one to set, or a new name to add a rule", namesOf(same))
		return false
	case problem != "":
		r.report(one.at, "name", "is missing, and the route_pattern cannot stand for it, which %s", problem)
		return false
	default:
		one.members = append(one.members, member{"name", pattern.at, pattern})
	}
	return true
}

// namesOf lists the rules' names, as many as an error can take.
func namesOf(rules []*value) string {
	var names []string
	for _, v := range rules[:min(len(rules), MaxTies)] {
		names = append(names, strconv.Quote(v.member("name").text))
	}
	return strings.Join(names, ", ")
}

// Fields that a rule set by its pattern keeps: which rule it is, whom it counts
// and how it is treated. All others are the limit itself, which is set whole: half
// of an old one, such as its burst, would be a limit that nobody has written.
var (
	keptFields  = []string{"name", "by", "priority"}
	keptOfCount = []string{"on_missing", "on_failure", "durability", "retry_jitter"} // an unlimited rule has none
)

// keep takes over what the rule does not say, and the old one did.
func (v *value) keep(old *value) {
	fields := keptFields
	if u := v.member("unlimited"); u == nil || u.text != "true" {
		fields = slices.Concat(fields, keptOfCount)
	}
	for _, f := range fields {
		if was := old.member(f); was != nil && v.member(f) == nil {
			kept := *was
			kept.at = v.at
			v.members = append(v.members, member{f, v.at, &kept})
		}
	}
}

// itemsOf are the rules in the entity's body; false: this version cannot read it.
func (r *reader) itemsOf(name EntityName, body []byte) (items []*value, ok bool) {
	if body == nil {
		return nil, true
	}
	if _, problems := compileBody(name, body); len(problems) > 0 {
		return nil, false
	}
	return r.parseJSON(body).member("rules").items, true
}

// sameText reports whether both values have the same text in a field.
func (v *value) sameText(field string, other *value) bool {
	a, b := v.member(field), other.member(field)
	return a != nil && b != nil && a.kind == text && b.kind == text && a.text == b.text
}
