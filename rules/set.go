package rules

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"unique"

	"github.com/ringlimit/ringlimit/limit"
)

// DefaultTier is the tier of requests that name none and whose client has none,
// and the last level that is looked at.
const DefaultTier = "default"

// Set is all rules in force, compiled. It is immutable and safe for concurrent
// use. The zero Set has no rules.
type Set struct {
	tiers, clients map[string]entity
	bytes          int // of all bodies
	shared         shared
	byHandle       map[unique.Handle[string]]entity // tiers, as clients name theirs
	standard       entity                           // the default tier; the zero entity when there is none
	known          string                           // which tiers there are
	misfits        []string                         // warnings of what does not fit together

	limits sync.Once // LimitsJSON
	json   []byte
}

// copied is a Set of the same entities, to be changed and then linked.
func (s *Set) copied() *Set {
	return &Set{tiers: cloneMap(s.tiers), clients: cloneMap(s.clients), bytes: s.bytes, shared: s.shared.copied(s)}
}

func cloneMap[V any](m map[string]V) map[string]V {
	if m == nil {
		return map[string]V{}
	}
	return maps.Clone(m)
}

// put sets an entity.
func (s *Set) put(name EntityName, e entity) {
	s.remove(name)
	s.of(name.Kind)[name.Name] = s.shared.entity(e)
	s.bytes += len(e.body)
}

// remove deletes an entity, if it is there.
func (s *Set) remove(name EntityName) {
	if e := s.of(name.Kind)[name.Name]; e.exists() {
		delete(s.of(name.Kind), name.Name)
		s.bytes -= len(e.body)
	}
}

func (s *Set) of(kind EntityKind) map[string]entity {
	if kind == ClientEntity {
		return s.clients
	}
	return s.tiers
}

// link completes the Set when all its entities are there.
func (s *Set) link() {
	s.standard, s.byHandle = s.tiers[DefaultTier], make(map[unique.Handle[string]]entity, len(s.tiers))
	for _, e := range s.tiers {
		s.byHandle[e.tier] = e
	}
	s.known = knownTiers(slices.Collect(maps.Keys(s.tiers)))
	s.misfits = s.findMisfits()
}

func (s *Set) unknownTier(name string) error {
	return &limit.InputError{Field: "tier", Problem: fmt.Sprintf("%q is unknown; %s", clip(name, maxNameBytes), cmp.Or(s.known, knownTiers(nil)))}
}

// entities are the tiers, then the clients, each by name.
func (s *Set) entities() iter.Seq2[EntityName, entity] {
	return func(yield func(EntityName, entity) bool) {
		for _, kind := range []EntityKind{TierEntity, ClientEntity} {
			m := s.of(kind)
			for _, name := range slices.Sorted(maps.Keys(m)) {
				if !yield(EntityName{kind, name}, m[name]) {
					return
				}
			}
		}
	}
}

// Entities are the canonical bodies of all tiers, then of all clients, each by
// name. The bytes are shared; do not change them.
func (s *Set) Entities() iter.Seq2[EntityName, []byte] {
	return func(yield func(EntityName, []byte) bool) {
		for name, e := range s.entities() {
			if !yield(name, e.body) {
				return
			}
		}
	}
}

// Entity is the canonical body of one tier or client. The bytes are shared; do
// not change them.
func (s *Set) Entity(n EntityName) (body []byte, ok bool) {
	e := s.of(n.Kind)[n.Name]
	if !e.exists() {
		return nil, false
	}
	return e.body, true
}

// Rules are all rules that count, in the order of Entities and within them in
// the file's; so not the unlimited ones.
func (s *Set) Rules() iter.Seq[*limit.Rule] {
	return func(yield func(*limit.Rule) bool) {
		for _, e := range s.entities() {
			for i, r := range e.rules {
				if !r.unlimited && !yield(&e.limits[i]) {
					return
				}
			}
		}
	}
}

// Warnings are what is allowed but probably not meant, each with its file or
// entity, line and field.
func (s *Set) Warnings() []string {
	var all []string
	for _, e := range s.entities() {
		all = append(all, e.warnings...)
	}
	return append(all, s.misfits...)
}

// maxKnownTiers bounds how many tiers an error names.
const maxKnownTiers = 10

// knownTiers says which tiers there are.
func knownTiers(names []string) string {
	if len(names) == 0 {
		return "there are no tiers"
	}
	slices.Sort(names)
	listed := names[:min(len(names), maxKnownTiers)]
	text := "known are " + strings.Join(listed, ", ")
	if more := len(names) - len(listed); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
