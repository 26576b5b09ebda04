package client

import (
	"sync"
	"time"
)

// What a retry costs, and how it is earned, in time: 10 of them come with each
// second and one with five calls of Wait.
const (
	retryCost      = int64(100 * time.Millisecond)
	firstEarns     = retryCost / 5
	defaultReserve = 256
)

// budget bounds the retries of a client, so that those who are denied do not
// multiply the load that they are denied for. A retry that is admitted is given back:
// it was no waste, and the limit bounds how many there are. So retries in vain, and
// those under way, are together at most
//
//	reserve + seconds · 10 + first attempts / 5
//
// It is a token bucket, kept as the time at which it would be full again if nobody
// spent or earned; the shares are those of Finagle's RetryBudget.
type budget struct {
	reserve int64 // ns

	mu   sync.Mutex
	full int64 // by the client's clock, ns
}

func newBudget(retries int) *budget { return &budget{reserve: int64(retries) * retryCost} }

// earn is for a first attempt. What a full budget earns is lost.
func (b *budget) earn(now int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.full = max(now, b.full-firstEarns)
}

// spend is for a retry, and says whether it may be made.
func (b *budget) spend(now int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	full := max(now, b.full) + retryCost
	if full-now > b.reserve {
		return false
	}
	b.full = full
	return true
}

// giveBack is for a retry that was admitted, or never made.
func (b *budget) giveBack() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.full -= retryCost // what was full meanwhile is full
}
