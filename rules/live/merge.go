package live

import (
	"errors"
	"fmt"

	"github.com/ringlimit/ringlimit/rules"
)

// errTooMuch is why entries of others are refused as a whole.
var errTooMuch = errors.New("there are too many entries, or too many bytes of them")

// Merge takes what is later than the store's own, and tells how many entries that
// was. Entries that this version cannot compile stay without effect; the warnings
// say so. An error means that an entry is none, or has a made-up count, or that all
// together are too much: then nothing has changed. Names may occur more than once.
func (s *Store) Merge(entries []Entry) (changed int, warnings []string, err error) {
	for _, e := range entries {
		if err := e.Check(); err != nil {
			return 0, nil, fmt.Errorf("a bad entry: %w", err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	later := s.later(entries)
	if len(later) == 0 {
		return 0, nil, nil
	}
	if err := s.follows(later); err != nil {
		return 0, nil, err
	}
	if !s.fits(later, s.room) {
		return 0, nil, errTooMuch
	}
	bodies := make(map[rules.EntityName][]byte, len(later))
	for _, e := range later {
		if e.Name.Kind == rules.TierEntity || e.Name.Kind == rules.ClientEntity { // else it is for a later version
			bodies[e.Name] = e.Body
		}
	}
	set, warnings := s.Rules().WithLenient(bodies)
	if err := s.save(later); err != nil { // the others have it: no reason to be without
		warnings = append(warnings, fmt.Sprintf("what has come from other nodes is lost when this one restarts: %v", err))
	}
	s.install(later, set)
	return len(later), warnings, nil
}

// follows says which entry has a count that no writes can have led to. A store
// without entries cannot know: it takes what its cluster has. s.mu is held.
func (s *Store) follows(entries []Entry) error {
	if len(s.entries) == 0 {
		return nil
	}
	highest := s.Summary().Version
	for _, e := range entries {
		if e.Version.Count > highest+maxLead {
			return fmt.Errorf("%s: count %d is more than %d above the highest that is known here, %d", e.Name, e.Version.Count, uint64(maxLead), highest)
		}
	}
	return nil
}

// later picks the latest entry of each name, if it is later than the store's.
// s.mu is held.
func (s *Store) later(entries []Entry) []Entry {
	var picked []Entry
	at := map[rules.EntityName]int{}
	for _, e := range entries {
		i, again := at[e.Name]
		switch {
		case again && e.Stamp().Compare(picked[i].Stamp()) > 0:
			picked[i] = e
		case !again && s.lacks(e.Stamp()):
			at[e.Name] = len(picked)
			picked = append(picked, e)
		}
	}
	return picked
}

// lacks says whether a stamp is later than the store's entry. s.mu is held.
func (s *Store) lacks(t Stamp) bool {
	ours, ok := s.entries[t.Name]
	return !ok || t.Compare(ours.stamp) > 0
}

// Digest is the stamps of all entries, for [Store.Newer] elsewhere.
func (s *Store) Digest() []Stamp {
	s.mu.Lock()
	defer s.mu.Unlock()
	stamps := make([]Stamp, 0, len(s.entries))
	for _, e := range s.entries {
		stamps = append(stamps, e.stamp)
	}
	return stamps
}

// Newer is what a store with these stamps lacks, and the digest that it then
// includes. The bodies are shared; do not change them.
func (s *Store) Newer(than []Stamp) (entries []Entry, digest uint64) {
	theirs := make(map[rules.EntityName]Stamp, len(than))
	for _, t := range than {
		theirs[t.Name] = t
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, e := range s.entries {
		if t, ok := theirs[name]; !ok || e.stamp.Compare(t) > 0 {
			entries = append(entries, e.Entry)
		}
	}
	return entries, s.Summary().Digest
}

// Since is what a store lacks that has the digest given, and the digest that it
// then includes. It is false when this store did not have that digest lately.
func (s *Store) Since(theirs uint64) (entries []Entry, digest uint64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	digest = s.Summary().Digest
	if theirs == digest {
		return nil, digest, true
	}
	i := s.journal.find(theirs)
	if i < 0 {
		return nil, digest, false
	}
	for name := range s.journal.since(i) {
		entries = append(entries, s.entries[name].Entry)
	}
	return entries, digest, true
}

// Includes says whether a store with this digest has nothing that this one lacks,
// as far as is remembered.
func (s *Store) Includes(digest uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return digest == s.Summary().Digest || s.journal.find(digest) >= 0
}
