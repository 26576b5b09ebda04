package rules

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Change is one difference between two Sets.
type Change struct {
	Entity EntityName `json:"entity"`
	Rule   string     `json:"rule,omitempty"`  // empty: of the entity itself
	Field  string     `json:"field,omitempty"` // empty: of the whole rule or entity
	From   string     `json:"from,omitempty"`  // JSON; empty: was not there
	To     string     `json:"to,omitempty"`    // JSON; empty: is not there any more
}

// String is one line, like "tier/free: charges.limit: 100 -> 200".
func (c Change) String() string {
	at := c.Entity.label()
	if path := strings.Join(slices.DeleteFunc([]string{c.Rule, c.Field}, func(s string) bool { return s == "" }), "."); path != "" {
		at += ": " + path
	}
	switch {
	case c.From == "":
		return fmt.Sprintf("%s: added: %s", at, c.To)
	case c.To == "":
		return fmt.Sprintf("%s: removed: %s", at, c.From)
	}
	return fmt.Sprintf("%s: %s -> %s", at, c.From, c.To)
}

// MarshalText makes a name in JSON a text, "tier/free".
func (n EntityName) MarshalText() ([]byte, error) { return []byte(n.String()), nil }

// UnmarshalText reads what MarshalText writes.
func (n *EntityName) UnmarshalText(text []byte) (err error) {
	*n, err = ParseEntityName(string(text))
	return err
}

// Diff is what changes from one Set to the other: tiers before clients, each by
// name, rules in the file's order, those that are gone last.
func Diff(from, to *Set) []Change {
	names := map[EntityName][]byte{}
	maps.Insert(names, from.Entities())
	maps.Insert(names, to.Entities())
	var changes []Change
	for _, n := range sortedNames(names) {
		a, _ := from.Entity(n)
		b, _ := to.Entity(n)
		changes = append(changes, diffEntity(n, a, b)...)
	}
	return changes
}

func diffEntity(n EntityName, from, to []byte) []Change {
	switch {
	case string(from) == string(to):
		return nil
	case from == nil || to == nil:
		return []Change{{Entity: n, From: string(from), To: string(to)}}
	}
	a, b := readShown(from), readShown(to)
	var changes []Change
	if a.Tier != b.Tier {
		changes = append(changes, Change{n, "", "tier", quoteTier(a.Tier), quoteTier(b.Tier)})
	}
	for i, name := range b.names {
		if k, known := a.at[name]; known {
			changes = append(changes, diffRule(n, name, a.Rules[k], b.Rules[i])...)
		} else {
			changes = append(changes, Change{Entity: n, Rule: name, To: string(b.Rules[i])})
		}
	}
	for i, name := range a.names {
		if _, kept := b.at[name]; !kept {
			changes = append(changes, Change{Entity: n, Rule: name, From: string(a.Rules[i])})
		}
	}
	if was, is := a.order(b), b.order(a); was != is {
		changes = append(changes, Change{n, "", "order", was, is})
	}
	return changes
}

func quoteTier(tier string) string {
	if tier == "" {
		return ""
	}
	return string(encode(tier))
}

// shown is an entity as its canonical body shows it.
type shown struct {
	Tier  string
	Rules []json.RawMessage
	names []string       // of the rules
	at    map[string]int // by name
}

func readShown(body []byte) shown {
	s := shown{at: map[string]int{}}
	_ = json.Unmarshal(body, &s) // cannot fail: it is our own
	for i, rule := range s.Rules {
		var named struct{ Name string }
		_ = json.Unmarshal(rule, &named)
		s.names = append(s.names, named.Name)
		s.at[named.Name] = i
	}
	return s
}

// order is the rules that the other one has too, as JSON.
func (s *shown) order(other shown) string {
	common := []string{}
	for _, name := range s.names {
		if _, too := other.at[name]; too {
			common = append(common, name)
		}
	}
	return string(encode(common))
}

func diffRule(n EntityName, name string, from, to json.RawMessage) (changes []Change) {
	if string(from) == string(to) {
		return nil
	}
	var a, b map[string]json.RawMessage
	_, _ = json.Unmarshal(from, &a), json.Unmarshal(to, &b)
	for _, f := range ruleFields {
		if was, is := string(a[f.name]), string(b[f.name]); was != is {
			changes = append(changes, Change{n, name, f.name, was, is})
		}
	}
	return changes
}
