package peerrpc

import (
	"math"
	"sync"

	"github.com/ringlimit/ringlimit/forward/peerrpc/peerpb"
)

// Ids that no question bears.
const (
	farewell    = 0              // an owner says that it goes
	lateAnswers = math.MaxUint64 // answers that an owner has put off; see promises
)

// frame is a batch of checks and of those who wait for their answers.
//
// It is always in one place: in the batcher's queue, in flight or late, under
// the batcher's mutex, or taken out of them, when it belongs to who took it.
// Its packet leaves it sooner: whoever sends it owns it.
type frame struct {
	packet   *peerpb.Frame
	id       uint64
	waiters  []*waiter // in the order of the records; nil once answered
	left     int       // of a late frame: how many of them still wait
	earliest int64     // no waiter's deadline is before it
	latest   int64     // nor after it
}

// frames is a pool of frames and one of packets.
type frames struct{ empty, packets sync.Pool }

func (p *frames) get() *frame {
	f, ok := p.empty.Get().(*frame)
	if !ok {
		f = &frame{waiters: make([]*waiter, 0, 64)}
	}
	f.packet, ok = p.packets.Get().(*peerpb.Frame)
	if !ok {
		f.packet = &peerpb.Frame{Records: make([]byte, 0, 4<<10)}
	}
	f.earliest, f.latest = math.MaxInt64, math.MinInt64
	return f
}

func (p *frames) put(f *frame) {
	if f.packet != nil {
		p.putPacket(f.packet)
	}
	clear(f.waiters)
	*f = frame{waiters: f.waiters[:0]}
	p.empty.Put(f)
}

func (p *frames) putPacket(packet *peerpb.Frame) {
	packet.Records = packet.Records[:0]
	p.packets.Put(packet)
}

// add returns by how many bytes the packet has grown.
func (f *frame) add(r *record, w *waiter) int {
	was := len(f.packet.Records)
	f.packet.Records = appendRecord(f.packet.Records, r)
	f.waiters = append(f.waiters, w)
	f.earliest = min(f.earliest, w.Deadline)
	f.latest = max(f.latest, w.Deadline)
	return len(f.packet.Records) - was
}

// hasRoom says whether so many more records fit, of so many bytes together.
func (f *frame) hasRoom(records, bytes int) bool {
	return len(f.waiters)+records <= maxRecords && len(f.packet.Records)+bytes <= frameBytes
}

// patience is how long the most patient of the waiters waits from now on, in
// microseconds.
func (f *frame) patience(now int64) uint64 { return uint64(max(0, f.latest-now)) / 1000 }

// expire fails the waiters whose deadline has passed, and returns how many.
func (f *frame) expire(now int64, p *waiters, a *answer) (n int) {
	if now < f.earliest {
		return 0
	}
	f.earliest = math.MaxInt64
	for i, w := range f.waiters {
		switch {
		case w == nil:
		case w.Deadline <= now:
			f.waiters[i] = nil
			p.Finish(w, a)
			n++
		default:
			f.earliest = min(f.earliest, w.Deadline)
		}
	}
	return n
}

// compact takes the records that nobody waits for out of the packet, and
// returns how many records and bytes those were.
func (f *frame) compact() (records, bytes int) {
	waiters, packed := f.waiters[:0], f.packet.Records[:0]
	for i, rest := 0, f.packet.Records; len(rest) > 0; i++ {
		var r record
		first := rest
		rest, _ = cutRecord(first, &r) // our own, so it is whole
		if w := f.waiters[i]; w != nil {
			waiters = append(waiters, w)
			packed = append(packed, first[:len(first)-len(rest)]...)
		}
	}
	records, bytes = len(f.waiters)-len(waiters), len(f.packet.Records)-len(packed)
	clear(f.waiters[len(waiters):])
	f.waiters, f.packet.Records = waiters, packed
	return records, bytes
}

// fail fails all that still wait.
func (f *frame) fail(p *waiters, a *answer) {
	for _, w := range f.waiters {
		if w != nil {
			p.Finish(w, a)
		}
	}
}
