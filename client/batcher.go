package client

import (
	"errors"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ringlimit/ringlimit/internal/wire"
	"github.com/ringlimit/ringlimit/limit"
)

// maxUnread is how many messages may be on their way that the node has not read.
// One leaves the wire idle while the node is at work; more than two only make the
// messages smaller.
const maxUnread = 2

// Bounds on the calls that wait for one node. A node that hangs takes each of them
// for a whole timeout: beyond the bounds they are refused at once.
const (
	maxPending = 16 << 10 // calls, sent or not
	maxQueued  = 8 << 20  // bytes not sent
)

// link is the state of the way to a node.
type link int32

const (
	connecting link = iota // calls wait, if no other node is up
	up
	down // calls fail at once
)

// batcher gathers calls into messages. There is no timer and no goroutine to write:
// callers add their call to the open frame, and who finds fewer than two messages
// unread leads, that is, takes the frame and sends it. So a lone call leaves at
// once, and what arrives meanwhile shares the next message. The reader of the
// answers leads when calls are left over.
//
// It is the mechanism of the streams between nodes (package peerrpc), but for two
// things: there a frame is answered whole, in its order, while here answers come one
// by one and the node says besides how much it has read. And what is not sent when a
// stream ends waits there for the next one, as only this owner may decide, while
// here another node takes it.
//
// One goroutine, the stream's reader, calls start, answer, leave and fail; any may
// call release.
type batcher struct {
	now func() int64
	// wake is told when the next scan for overdue calls is due, if that is sooner
	// than it was told before.
	wake func(in time.Duration)
	load atomic.Int64 // calls that are not answered, for who chooses a node
	link atomic.Int32 // written under mu

	waiters waiters
	frames  frames
	heard   []*waiter // the reader's, kept from message to message

	mu      sync.Mutex
	session *session          // what messages are sent on; nil unless link is up
	ending  *session          // to be closed once nobody waits for an answer on it
	leading bool              // someone is about to take the first frame of the queue
	queue   []*frame          // not sent; the last one is open
	flying  map[uint64]*frame // sent, and not answered whole; by number
	last    uint64            // number of the latest frame
	sent    uint64            // messages, on this stream
	read    uint64            // of these by the node
	pending int               // calls that are not answered
	queued  int               // bytes in queue
	scanAt  int64             // when the next scan is due; math.MaxInt64: none is
}

func newBatcher(now func() int64, wake func(time.Duration)) *batcher {
	return &batcher{now: now, wake: wake, flying: map[uint64]*frame{}, scanAt: math.MaxInt64}
}

func (b *batcher) is(l link) bool { return link(b.link.Load()) == l }

// add puts a call into the open frame and says whether the caller leads: it then has
// to call lead. After an error the waiter still belongs to the caller.
func (b *batcher) add(req *limit.Request, refund bool, w *waiter) (leads bool, err error) {
	size := wire.MaxCallSize(req)
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.is(down):
		return false, errNotSent
	case b.pending >= maxPending, b.queued+size > maxQueued:
		return false, ErrOverloaded
	}
	b.queued += b.open(size).add(req, refund, w)
	b.count(1)
	b.due(w.Deadline)
	return b.claimLead(), nil
}

// open is the last frame of the queue, or a new one if so much does not fit there.
func (b *batcher) open(bytes int) *frame {
	if n := len(b.queue); n > 0 && b.queue[n-1].hasRoom(bytes) {
		return b.queue[n-1]
	}
	b.last++
	f := b.frames.get(b.last)
	b.queue = append(b.queue, f)
	return f
}

// count keeps how many calls are pending.
func (b *batcher) count(more int) {
	b.pending += more
	b.load.Store(int64(b.pending))
}

// due sees to it that there is a scan at that time.
func (b *batcher) due(deadline int64) {
	if deadline < b.scanAt {
		b.scanAt = deadline
		b.wake(time.Duration(deadline - b.now()))
	}
}

// claimLead makes the caller the leader, if one is wanted. b.mu is held.
func (b *batcher) claimLead() bool {
	if b.leading || b.session == nil || b.sent-b.read >= maxUnread || len(b.queue) == 0 {
		return false
	}
	b.leading = true
	return true
}

// lead sends the first frame of the queue. The yield lets those who are about to add
// a call do it: without it the messages stay small.
func (b *batcher) lead() {
	runtime.Gosched()
	packet, s := b.take(b.now())
	if packet == nil {
		return
	}
	s.write(packet)
	b.frames.putPacket(packet)
}

// take ends a lead: the first frame of the queue is in flight, and its packet is the
// caller's to send. Nil: the frame is gone, because its calls were overdue or the
// stream broke.
func (b *batcher) take(now int64) (*wire.Out, *session) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.leading = false
	if b.session == nil || len(b.queue) == 0 {
		return nil, nil
	}
	f := b.queue[0]
	b.queue = slices.Delete(b.queue, 0, 1)
	packet := f.packet
	b.queued -= len(*packet)
	*packet = wire.AppendTimeout(*packet, time.Duration(max(1, f.latest-now)))
	f.packet = nil
	b.flying[f.number] = f
	b.sent++
	return packet, b.session
}

