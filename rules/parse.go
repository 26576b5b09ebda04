package rules

import (
	"fmt"
	"strings"

	"github.com/ringlimit/ringlimit/limit"
)

// MaxFileBytes bounds a rule file.
const MaxFileBytes = 4 << 20

// Parse reads and compiles a rule file, in YAML or JSON. file names it in
// messages. The error is an *Error with all problems, not just the first.
func Parse(file string, data []byte) (*Set, error) {
	r := &reader{file: file}
	root := r.parseFile(data)
	if len(r.problems) > 0 {
		return nil, newError(r.problems)
	}
	drafts := r.readFile(root)
	if len(r.problems) > 0 {
		return nil, newError(r.problems)
	}
	s := new(Set).copied()
	for _, ed := range drafts {
		e := r.compile(ed)
		r.checkBody(ed, e)
		s.put(ed.name, e)
	}
	if len(r.problems) > 0 {
		return nil, newError(r.problems)
	}
	s.link()
	return s, nil
}

func (r *reader) parseFile(data []byte) *value {
	if len(data) > MaxFileBytes {
		r.report(place{}, "", "is %d bytes long; at most %d are allowed", len(data), MaxFileBytes)
		return nil
	}
	if isJSON(data) {
		r.json, r.lines = true, strings.Split(string(data), "\n")
		return r.parseJSON(data)
	}
	return r.parseYAML(data)
}

const fileExample = "tiers: {default: [" + ruleExample + "]}"

// readFile reads the sections of a file.
func (r *reader) readFile(root *value) (drafts []*entityDraft) {
	sections, ok := r.entries(root, "", fileExample)
	var tiers, clients []*entityDraft
	found := !ok
	for _, s := range sections {
		switch s.key {
		case "tiers":
			found = true
			tiers = r.readTiers(s.value)
		case "clients":
			clients = r.readClients(s.value)
		default:
			r.report(s.at, join("", s.key), "is no field of a rule file; these are: tiers, clients")
		}
	}
	if !found {
		r.report(place{}, "tiers", "is missing; a rule file is %s", fileExample)
	}
	r.checkTiersOf(clients, tiers)
	return append(tiers, clients...)
}

func (r *reader) readTiers(v *value) (tiers []*entityDraft) {
	entries, ok := r.entries(v, "tiers", "{default: ["+ruleExample+"]}")
	if ok && len(entries) == 0 {
		r.report(v.at, "tiers", "is empty; give at least one tier, like default: [%s]", ruleExample)
	}
	for _, e := range r.atMost(entries, MaxTiers, "tiers") {
		path := join("tiers", e.key)
		if problem := nameProblem(e.key); problem != "" {
			r.report(e.at, path, "the tier's name %s", problem)
		}
		ed := &entityDraft{name: EntityName{TierEntity, e.key}, at: e.at, path: path}
		items, _ := r.items(e.value, path, "["+ruleExample+"]")
		r.readRules(ed, items, indexed(path))
		tiers = append(tiers, ed)
	}
	return tiers
}

const clientExample = "{tier: free, rules: [" + ruleExample + "]}"

func (r *reader) readClients(v *value) (clients []*entityDraft) {
	entries, _ := r.entries(v, "clients", "{cust_42: "+clientExample+"}")
	for _, e := range r.atMost(entries, MaxClients, "clients") {
		path := join("clients", e.key)
		if problem := clientProblem(e.key); problem != "" {
			r.report(e.at, path, "the client's id %s", problem)
		}
		ed := &entityDraft{name: EntityName{ClientEntity, e.key}, at: e.at, path: path}
		r.readClient(ed, e.value)
		clients = append(clients, ed)
	}
	return clients
}

// atMost cuts the entries off at the bound, and reports the first one behind it.
func (r *reader) atMost(entries []member, most int, section string) []member {
	if len(entries) <= most {
		return entries
	}
	r.report(entries[most].at, join(section, entries[most].key), "is one too many; at most %d %s are allowed", most, section)
	return entries[:most]
}

// readClient reads a client's mapping, which is the same in a file and in a
// body.
func (r *reader) readClient(ed *entityDraft, v *value) {
	fields, ok := r.entries(v, ed.path, clientExample)
	if ok && len(fields) == 0 {
		r.report(v.at, ed.path, "says nothing; give the client a tier or rules, like %s", clientExample)
	}
	for _, f := range fields {
		path := join(ed.path, f.key)
		switch f.key {
		case "tier":
			ed.tierAt = f.value.at
			ed.tier, _ = r.text(f.value, path, "free")
			if problem := nameProblem(ed.tier); f.value.kind == text && problem != "" {
				r.report(f.value.at, path, "%s", problem)
			}
		case "rules":
			items, _ := r.items(f.value, path, "["+ruleExample+"]")
			r.readRules(ed, items, indexed(path))
		default:
			r.report(f.at, path, "is no field of a client; these are: tier, rules")
		}
	}
}

