package live

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/ringlimit/ringlimit/rules"
)

// Store is one node's copy of the cluster's rules. It is safe for concurrent use.
type Store struct {
	node    string
	keep    func([]Entry) error
	rules   atomic.Pointer[rules.Set]
	summary atomic.Pointer[Summary]
	changed chan struct{}
	room    room

	mu      sync.Mutex
	entries map[rules.EntityName]stored
	bytes   int
	journal journal
}

// stored is an entry and what is computed once.
type stored struct {
	Entry
	stamp Stamp
	hash  uint64
}

// NewStore makes an empty store for the node of this name.
func NewStore(node string) *Store {
	s := &Store{node: node, changed: make(chan struct{}, 1), room: room{MaxEntries, MaxBytes}, entries: map[rules.EntityName]stored{}}
	s.rules.Store(new(rules.Set))
	s.summary.Store(new(Summary))
	return s
}

// KeepIn has every change written to a file in dir before it is in force; dir is
// made if it is not there. What the file holds already is in force at once. The
// strings are warnings to log; the error means that the file cannot be used, and
// that nothing was read.
func (s *Store) KeepIn(dir string) (warnings []string, err error) {
	f := FileIn(dir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	entries, warnings, err := f.Load()
	if err != nil {
		return warnings, err
	}
	_, more, err := s.Merge(entries)
	if err != nil {
		return warnings, fmt.Errorf("%s: %w", f.Path(), err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keep = f.Save
	return append(warnings, more...), nil
}

// Rules is what is in force. It is one atomic load.
func (s *Store) Rules() *rules.Set { return s.rules.Load() }

// Summary is what others are told of the store. It is one atomic load.
func (s *Store) Summary() Summary { return *s.summary.Load() }

// Changed receives after changes, once for those that come together. It is for
// one reader.
func (s *Store) Changed() <-chan struct{} { return s.changed }

// Empty says whether the store has never held anything.
func (s *Store) Empty() bool { return s.Summary() == Summary{} }

// Get is the entry of an entity that exists.
func (s *Store) Get(name rules.EntityName) (Entry, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entries[name]
	return e.Entry, e.Body != nil
}

// all is every entry with changed in the place of what was, by name. s.mu is held.
func (s *Store) all(changed []Entry) []Entry {
	next := make(map[rules.EntityName]Entry, len(s.entries)+len(changed))
	for name, e := range s.entries {
		next[name] = e.Entry
	}
	for _, e := range changed {
		next[e.Name] = e
	}
	return slices.SortedFunc(maps.Values(next), func(a, b Entry) int {
		return cmp.Or(cmp.Compare(a.Name.Kind, b.Name.Kind), cmp.Compare(a.Name.Name, b.Name.Name))
	})
}

// save writes what is to come. s.mu is held.
func (s *Store) save(changed []Entry) error {
	if s.keep == nil {
		return nil
	}
	return s.keep(s.all(changed))
}

// fits says whether there is room for changed too. What makes the store no larger
// always fits: else nobody could shrink one that merges have filled. s.mu is held.
func (s *Store) fits(changed []Entry, r room) bool {
	n, size := len(s.entries), s.bytes
	for _, e := range changed {
		old, exists := s.entries[e.Name]
		size += e.size()
		if exists {
			size -= old.size()
		} else {
			n++
		}
	}
	return n <= len(s.entries) && size <= s.bytes || n <= r.entries && size <= r.bytes
}

func (e Entry) size() int { return len(e.Name.Name) + len(e.Body) }

// install puts changed in force, compiled as set. Each name occurs once in it.
// s.mu is held.
func (s *Store) install(changed []Entry, set *rules.Set) {
	was := s.Summary()
	now := was
	names := make([]rules.EntityName, 0, len(changed))
	for _, e := range changed {
		old := s.entries[e.Name] // its zero value takes nothing away
		stamp := e.Stamp()
		next := stored{e, stamp, stamp.hash()}
		s.entries[e.Name] = next
		if old.hash != 0 {
			s.bytes -= old.size()
		}
		s.bytes += e.size()
		now.Digest += next.hash - old.hash
		now.Version = max(now.Version, e.Version.Count)
		names = append(names, e.Name)
	}
	s.journal.note(was.Digest, names)
	s.rules.Store(set)
	s.summary.Store(&now)
	select {
	case s.changed <- struct{}{}:
	default: // not yet read
	}
}
