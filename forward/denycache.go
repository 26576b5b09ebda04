package forward

import (
	"math/bits"
	"sync"
	"time"

	"github.com/ringlimit/ringlimit/limit"
	"github.com/ringlimit/ringlimit/owner"
)

// DefaultDenyCacheSize is how many denials are remembered when Config does not
// say: about 1 MB of them.
const DefaultDenyCacheSize = 16 << 10

// maxDenial bounds how long a denial is believed: until then a refund at
// another node goes unnoticed.
const maxDenial = 5 * time.Second

// denyCache remembers denials of other nodes, so that a client who is over the
// limit and does not wait costs no hop. It remembers denials only, so it admits
// nothing, and only those of cost 1: where that is refused, everything is, so
// until the wait is over nothing remains, nothing is taken, and the verdict's
// numbers stay true. While a larger cost is refused, tokens come and smaller
// costs are admitted: what remains, and when all is back, would soon be wrong.
// The rule's id is part of an entry: a changed rule is asked for anew.
//
// Its memory is fixed: a new denial takes the place of the one of its set that
// ends first. Each set has its own lock.
type denyCache struct {
	sets  []denySet
	shift int // the high bits of an ID choose the set
}

const denyWays = 8

type denySet struct {
	mu      sync.Mutex
	forgot  int64 // when forget was last called
	denials [denyWays]denial
}

// denial is an owner's verdict. Times are in Unix nanoseconds of this node.
type denial struct {
	id    owner.ID
	rule  limit.RuleID
	until int64 // when it is no longer certain
	// The verdict's numbers. Its times count from its arrival, so that who
	// waits as told has waited long enough.
	limit, retryAt, resetAt int64
}

func newDenyCache(size int) *denyCache {
	if size <= 0 {
		size = DefaultDenyCacheSize
	}
	n := bits.Len(uint((size+denyWays-1)/denyWays - 1)) // rounded up to a power of two
	return &denyCache{sets: make([]denySet, 1<<n), shift: 64 - n}
}

// set chooses by other bits than the partition: a node asks for few partitions
// of each peer.
func (d *denyCache) set(id owner.ID) *denySet { return &d.sets[id.Lo>>d.shift] }

// find answers a call into v if it is certain to be denied.
func (d *denyCache) find(now int64, c *owner.Call, v *limit.Verdict) bool {
	if c.Cost != 1 {
		return false
	}
	s := d.set(c.ID)
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entry(c)
	if e == nil || now >= e.until {
		return false
	}
	*v = limit.Verdict{
		Source: limit.SourceDenyCache, Limit: e.limit,
		RetryAfter: time.Duration(e.retryAt - now), ResetAfter: time.Duration(e.resetAt - now),
	}
	return true
}

// add remembers the denial of a call that was sent and answered at the given
// times. The owner decided in between: its wait began at sent or later. If a
// refund came in between too, nobody knows which the owner saw first.
func (d *denyCache) add(sent, received int64, c *owner.Call, v *limit.Verdict) {
	until := sent + int64(min(v.RetryAfter, maxDenial))
	if c.Cost != 1 || v.Allowed || v.Reason != limit.NoReason || until <= received {
		return
	}
	s := d.set(c.ID)
	s.mu.Lock()
	defer s.mu.Unlock()
	if sent <= s.forgot {
		return
	}
	e := s.entry(c)
	if e == nil {
		e = s.first()
	}
	*e = denial{
		id: c.ID, rule: c.Rule.ID(), until: until, limit: v.Limit,
		retryAt: received + int64(v.RetryAfter), resetAt: received + int64(v.ResetAfter),
	}
}

// forget drops all denials of a counter, and those still under way at now: for
// its whole set, since a denial that is not remembered costs but a hop.
func (d *denyCache) forget(now int64, id owner.ID) {
	s := d.set(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forgot = max(s.forgot, now)
	for i := range s.denials {
		if s.denials[i].id == id {
			s.denials[i] = denial{}
		}
	}
}

// entry is the denial of such a call, or nil.
func (s *denySet) entry(c *owner.Call) *denial {
	for i := range s.denials {
		if e := &s.denials[i]; e.id == c.ID && e.rule == c.Rule.ID() {
			return e
		}
	}
	return nil
}

// first is the denial that ends first, or a free place.
func (s *denySet) first() *denial {
	first := &s.denials[0]
	for i := range s.denials {
		if e := &s.denials[i]; e.until < first.until {
			first = e
		}
	}
	return first
}