// checkTiersOf refuses a client whose tier is not in the file.
func (r *reader) checkTiersOf(clients, tiers []*entityDraft) {
	names := map[string]bool{}
	var known []string
	for _, t := range tiers {
		names[t.name.Name] = true
		known = append(known, t.name.Name)
	}
	for _, c := range clients {
		if c.tier != "" && !names[c.tier] {
			r.report(c.tierAt, join(c.path, "tier"), "%q is unknown; %s", clip(c.tier, maxNameBytes), knownTiers(known))
		}
	}
}

// indexed is the path of each item of a list.
func indexed(path string) func(int) string {
	return func(i int) string { return fmt.Sprintf("%s[%d]", path, i) }
}

// readRules reads all rules of a tier or a client.
func (r *reader) readRules(ed *entityDraft, items []*value, path func(int) string) {
	if len(items) > MaxRules {
		r.report(items[MaxRules].at, path(MaxRules), "is one rule too many; a tier or client has at most %d", MaxRules)
		items = items[:MaxRules]
	}
	names, seen, before := map[string]string{}, newPatterns(), len(r.problems)
	for i, item := range items {
		d := r.readRule(item, path(i))
		d.checkName(names)
		ed.rules = append(ed.rules, d)
		ed.patterns = append(ed.patterns, d.checkPattern(seen))
	}
	if len(r.problems) == before {
		ed.checkDimensions()
		ed.checkTies()
		ed.checkTogether()
	}
}

// checkName refuses a name that the tier or client has already. where has the
// place of each name.
func (d *draft) checkName(where map[string]string) {
	if !d.given("name") || d.name == "" {
		return
	}
	if first, twice := where[d.name]; twice {
		d.refuse("name", "%q is the name of the rule %s already; names are unique in a tier and in a client", clip(d.name, maxNameBytes), first)
		return
	}
	where[d.name] = d.where(d.at["name"], d.path)
}

func (d *draft) checkPattern(seen *patterns) pattern {
	if d.pattern == "" {
		return pattern{}
	}
	p, problem := seen.add(d.pattern, d.where(d.at["route_pattern"], d.path))
	if problem != "" {
		d.refuse("route_pattern", "%s", problem)
	}
	return p
}

// checkDimensions bounds how many dimensions there are: a request is charged in
// each of them.
func (ed *entityDraft) checkDimensions() {
	seen := map[dimensionSet]bool{}
	for _, d := range ed.rules {
		if seen[newDimensionSet(d.by)] = true; len(seen) > MaxEntityDimensions {
			d.refuse("by", "is one dimension too many; the rules of a tier or client have at most %d different ones", MaxEntityDimensions)
			return
		}
	}
}

// MaxTies bounds how many rules apply together in one dimension.
const MaxTies = 16

func (ed *entityDraft) checkTies() {
	type tie struct {
		pattern  string
		dim      dimensionSet
		priority int32
	}
	count := map[tie]int{}
	for _, d := range ed.rules {
		t := tie{d.pattern, newDimensionSet(d.by), d.priority}
		if count[t]++; count[t] == MaxTies+1 {
			d.report(d.start, d.path, "is one rule too many of its route_pattern, by and priority; at most %d apply together", MaxTies)
		}
	}
}

// MaxEntityLimits bounds how many rules of a tier or client may apply to one
// request. A request is looked up in three of them: a client, a tier and the default
// tier. Each is bounded by itself, for they are written and spread one by one: two
// that are in order must not be too much together.
const MaxEntityLimits = limit.MaxLimits / 3

// checkTogether counts the most that could apply at once. In each dimension that is
// the most that are tied, and as many as are tied in shadow.
func (ed *entityDraft) checkTogether() {
	type dim struct {
		by     dimensionSet
		shadow bool
	}
	type tie struct {
		dim
		pattern  string
		priority int32
	}
	tied, most, together := map[tie]int{}, map[dim]int{}, 0
	for _, d := range ed.rules {
		t := tie{dim{newDimensionSet(d.by), d.shadow}, d.pattern, d.priority}
		if tied[t]++; tied[t] <= most[t.dim] {
			continue
		}
		if most[t.dim]++; together == MaxEntityLimits {
			d.report(d.start, d.path, "is one rule too many that may apply to one request; at most %d of a tier or client may, over all dimensions (by), with those in shadow", MaxEntityLimits)
			return
		}
		together++
	}
}
