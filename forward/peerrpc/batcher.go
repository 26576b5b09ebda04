package peerrpc

import (
	"math"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/ringlimit/ringlimit/forward"
	"github.com/ringlimit/ringlimit/forward/peerrpc/peerpb"
	"github.com/ringlimit/ringlimit/owner"
)

// maxUnanswered is how many frames may be on their way. One leaves the wire
// idle while the owner decides; more than two only make the frames smaller.
const maxUnanswered = 2

// Bounds on the checks that wait for one peer. A peer that hangs takes each of
// them for a whole deadline: beyond the bounds they are refused at once.
const (
	maxPending = 16 << 10 // checks, sent or not
	maxQueued  = 8 << 20  // bytes not sent: long names would be half a gigabyte
)

// batcher gathers checks into frames. There is no timer and no goroutine to
// write: callers add their check to the open frame, and who finds fewer than
// two frames unanswered leads, that is, takes the frame and sends it. So a
// lone check leaves at once, and what arrives while two frames are unanswered
// shares the next. The reader of an answer leads when checks are left over.
//
// One goroutine, the stream's reader, calls start, answer, leave and fail; any
// may call retire.
type batcher struct {
	now func() int64
	// wake is told when the next scan for overdue checks is due, if that is
	// sooner than it was told before.
	wake func(in time.Duration)

	waiters waiters
	frames  frames
	heard   []lateAnswer // the reader's, kept from frame to frame

	// writing is held to send: frames leave in the order in which they were filled,
	// for checks of one counter may lie in two of them.
	writing sync.Mutex

	mu      sync.Mutex
	link    link
	session *session // what frames are sent on; nil unless link is up
	groups  bool     // the peer knows groups and ages: it stays so while it runs
	ending  *session // to be closed once nobody waits for an answer on it
	retired bool     // the link stays down
	leading bool     // someone is about to take the first frame of the queue
	queue   []*frame // not sent; the last one is open
	flying  [maxUnanswered]*frame
	late    map[uint64]*frame // answered, but for some of their checks; by id
	unanswered,
	pending,
	queued int // frames in flying; checks that are not answered; bytes in queue
	lastID uint64
	era    uint64 // the owner's, as last heard on this stream; 0: not yet
	oldID  uint64 // the last one that left on the stream before
	scanAt int64  // when the next scan is due; math.MaxInt64: none is
}

func newBatcher(now func() int64, wake func(time.Duration)) *batcher {
	return &batcher{now: now, wake: wake, late: map[uint64]*frame{}, scanAt: math.MaxInt64}
}

// add puts a check into the open frame and says whether the caller leads: it
// then has to call lead. After an error the waiter still belongs to the caller.
func (b *batcher) add(r *record, w *waiter) (leads bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.enter(r, seatOf(w)); err != nil {
		return false, err
	}
	b.due(w.Deadline)
	return b.claimLead(), nil
}

// enter puts a check into the open frame, if it may wait. b.mu is held.
func (b *batcher) enter(r *record, s seat) error {
	switch {
	case b.link == down:
		return forward.ErrAbsent
	case b.pending >= maxPending, b.queued+r.maxSize() > maxQueued:
		return forward.ErrOverloaded
	case r.age > 0 && !b.takesAges():
		return b.noAges()
	}
	b.queued += b.open(1, r.maxSize()).add(r, s)
	b.pending++
	return nil
}

// takesAges says whether an age may be sent: it does not grow in a queue, and too
// small a one mints. So would none at all, to who cannot read it.
func (b *batcher) takesAges() bool { return b.link == up && b.groups }

func (b *batcher) noAges() error {
	if b.link != up {
		return forward.ErrAbsent
	}
	return forward.ErrRejected
}

// open is the last frame of the queue, or a new one if so much does not fit there.
func (b *batcher) open(records, bytes int) *frame {
	if n := len(b.queue); n > 0 && b.queue[n-1].hasRoom(records, bytes) {
		return b.queue[n-1]
	}
	f := b.frames.get()
	b.queue = append(b.queue, f)
	return f
}

// due sees to it that there is a scan at that time. b.mu is held.
func (b *batcher) due(deadline int64) {
	if deadline < b.scanAt {
		b.scanAt = deadline
		b.wake(time.Duration(deadline - b.now()))
	}
}

// claimLead makes the caller the leader, if one is wanted. b.mu is held.
func (b *batcher) claimLead() bool {
	if b.leading || b.link != up || b.unanswered == maxUnanswered || len(b.queue) == 0 {
		return false
	}
	b.leading = true
	return true
}

// lead sends the first frame of the queue. The yield lets those who are about
// to add a check do it: without it the frames stay small, and the throughput
// falls to a third.
func (b *batcher) lead() {
	runtime.Gosched()
	b.writing.Lock()
	defer b.writing.Unlock()
	packet, s := b.take(b.now())
	if packet == nil {
		return
	}
	s.write(packet)
	b.frames.putPacket(packet)
}

// take ends a lead: the first frame of the queue is in flight, and its packet
// is the caller's to send. Nil: the frame is gone, because its checks were
// overdue or the stream broke.
func (b *batcher) take(now int64) (*peerpb.Frame, *session) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.leading = false
	if b.link != up || len(b.queue) == 0 {
		return nil, nil
	}
	f := b.queue[0]
	b.queue = slices.Delete(b.queue, 0, 1)
	b.lastID++
	f.id = b.lastID
	packet := f.packet
	packet.Id, packet.PatienceUs, packet.Era, f.packet = f.id, f.patience(now), b.era, nil
	b.queued -= len(packet.Records)
	for i := range b.flying {
		if b.flying[i] == nil {
			b.flying[i] = f
			break
		}
	}
	b.unanswered++
	return packet, b.session
}

