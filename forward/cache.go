package forward

import (
	"math/bits"
	"sync"

	"github.com/ringlimit/ringlimit/limit"
	"github.com/ringlimit/ringlimit/owner"
)

// DefaultDenyCacheSize is how many denials are remembered when Config does not
// say: about 1 MB of them. Of views there are as many, and half as much again of
// memory once there are requests with several limits.
const DefaultDenyCacheSize = 16 << 10

// cache remembers what was said of counters, each word until it ends. The rule's id
// is part of an entry: a changed rule is asked for anew.
//
// Its memory is fixed: what is new takes the place of what ends first in its set.
// Each set has its own lock.
type cache[Word any] struct {
	sets  []cacheSet[Word]
	shift int // the high bits of an ID choose the set
}

const cacheWays = 8

type cacheSet[Word any] struct {
	mu      sync.Mutex
	forgot  int64 // when forget was last called
	entries [cacheWays]entry[Word]
}

type entry[Word any] struct {
	id    owner.ID
	rule  limit.RuleID
	until int64 // Unix nanoseconds of this node
	word  Word
}

func newCache[Word any](size int) cache[Word] {
	if size <= 0 {
		size = DefaultDenyCacheSize
	}
	n := bits.Len(uint((size+cacheWays-1)/cacheWays - 1)) // rounded up to a power of two
	return cache[Word]{sets: make([]cacheSet[Word], 1<<n), shift: 64 - n}
}

// set chooses by other bits than the partition: a node asks for few partitions
// of each peer.
func (m *cache[Word]) set(id owner.ID) *cacheSet[Word] { return &m.sets[id.Lo>>m.shift] }

// recall is the word on a call's counter, if it has not ended.
func (m *cache[Word]) recall(now int64, c *owner.Call) (word Word, ok bool) {
	s := m.set(c.ID)
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.entry(c); e != nil && now < e.until {
		return e.word, true
	}
	return word, false
}

// keep remembers a word on a call that was sent at the given time. If a refund came
// since, nobody knows which the owner saw first.
func (m *cache[Word]) keep(sent, until int64, c *owner.Call, word Word) {
	s := m.set(c.ID)
	s.mu.Lock()
	defer s.mu.Unlock()
	if sent <= s.forgot {
		return
	}
	e := s.entry(c)
	if e == nil {
		e = s.first()
	}
	*e = entry[Word]{c.ID, c.Rule.ID(), until, word}
}

// forget drops all there is on a counter, and what is still under way at now: for
// its whole set, since what is not remembered costs but a hop.
func (m *cache[Word]) forget(now int64, id owner.ID) {
	s := m.set(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forgot = max(s.forgot, now)
	for i := range s.entries {
		if s.entries[i].id == id {
			s.entries[i] = entry[Word]{}
		}
	}
}

// entry is that of such a call, or nil.
func (s *cacheSet[Word]) entry(c *owner.Call) *entry[Word] {
	for i := range s.entries {
		if e := &s.entries[i]; e.id == c.ID && e.rule == c.Rule.ID() {
			return e
		}
	}
	return nil
}

// first is the entry that ends first, or a free place.
func (s *cacheSet[Word]) first() *entry[Word] {
	first := &s.entries[0]
	for i := range s.entries {
		if e := &s.entries[i]; e.until < first.until {
			first = e
		}
	}
	return first
}
