package ringlimit

import (
	"sync"
	"time"

	"github.com/ringlimit/ringlimit/membership"
)

// askable is how long a member that gossip has given up can still be reached: so
// long the protocol asks it for counters, for gossip may be wrong.
const askable = time.Minute

// book is where members are, those that are gone a while too. It is a leaf: its
// lock is held for a look-up, and nothing else is called under it.
type book struct {
	mu      sync.Mutex
	entries map[membership.NodeID]entry
}

type entry struct {
	member membership.Member
	lost   time.Time // when it vanished from the view; zero while it is in it
}

// update takes over a view.
func (b *book) update(v membership.View, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for id, e := range b.entries {
		switch {
		case e.lost.IsZero(): // unless it is in this view too
			b.entries[id] = entry{e.member, now}
		case now.Sub(e.lost) > askable:
			delete(b.entries, id)
		}
	}
	for _, m := range v.Members {
		b.entries[m.ID] = entry{member: m}
	}
}

// find is the latest run of a node that was heard of.
func (b *book) find(id membership.NodeID) (membership.Member, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e, ok := b.entries[id]
	return e.member, ok
}

// members is everyone in the book.
func (b *book) members() []membership.Member {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := make([]membership.Member, 0, len(b.entries))
	for _, e := range b.entries {
		all = append(all, e.member)
	}
	return all
}
