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
	seats    []seat // in the order of the records; empty once answered
	left     int    // of a late frame: how many of them are still taken
	earliest int64  // no deadline is before it
	latest   int64  // nor after it
}

// frames is a pool of frames and one of packets.
type frames struct{ empty, packets sync.Pool }

func (p *frames) get() *frame {
	f, ok := p.empty.Get().(*frame)
	if !ok {
		f = &frame{seats: make([]seat, 0, 64)}
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
	clear(f.seats)
	*f = frame{seats: f.seats[:0]}
	p.empty.Put(f)
}

func (p *frames) putPacket(packet *peerpb.Frame) {
	packet.Records = packet.Records[:0]
	p.packets.Put(packet)
}

// add returns by how many bytes the packet has grown.
func (f *frame) add(r *record, s seat) int {
	was := len(f.packet.Records)
	f.packet.Records = appendRecord(f.packet.Records, r)
	f.seats = append(f.seats, s)
	f.earliest = min(f.earliest, s.deadline)
	f.latest = max(f.latest, s.deadline)
	return len(f.packet.Records) - was
}

// hasRoom says whether so many more records fit, of so many bytes together.
func (f *frame) hasRoom(records, bytes int) bool {
	return len(f.seats)+records <= maxRecords && len(f.packet.Records)+bytes <= frameBytes
}

// patience is how long the most patient of those who wait does so from now on, in
// microseconds.
func (f *frame) patience(now int64) uint64 { return uint64(max(0, f.latest-now)) / 1000 }

// expire fails the checks whose deadline has passed, and returns how many.
func (f *frame) expire(now int64, p *waiters, a *answer) (n int) {
	if now < f.earliest {
		return 0
	}
	f.earliest = math.MaxInt64
	for i := range f.seats {
		switch s := &f.seats[i]; {
		case s.empty():
		case s.deadline <= now:
			s.answer(p, a)
			s.ring()
			*s = seat{}
			n++
		default:
			f.earliest = min(f.earliest, s.deadline)
		}
	}
	return n
}

// compact takes the records that nobody waits for out of the packet, and
// returns how many records and bytes those were.
func (f *frame) compact() (records, bytes int) {
	seats, packed := f.seats[:0], f.packet.Records[:0]
	for i, rest := 0, f.packet.Records; len(rest) > 0; i++ {
		var r record
		first := rest
		rest, _ = cutRecord(first, &r) // our own, so it is whole
		if s := f.seats[i]; !s.empty() {
			seats = append(seats, s)
			packed = append(packed, first[:len(first)-len(rest)]...)
		}
	}
	records, bytes = len(f.seats)-len(seats), len(f.packet.Records)-len(packed)
	clear(f.seats[len(seats):])
	f.seats, f.packet.Records = seats, packed
	return records, bytes
}

// fail fails all that still wait.
func (f *frame) fail(p *waiters, a *answer) {
	for i := range f.seats {
		if s := &f.seats[i]; !s.empty() {
			s.answer(p, a)
			s.ring()
		}
	}
}