var errBadMessage = errors.New("the node answers what was not asked")

// answer hands out the answers of one message. Its error ends the stream.
func (b *batcher) answer(r *wire.Response) error {
	leads, err := b.claim(r)
	for i, w := range b.heard {
		if w != nil {
			reply := &r.Replies[i]
			b.waiters.Finish(w, &answer{reply.Verdict, errorOf(reply.Err)})
		}
	}
	clear(b.heard)
	if leads {
		b.lead()
	}
	return err
}

// claim finds those who wait for the answers; they then belong to the caller, also
// after an error.
func (b *batcher) claim(r *wire.Response) (leads bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.heard = b.heard[:0]
	if r.Taken > b.sent {
		return false, errBadMessage
	}
	b.read = max(b.read, r.Taken)
	for i := range r.Replies {
		w, err := b.claimOne(r.Replies[i].ID)
		if err != nil {
			return false, err
		}
		b.heard = append(b.heard, w)
	}
	b.endIfDone()
	return b.claimLead(), nil
}

// claimOne is nil when nobody waits any more.
func (b *batcher) claimOne(id uint64) (*waiter, error) {
	f := b.flying[id>>placeBits]
	if f == nil {
		if id>>placeBits > b.last {
			return nil, errBadMessage
		}
		return nil, nil
	}
	place := id % frameCalls
	if place >= uint64(len(f.waiters)) {
		return nil, errBadMessage
	}
	w := f.waiters[place]
	if w != nil {
		f.waiters[place] = nil
		f.left--
		b.settle(f, 1)
	}
	return w, nil
}

// settle counts calls of a flying frame that wait no more. b.mu is held.
func (b *batcher) settle(f *frame, n int) {
	b.count(-n)
	if f.left == 0 {
		delete(b.flying, f.number)
		b.frames.put(f)
	}
}

// scan fails the overdue calls, and asks to be called again if others wait. An
// overdue call that was not sent is not sent any more: nobody waits for it.
func (b *batcher) scan() {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	b.scanAt = math.MaxInt64
	for _, f := range b.flying {
		n := f.expire(now, &b.waiters, ErrTimeout)
		b.scanAt = min(b.scanAt, f.earliest)
		b.settle(f, n)
	}
	b.queue = slices.DeleteFunc(b.queue, func(f *frame) bool { return b.scanQueued(f, now) })
	b.endIfDone()
	if b.scanAt != math.MaxInt64 {
		b.wake(time.Duration(b.scanAt - now))
	}
}

// scanQueued says whether nothing is left of a frame.
func (b *batcher) scanQueued(f *frame, now int64) bool {
	if n := f.expire(now, &b.waiters, errOverdue); n > 0 {
		b.count(-n)
		b.queued -= f.compact()
	}
	b.scanAt = min(b.scanAt, f.earliest)
	if f.left > 0 {
		return false
	}
	b.frames.put(f)
	return true
}

// start lets the calls go out on a stream.
func (b *batcher) start(s *session) {
	b.mu.Lock()
	b.link.Store(int32(up))
	b.session, b.sent, b.read = s, 0, 0
	leads := b.claimLead()
	b.mu.Unlock()
	if leads {
		b.lead()
	}
}

// release gives back what waits for a node that still connects, because another one
// is up. Any may call it.
func (b *batcher) release() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.is(connecting) {
		b.dropQueue()
	}
}

// leave is for a stream whose node goes: no call leaves on it any more, and it is
// closed when the last one has its answer.
func (b *batcher) leave() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.link.Store(int32(down))
	b.session, b.ending = nil, b.session
	b.dropQueue()
	b.endIfDone()
}

// endIfDone closes the stream that is to be left once nobody waits on it. b.mu is
// held: the stream is not being written, for what is written is pending.
func (b *batcher) endIfDone() {
	if b.ending != nil && b.pending == 0 {
		b.ending.close()
		b.ending = nil
	}
}

// fail ends the stream: what is in flight fails, for nobody knows whether it was
// counted. What was not sent can be asked of another node.
func (b *batcher) fail(l link) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.link.Store(int32(l))
	b.session, b.ending = nil, nil
	for number, f := range b.flying {
		delete(b.flying, number)
		b.count(-f.fail(&b.waiters, ErrLost))
		b.frames.put(f)
	}
	b.dropQueue()
}

// dropQueue gives back what was not sent.
func (b *batcher) dropQueue() {
	for _, f := range b.queue {
		b.count(-f.fail(&b.waiters, errNotSent))
		b.frames.put(f)
	}
	clear(b.queue)
	b.queue, b.queued = b.queue[:0], 0
}
