package driver

import (
	"math"
	"slices"
	"time"

	"github.com/ringlimit/ringlimit/owner"
)

const (
	// mostParked is how many checks may wait for one partition. The others are
	// told to ask again.
	mostParked = 1024
	// sweepEvery is how long a check may be kept, at least, that nobody waits for
	// any more: to look at all of them at each tick would cost more than they do.
	sweepEvery = int64(100 * time.Millisecond)
)

// parked is a call that waits until its partition is held.
type parked struct {
	call     owner.Call // the name is our own
	deadline int64
	to       owner.Late
	frame    uint64
	i        int
	since    int64 // when it was parked, Unix nanoseconds
}

// age makes what a Refund gives back as old as it has become here: in a window that
// has begun meanwhile it would mint. An age that its asker did not know stays so.
func (k *parked) age(now int64) {
	if k.call.Age > 0 {
		k.call.Age += time.Duration(now - k.since)
	}
}

// over says whether the asker has given up.
func (k *parked) over(now int64) bool {
	l, here := k.to.(*local)
	return now >= k.deadline || here && l.left
}

// parking is the calls that wait, by partition. The driver's lock guards it.
type parking struct {
	queues map[int]*queue
	swept  int64
}

// queue is the calls that wait for one partition.
type queue struct {
	calls   []*parked
	soonest int64 // no call's deadline is before
}

// add keeps a call, if there is room.
func (g *parking) add(now int64, p int, k *parked) bool {
	q := g.queues[p]
	if q == nil {
		q = &queue{soonest: math.MaxInt64}
		g.queues[p] = q
	}
	if len(q.calls) >= mostParked && now >= q.soonest {
		q.sweep(now)
	}
	if len(q.calls) >= mostParked {
		return false
	}
	k.call.Counter, k.since = slices.Clone(k.call.Counter), now
	q.calls, q.soonest = append(q.calls, k), min(q.soonest, k.deadline)
	return true
}

// take ends the wait for a partition.
func (g *parking) take(p int) []*parked {
	q := g.queues[p]
	if q == nil {
		return nil
	}
	delete(g.queues, p)
	return q.calls
}

// sweep drops what nobody waits for any more. A partition may be long in coming.
func (g *parking) sweep(now int64) {
	if len(g.queues) == 0 || now-g.swept < sweepEvery {
		return
	}
	g.swept = now
	for p, q := range g.queues {
		if q.sweep(now); len(q.calls) == 0 {
			delete(g.queues, p)
		}
	}
}

func (q *queue) sweep(now int64) {
	q.calls = slices.DeleteFunc(q.calls, func(k *parked) bool { return k.over(now) })
	q.soonest = math.MaxInt64
	for _, k := range q.calls {
		q.soonest = min(q.soonest, k.deadline)
	}
}
