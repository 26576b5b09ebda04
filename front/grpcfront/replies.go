package grpcfront

import (
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/ringlimit/ringlimit/internal/wire"
	"github.com/ringlimit/ringlimit/limit"
)

// Bounds on what one stream may make the node keep.
const (
	maxOutstanding = 2 << 20  // bytes of calls that were read and whose replies are not sent
	callOverhead   = 256      // of these for each call, besides what it says
	replyBytes     = 64 << 10 // a message that has replies takes no more beyond this
	maxUntold      = 2        // messages that were read, without the client knowing it
)

// maxHold is how long replies wait for others of the same message. It is longer than
// a hop takes; whoever waits longer waits for something else.
const maxHold = time.Millisecond

// replies gathers verdicts into messages and sends them. There is no goroutine to
// write: who has asked for the last reply to one of the client's messages sends it,
// with all that are there by then. Replies of one message are not sent one by one, as owners
// answer, for their callers, who wake together, make the next message: each crowd
// would fall apart into smaller ones until every message has one call. But none waits
// longer than maxHold for the others.
type replies struct {
	stream sender
	now    func() time.Time
	moved  *sync.Cond // replies were sent, or never will be
	hold   *time.Timer

	mu          sync.Mutex
	ready       []*message // the last one is open
	spare       []*message
	rules       wire.Numbers
	outstanding int
	taken, told uint64 // messages that were read, and that the client knows were
	held        bool   // hold is running
	leaving     bool   // a farewell has to be sent
	left        bool   // it was
	sending     bool
	broken      bool
	ended       bool
}

// sender is the half of a stream that replies need.
type sender interface{ SendMsg(m any) error }

// message is one that is being filled.
type message struct {
	out    wire.Out
	weight int // of the calls that it answers
}

func newReplies(stream sender, now func() time.Time) *replies {
	r := &replies{stream: stream, now: now}
	r.moved = sync.NewCond(&r.mu)
	r.hold = time.AfterFunc(time.Hour, r.release)
	r.hold.Stop()
	return r
}

// weigh is how much of maxOutstanding a call takes up.
func weigh(c *wire.Call) int { return callOverhead + len(c.Body) }

// admit waits until there is room for the calls of a message, which always fit if
// there are no others. It says no when replies cannot be sent.
func (r *replies) admit(calls []wire.Call) bool {
	weight := 0
	for i := range calls {
		weight += weigh(&calls[i])
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.outstanding > 0 && r.outstanding+weight > maxOutstanding && !r.broken {
		r.moved.Wait()
	}
	r.outstanding += weight
	r.taken++
	return !r.broken
}

// acknowledge is to be called after admit, with the calls queued. Their replies tell
// the client that its message was read. Where two were read without any reply, so
// that it sends no more, it is told all the same, before long.
func (r *replies) acknowledge() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.taken-r.told >= maxUntold {
		r.wait()
	}
}

// wait sees to it that what is there is sent before long. r.mu is held.
func (r *replies) wait() {
	if !r.held {
		r.held = true
		r.hold.Reset(maxHold)
	}
}

// release sends what has waited long enough.
func (r *replies) release() {
	r.mu.Lock()
	r.held = false
	leads := r.claim()
	r.mu.Unlock()
	if leads {
		r.send()
	}
}

// add puts in the verdict of a call of message a. It never waits for the client, and
// leaves it to settle to send what is complete.
func (r *replies) add(a *asked, call int, v *limit.Verdict) {
	now := r.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	c := &a.calls[call]
	m := r.open(c)
	m.out = wire.AppendReply(m.out, c.ID, v, now, &r.rules)
	r.added(a)
}

func (r *replies) addError(a *asked, call int, e *wire.Error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := &a.calls[call]
	m := r.open(c)
	m.out = wire.AppendReplyError(m.out, c.ID, e)
	r.added(a)
}

// added sees to it that what is full is sent, and what is not before long: by settle,
// which follows on the last reply to a message, or by the clock. r.mu is held.
func (r *replies) added(a *asked) {
	a.left--
	switch {
	case len(r.ready) > 1 && r.claim():
		go r.send()
	case a.left > 0 && !r.sending:
		r.wait()
	}
}

// settle is to be called when the checks of a message are answered, and each of its
// refunds. It sends what is there if the message is complete.
func (r *replies) settle(a *asked) {
	r.mu.Lock()
	leads := a.left == 0 && r.claim()
	r.mu.Unlock()
	if leads {
		r.send()
	}
}

// open is the message that the reply to c goes into. r.mu is held.
func (r *replies) open(c *wire.Call) *message {
	n := len(r.ready)
	if n == 0 || len(r.ready[n-1].out) >= replyBytes {
		r.ready = append(r.ready, r.empty())
		n++
	}
	m := r.ready[n-1]
	m.weight += weigh(c)
	return m
}

func (r *replies) empty() *message {
	if n := len(r.spare); n > 0 {
		m := r.spare[n-1]
		r.spare = r.spare[:n-1]
		return m
	}
	return &message{out: make(wire.Out, 0, 4<<10)}
}

// claim makes the caller the one who sends. r.mu is held.
func (r *replies) claim() bool {
	if r.sending || r.broken || r.ended {
		return false
	}
	r.sending = true
	return true
}

// send sends messages for as long as there is something to say. The yield lets those
// who are about to add a reply do it.
func (r *replies) send() {
	for {
		runtime.Gosched()
		m := r.next()
		if m == nil {
			return
		}
		r.sent(m, r.stream.SendMsg(&m.out))
	}
}

// next takes the message to be sent; nil: there is none, and nobody sends any more.
func (r *replies) next() *message {
	r.mu.Lock()
	defer r.mu.Unlock()
	var m *message
	farewell := r.leaving && !r.left
	switch {
	case r.broken:
	case len(r.ready) > 0:
		m = r.ready[0]
		r.ready = slices.Delete(r.ready, 0, 1)
	case r.taken-r.told >= maxUntold || farewell:
		m = r.empty()
	}
	if m == nil {
		r.sending = false
		r.moved.Broadcast()
		return nil
	}
	m.out = wire.AppendTaken(m.out, r.taken, &r.rules)
	r.told = r.taken
	if farewell {
		m.out, r.left = wire.AppendFarewell(m.out), true
	}
	if len(r.ready) == 0 {
		r.rules.Renew()
	}
	return m
}

// maxSpare is how many messages are kept for reuse.
const maxSpare = 4

func (r *replies) sent(m *message, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.broken = r.broken || err != nil // the reader of the stream learns why
	r.outstanding -= m.weight
	r.moved.Broadcast()
	if len(r.spare) < maxSpare && cap(m.out) <= 2*replyBytes {
		*m = message{out: m.out[:0]}
		r.spare = append(r.spare, m)
	}
}

// farewell asks the client to send no more.
func (r *replies) farewell() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.leaving = true
	if r.claim() {
		go r.send()
	}
}

// end returns when the replies are sent, or cannot be, and nobody sends any more. No
// reply may be added after it.
func (r *replies) end() {
	r.release() // a client that is gone leaves messages that are never complete
	r.hold.Stop()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = true
	for r.sending {
		r.moved.Wait()
	}
}
