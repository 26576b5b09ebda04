package live

import (
	"fmt"

	"github.com/ringlimit/ringlimit/rules"
)

// Put writes an entity, and returns what it replaces: the zero Entry or a tombstone
// if there was nothing. The body is JSON as package rules reads it for the entity's
// kind. The error is package rules' for a bad body, ErrPrecondition, ErrFull, or
// that of the file; then nothing has changed.
func (s *Store) Put(name rules.EntityName, body []byte, p Precondition) (was, is Entry, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	was = s.entries[name].Entry
	if err := p.check(was); err != nil {
		return Entry{}, Entry{}, err
	}
	canonical, err := parse(name, body, was.Body)
	if err != nil {
		return Entry{}, Entry{}, err
	}
	written, err := s.write(map[rules.EntityName][]byte{name: canonical})
	if err != nil {
		return Entry{}, Entry{}, err
	}
	return was, written[0], nil
}

// parse reads a body. A single rule goes into what the tier has now.
func parse(name rules.EntityName, body, current []byte) ([]byte, error) {
	switch name.Kind {
	case rules.TierEntity:
		return rules.ParseTierBody(name.Name, body, current)
	case rules.ClientEntity:
		return rules.ParseClientBody(name.Name, body)
	}
	return nil, fmt.Errorf("%s: there is no such kind", name)
}

// Delete deletes an entity, and returns what was there and the tombstone. The error
// is ErrNotFound, ErrPrecondition, ErrInUse or that of the file; then nothing has
// changed.
func (s *Store) Delete(name rules.EntityName, p Precondition) (was, is Entry, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	was = s.entries[name].Entry
	if was.Body == nil {
		return Entry{}, Entry{}, ErrNotFound
	}
	if name.Kind == rules.TierEntity && s.Rules().Clients(name.Name) > 0 {
		return Entry{}, Entry{}, ErrInUse
	}
	if err := p.check(was); err != nil { // last; see RFC 9110, section 13.2.1
		return Entry{}, Entry{}, err
	}
	written, err := s.write(map[rules.EntityName][]byte{name: nil})
	if err != nil {
		return Entry{}, Entry{}, err
	}
	return was, written[0], nil
}

// Apply writes each entity of set that differs from the store's, all in one. What
// set lacks stays. The changes are those of the rules in force; one of an entity that
// this version could not read is from its whole body.
func (s *Store) Apply(set *rules.Set) ([]rules.Change, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	changes := s.differing(set)
	if len(changes) == 0 {
		return nil, nil
	}
	before, was := s.Rules(), make(map[rules.EntityName][]byte, len(changes))
	for name := range changes {
		was[name] = s.entries[name].Body
	}
	if _, err := s.write(changes); err != nil {
		return nil, err
	}
	made := rules.Diff(before, s.Rules())
	for i, c := range made {
		if c.Rule == "" && c.Field == "" && c.From == "" {
			made[i].From = string(was[c.Entity]) // what could not be read was there all the same
		}
	}
	return made, nil
}

// Differs says whether set has an entity that is not the store's.
func (s *Store) Differs(set *rules.Set) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.differing(set)) > 0
}

func (s *Store) differing(set *rules.Set) map[rules.EntityName][]byte {
	changes := map[rules.EntityName][]byte{}
	for name, body := range set.Entities() {
		if string(s.entries[name].Body) != string(body) {
			changes[name] = body
		}
	}
	return changes
}

// write stamps changes as one, all or none. s.mu is held.
func (s *Store) write(changes map[rules.EntityName][]byte) ([]Entry, error) {
	set, err := s.Rules().With(changes)
	if err != nil {
		return nil, err
	}
	version := Version{s.Summary().Version + 1, s.node}
	written := make([]Entry, 0, len(changes))
	for name, body := range changes {
		e := Entry{name, version, body}
		if err := e.Check(); err != nil {
			return nil, err
		}
		written = append(written, e)
	}
	if version.Count > maxCount || !s.fits(written, s.room.half()) {
		return nil, ErrFull
	}
	if err := s.save(written); err != nil {
		return nil, err
	}
	s.install(written, set)
	return written, nil
}

// Seed makes set the rules of a store that has never held any, and says whether
// it was one. A file that cannot be written is told of by the error; the rules are
// in force all the same.
func (s *Store) Seed(set *rules.Set) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.entries) > 0 {
		return false, nil
	}
	var seeds []Entry
	for name, body := range set.Entities() {
		seeds = append(seeds, SeedOf(name, body))
	}
	if len(seeds) == 0 {
		return true, nil
	}
	err := s.save(seeds)
	s.install(seeds, set)
	return true, err
}
