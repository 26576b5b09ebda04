package client

import (
	"math"
	"sync"

	"github.com/ringlimit/ringlimit/internal/wire"
	"github.com/ringlimit/ringlimit/limit"
)

// A call's id is the number of its frame and its place there.
const (
	placeBits  = 9
	frameCalls = 1 << placeBits // wire.MaxCalls
	frameBytes = 16 << 10       // a frame that has calls takes no more beyond this
)

// frame is a batch of calls and of those who wait for their answers.
//
// It is always in one place, under the batcher's mutex: in the queue, or in flight.
// Its packet leaves it sooner: whoever sends it owns it.
type frame struct {
	packet   *wire.Out
	number   uint64
	waiters  []*waiter // in the order of the calls; nil once answered
	left     int       // how many are not
	earliest int64     // no waiter's deadline is before it
	latest   int64     // nor after it
}

// frames is a pool of frames and one of packets.
type frames struct{ empty, packets sync.Pool }

func (p *frames) get(number uint64) *frame {
	f, ok := p.empty.Get().(*frame)
	if !ok {
		f = &frame{waiters: make([]*waiter, 0, 64)}
	}
	f.packet, ok = p.packets.Get().(*wire.Out)
	if !ok {
		f.packet = new(wire.Out)
		*f.packet = make(wire.Out, 0, 4<<10)
	}
	f.number, f.earliest, f.latest = number, math.MaxInt64, math.MinInt64
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

func (p *frames) putPacket(packet *wire.Out) {
	*packet = (*packet)[:0]
	p.packets.Put(packet)
}

// add returns by how many bytes the packet has grown.
func (f *frame) add(req *limit.Request, refund bool, w *waiter) int {
	was := len(*f.packet)
	id := f.number<<placeBits | uint64(len(f.waiters))
	*f.packet = wire.AppendCall(*f.packet, id, req, refund)
	f.waiters = append(f.waiters, w)
	f.left++
	f.earliest = min(f.earliest, w.Deadline)
	f.latest = max(f.latest, w.Deadline)
	return len(*f.packet) - was
}

// hasRoom says whether one more call of at most so many bytes fits.
func (f *frame) hasRoom(bytes int) bool {
	return len(f.waiters) < frameCalls && len(*f.packet)+bytes <= frameBytes
}

// expire fails the waiters whose deadline has passed, and returns how many.
func (f *frame) expire(now int64, p *waiters, err error) (n int) {
	if now < f.earliest {
		return 0
	}
	f.earliest = math.MaxInt64
	for i, w := range f.waiters {
		switch {
		case w == nil:
		case w.Deadline <= now:
			f.waiters[i] = nil
			p.Finish(w, &answer{err: err})
			n++
		default:
			f.earliest = min(f.earliest, w.Deadline)
		}
	}
	f.left -= n
	return n
}

// compact takes the calls that nobody waits for out of the packet, and returns how
// many bytes those were. The others keep their places.
func (f *frame) compact() (bytes int) {
	was := len(*f.packet)
	*f.packet = wire.KeepCalls(*f.packet, func(id uint64) bool { return f.waiters[id%frameCalls] != nil })
	return was - len(*f.packet)
}

// fail fails all that still wait, and returns how many.
func (f *frame) fail(p *waiters, err error) (n int) {
	for i, w := range f.waiters {
		if w != nil {
			f.waiters[i] = nil
			p.Finish(w, &answer{err: err})
			n++
		}
	}
	f.left = 0
	return n
}
