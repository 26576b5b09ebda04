package peerrpc

import (
	"math"
	"sync"

	"github.com/ringlimit/ringlimit/forward/peerrpc/peerpb"
)

// farewell is the id of the frame by which an owner says that it goes.
const farewell = 0

// frame is a batch of checks and of those who wait for their answers.
//
// It is always in one place: open in the batcher's queue or in flight, under
// the batcher's mutex, or taken out of both, when it belongs to who took it.
// Its packet leaves it sooner: whoever sends it owns it.
type frame struct {
	packet   *peerpb.Frame
	id       uint64
	waiters  []*waiter // in the order of the records; nil once answered
	live     int       // waiters that are not nil
	earliest int64     // no waiter's deadline is before it
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
	f.earliest = math.MaxInt64
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

func (f *frame) add(r *record, w *waiter) {
	f.packet.Records = appendRecord(f.packet.Records, r)
	f.waiters = append(f.waiters, w)
	f.live++
	f.earliest = min(f.earliest, w.deadline)
}

func (f *frame) hasRoom(r *record) bool {
	return len(f.waiters) < maxRecords && len(f.packet.Records)+r.maxSize() <= frameBytes
}

// expire fails the waiters whose deadline has passed.
func (f *frame) expire(now int64, p *waiters, a *answer) {
	if now < f.earliest {
		return
	}
	f.earliest = math.MaxInt64
	for i, w := range f.waiters {
		switch {
		case w == nil:
		case w.deadline <= now:
			f.waiters[i] = nil
			f.live--
			p.finish(w, a)
		default:
			f.earliest = min(f.earliest, w.deadline)
		}
	}
}

// fail fails all that still wait.
func (f *frame) fail(p *waiters, a *answer) {
	for _, w := range f.waiters {
		if w != nil {
			p.finish(w, a)
		}
	}
}