// answer hands out the answers of one frame. Its error ends the stream.
func (b *batcher) answer(packet *peerpb.Frame) error {
	if packet.Id == lateAnswers {
		return b.answerLate(packet.Records)
	}
	f := b.land(packet)
	if f == nil {
		return errBadFrame // an answer to nothing
	}
	left, err := b.handOut(f, packet.Records)
	b.mu.Lock()
	b.settle(f, left)
	leads := err == nil && b.claimLead() // else what is not sent yet waits for the next stream
	b.mu.Unlock()
	if leads {
		b.lead()
	}
	return err
}

// land takes the frame that the packet answers out of flight. Its checks stay
// pending until settle.
func (b *batcher) land(packet *peerpb.Frame) *frame {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.era = packet.Era
	for i, f := range b.flying {
		if f != nil && f.id == packet.Id {
			b.flying[i] = nil
			b.unanswered--
			return f
		}
	}
	return nil
}

// handOut returns how many of the frame's checks have to wait on. With an
// error none does.
func (b *batcher) handOut(f *frame, records []byte) (left int, err error) {
	var a answer
	var r ringer
	defer func() { r.ring() }()
	for i := range f.seats {
		if records, err = cutAnswer(records, &a); err != nil {
			f.fail(&b.waiters, &answer{err: forward.ErrUnreachable})
			return 0, err
		}
		switch s := &f.seats[i]; {
		case s.empty():
		case a.err == owner.ErrLater:
			left++
		default:
			s.answer(&b.waiters, &a)
			r.after(s)
			*s = seat{}
		}
	}
	if len(records) > 0 {
		f.fail(&b.waiters, &answer{err: forward.ErrUnreachable})
		return 0, errBadFrame
	}
	return left, nil
}

// settle ends what land began. b.mu is held.
func (b *batcher) settle(f *frame, left int) {
	b.pending -= len(f.seats) - left
	if left > 0 {
		b.keepLate(f, left)
	} else {
		b.frames.put(f)
	}
	b.endIfDone()
}

// scan fails the overdue checks, and asks to be called again if others wait. An
// overdue check that was not sent is not sent any more: on_failure answers it,
// and the owner would charge for it a second time.
func (b *batcher) scan() {
	overdue := answer{err: forward.ErrTimeout}
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	b.scanAt = math.MaxInt64
	for _, f := range b.flying {
		if f != nil {
			f.expire(now, &b.waiters, &overdue)
			b.scanAt = min(b.scanAt, f.earliest)
		}
	}
	b.scanLate(now, &overdue)
	b.queue = slices.DeleteFunc(b.queue, func(f *frame) bool {
		if f.expire(now, &b.waiters, &overdue) > 0 {
			records, bytes := f.compact()
			b.pending -= records
			b.queued -= bytes
		}
		b.scanAt = min(b.scanAt, f.earliest)
		if len(f.seats) > 0 {
			return false
		}
		b.frames.put(f)
		return true
	})
	if b.scanAt != math.MaxInt64 {
		b.wake(time.Duration(b.scanAt - now))
	}
}

// start lets the checks go out on a stream.
func (b *batcher) start(s *session) {
	b.mu.Lock()
	if !b.retired {
		b.link, b.session, b.groups, b.oldID = up, s, s.groups, b.lastID
		b.era = 0
	}
	leads := b.claimLead()
	b.mu.Unlock()
	if leads {
		b.lead()
	}
}

// leave is for a stream whose owner goes: no check leaves on it any more, and
// it is closed when the last one has its answer.
func (b *batcher) leave(s *session) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.link, b.session, b.ending = down, nil, s
	b.dropQueue()
	b.endIfDone()
}

// retire ends all asking for good, as leave does, and says whether somebody still
// waits for an answer.
func (b *batcher) retire() (waits bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.retired = true
	if b.session != nil {
		b.ending = b.session
	}
	b.link, b.session = down, nil
	b.dropQueue()
	b.endIfDone()
	return b.pending > 0
}

func (b *batcher) isRetired() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.retired
}

// endIfDone closes the stream that is to be left once nobody waits on it. b.mu
// is held: the stream is not being written, for what is written is pending.
func (b *batcher) endIfDone() {
	if b.ending != nil && b.pending == 0 {
		b.ending.close()
		b.ending = nil
	}
}

// fail ends the stream: what is in flight fails, for nobody knows whether it
// was counted. With link down, what was not sent fails too, and so does all
// that comes.
func (b *batcher) fail(l link) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.link, b.session, b.ending = l, nil, nil; b.retired {
		b.link = down
	}
	broken := answer{err: forward.ErrUnreachable}
	for i, f := range b.flying {
		if f != nil {
			b.flying[i] = nil
			b.drop(f, len(f.seats), &broken)
		}
	}
	b.unanswered = 0
	b.failLate(&broken)
	if l == down {
		b.dropQueue()
	}
}

// dropQueue fails what was not sent.
func (b *batcher) dropQueue() {
	absent := answer{err: forward.ErrAbsent}
	for _, f := range b.queue {
		b.drop(f, len(f.seats), &absent)
	}
	clear(b.queue)
	b.queue, b.queued = b.queue[:0], 0
}

// drop gives up a frame of which so many checks are pending.
func (b *batcher) drop(f *frame, pending int, a *answer) {
	b.pending -= pending
	f.fail(&b.waiters, a)
	b.frames.put(f)
}
