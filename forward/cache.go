package forward

import (
	"math"
	"math/bits"
	"sync"
	"sync/atomic"

	"github.com/ringlimit/ringlimit/limit"
	"github.com/ringlimit/ringlimit/owner"
)

// DefaultDenyCacheSize is how many denials are remembered when Config does not
// say: about 2 MB of them. Of views there are as many, and half as much again of
// memory once there are requests with several limits.
const DefaultDenyCacheSize = 16 << 10

// cache remembers what was said of counters, each word until it ends. The rule's id
// is part of an entry: a changed rule is asked for anew.
//
// Its memory is bounded: what is new takes the place of what ends first in its set.
// Each set has its own lock, for changes; whoever looks takes none, so that a flood
// on one counter is answered on all cores at once.
type cache[Word any] struct {
	sets  []cacheSet[Word]
	shift int // the high bits of an ID choose the set
}

const cacheWays = 8

type cacheSet[Word any] struct {
	until   atomic.Int64                           // everything in the set has ended then
	tags    [cacheWays]atomic.Uint64               // ID.Hi of each entry: most looks end here
	entries [cacheWays]atomic.Pointer[entry[Word]] // immutable; nil: a free place

	mu     sync.Mutex // to change any of this
	forgot int64      // when forget was last called
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

// recall is the word on a call's counter, or nil if there is none, or it has ended.
// It is not to be changed.
func (m *cache[Word]) recall(now int64, c *owner.Call) *Word {
	s := m.set(c.ID)
	if now >= s.until.Load() {
		return nil
	}
	if e := s.entry(c.ID, c.Rule.ID()); e != nil && now < e.until {
		return &e.word
	}
	return nil
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
	s.put(&entry[Word]{c.ID, c.Rule.ID(), until, word})
}

// forget drops all there is on a counter, and what is still under way at now: for
// its whole set, since what is not remembered costs but a hop.
func (m *cache[Word]) forget(now int64, id owner.ID) {
	s := m.set(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forgot = max(s.forgot, now)
	for i := range s.entries {
		if e := s.entries[i].Load(); e != nil && e.id == id {
			s.entries[i].Store(nil)
		}
	}
}

// entry is that of such a call, or nil.
func (s *cacheSet[Word]) entry(id owner.ID, rule limit.RuleID) *entry[Word] {
	for i := range s.tags {
		if s.tags[i].Load() != id.Hi {
			continue
		}
		if e := s.entries[i].Load(); e != nil && e.id == id && e.rule == rule {
			return e
		}
	}
	return nil
}

// put replaces the entry of the same counter and rule, or else the one that ends
// first. Whoever looks meanwhile misses one, if anything. s.mu is held.
func (s *cacheSet[Word]) put(e *entry[Word]) {
	at, first := 0, int64(math.MaxInt64)
	for i := range s.entries {
		old := s.entries[i].Load()
		if old != nil && old.id == e.id && old.rule == e.rule {
			at = i
			break
		}
		if ends := old.ends(); ends < first {
			at, first = i, ends
		}
	}
	s.entries[at].Store(e)
	s.tags[at].Store(e.id.Hi)
	s.until.Store(max(s.until.Load(), e.until))
}

// ends is when a place may be used for another entry.
func (e *entry[Word]) ends() int64 {
	if e == nil {
		return math.MinInt64
	}
	return e.until
}
