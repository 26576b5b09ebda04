package peerrpc

import (
	"encoding/binary"
	"math"
	"sync"

	"github.com/ringlimit/ringlimit/forward/peerrpc/peerpb"
	"github.com/ringlimit/ringlimit/owner"
)

// maxPromised bounds the answers that are put off on one stream. An asker that
// keeps to maxPending comes near it only if many of its checks have less patience
// than others of their frames.
const maxPromised = 2 * maxPending

// promises is what one stream's asker was told to wait for, and the answers to
// it that are not sent yet. It is an owner.Late: the decider may answer from any
// goroutine, also while the frame is being judged and after the stream has ended.
type promises struct {
	wake chan struct{} // capacity 1: there is something to take

	mu     sync.Mutex
	frames map[uint64]*promise // by the frame's id
	owed   int                 // answers, in all of them
	due    int64               // no promise ends before it

	// judged is the frame that is being judged, and early the answers to it that
	// came too soon: its other answers have to be sent first.
	judged struct {
		promise
		id    uint64
		early bundles
	}
	ready bundles
	spare bundles
}

// promise is about the checks of one frame.
type promise struct {
	left     int
	deadline int64    // when the asker has given up, and no answer comes any more
	indices  []uint16 // the records of the calls; nil: they are the same
}

func newPromises() *promises {
	return &promises{wake: make(chan struct{}, 1), frames: map[uint64]*promise{}, due: math.MaxInt64}
}

// begin announces a frame of so many calls. It says no when so many cannot be
// put off any more.
func (p *promises) begin(id uint64, now, deadline int64, calls int, indices []uint16) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now >= p.due {
		p.forget(now)
	}
	p.judged.id, p.judged.promise = id, promise{deadline: deadline, indices: indices}
	p.judged.early = nil
	return p.owed+calls <= maxPromised
}

// forget drops what nobody waits for any more.
func (p *promises) forget(now int64) {
	p.due = math.MaxInt64
	for id, pr := range p.frames {
		if pr.deadline <= now {
			p.owed -= pr.left
			delete(p.frames, id)
		} else {
			p.due = min(p.due, pr.deadline)
		}
	}
}

// follow says that the answers to the judged frame have been sent, and that so
// many of them were put off. With none it need not be called.
func (p *promises) follow(laters int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	id, pr := p.judged.id, p.judged.promise
	p.judged.id = farewell // no frame's
	for _, b := range p.judged.early {
		laters -= b.answers
	}
	if len(p.judged.early) > 0 {
		p.ready = append(p.ready, p.judged.early...)
		p.signal()
	}
	if pr.left = laters; laters > 0 {
		p.put(id, &pr)
	}
}

func (p *promises) put(id uint64, pr *promise) {
	if old := p.frames[id]; old != nil {
		p.owed -= old.left // the asker has used its id again
	}
	p.frames[id] = pr
	p.owed += pr.left
	p.due = min(p.due, pr.deadline)
}

// Answer implements owner.Late.
func (p *promises) Answer(frame uint64, i int, r owner.Result) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if frame == p.judged.id {
		p.judged.early = p.add(p.judged.early, frame, p.judged.record(i), &r)
		return
	}
	pr := p.frames[frame]
	if pr == nil {
		return // overdue, or the stream has ended
	}
	p.ready = p.add(p.ready, frame, pr.record(i), &r)
	p.signal()
	p.owed--
	if pr.left--; pr.left == 0 {
		delete(p.frames, frame)
	}
}

// record is the place of the i-th call's check in its frame.
func (pr *promise) record(i int) uint64 {
	if pr.indices != nil {
		return uint64(pr.indices[i])
	}
	return uint64(i)
}

func (p *promises) signal() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// take returns what is to be sent. It gets back, to be used again, what it
// returned before.
func (p *promises) take(sent bundles) bundles {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, b := range sent {
		if len(p.spare) < maxSpare {
			b.frame.Records, b.answers = b.frame.Records[:0], 0
			p.spare = append(p.spare, b)
		}
	}
	clear(sent)
	ready := p.ready
	p.ready = sent[:0]
	return ready
}

// end makes later answers go nowhere.
func (p *promises) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.judged.id = farewell
	p.frames, p.ready, p.spare, p.judged.early = nil, nil, nil, nil
	close(p.wake)
}

// maxSpare is how many bundles are kept for reuse.
const maxSpare = 8

// bundles are late answers, in frames of bounded size; the last one is open.
type bundles []*bundle

type bundle struct {
	frame   peerpb.Frame
	answers int
}

func (p *promises) add(to bundles, frame, record uint64, r *owner.Result) bundles {
	if n := len(to); n == 0 || to[n-1].answers == maxRecords || len(to[n-1].frame.Records) >= frameBytes {
		to = append(to, p.bundle())
	}
	b := to[len(to)-1]
	b.answers++
	b.frame.Records = binary.AppendUvarint(b.frame.Records, frame)
	b.frame.Records = binary.AppendUvarint(b.frame.Records, record)
	b.frame.Records = appendResult(b.frame.Records, r)
	return to
}

func (p *promises) bundle() *bundle {
	if n := len(p.spare); n > 0 {
		b := p.spare[n-1]
		p.spare = p.spare[:n-1]
		return b
	}
	return &bundle{frame: peerpb.Frame{Id: lateAnswers}}
}
