package forward

import (
	"sync"

	"github.com/ringlimit/ringlimit/owner"
)

// Inbox is where one caller waits for the answers to many calls. Whoever has answers
// puts them in, and rings when it has no more of them just then: so the caller is
// woken once for all that came together, and not once for each.
//
// A caller who does not wait for all answers must not use it again. All methods are
// safe for concurrent use, and quick: they are called under locks.
type Inbox struct {
	bell chan struct{} // capacity 1; a ring may be of an earlier caller

	mu      sync.Mutex
	arrived []Arrival
}

// Arrival is the answer to one call, by the index that Put was given.
type Arrival struct {
	Index int
	owner.Result
}

// NewInbox makes an empty one.
func NewInbox() *Inbox { return &Inbox{bell: make(chan struct{}, 1)} }

// Put answers the call of that index, which nothing else does.
func (b *Inbox) Put(index int, r *owner.Result) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.arrived = append(b.arrived, Arrival{index, *r})
}

// Ring wakes the caller.
func (b *Inbox) Ring() {
	select {
	case b.bell <- struct{}{}:
	default:
	}
}

// Answer implements owner.Late, for calls whose first one has the frame's number as
// its index.
func (b *Inbox) Answer(frame uint64, i int, r owner.Result) {
	b.Put(int(frame)+i, &r)
	b.Ring()
}

// Rung receives after a Ring, and perhaps after one that was for an earlier caller.
func (b *Inbox) Rung() <-chan struct{} { return b.bell }

// Take returns what has arrived, in exchange for empty room for what comes next.
func (b *Inbox) Take(room []Arrival) []Arrival {
	b.mu.Lock()
	defer b.mu.Unlock()
	arrived := b.arrived
	b.arrived = room
	return arrived
}
