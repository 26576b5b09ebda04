package peerrpc

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/ringlimit/ringlimit/forward"
	"github.com/ringlimit/ringlimit/forward/peerrpc/peerpb"
	"github.com/ringlimit/ringlimit/limit"
	"github.com/ringlimit/ringlimit/owner"
)

// wire is a stream that keeps what it is sent.
type wire struct {
	sent   []*peerpb.Frame
	closed bool
}

func (w *wire) Send(f *peerpb.Frame) error {
	w.sent = append(w.sent, &peerpb.Frame{Id: f.Id, Records: append([]byte(nil), f.Records...), PatienceUs: f.PatienceUs})
	return nil
}

func (w *wire) CloseSend() error { w.closed = true; return nil }

// reply answers the n-th frame sent: each check's cost comes back as what
// remains.
func (w *wire) reply(t *testing.T, b *batcher, n int) {
	t.Helper()
	records, answers := w.sent[n].Records, []byte(nil)
	for len(records) > 0 {
		var r record
		var err error
		if records, err = cutRecord(records, &r); err != nil {
			t.Fatal(err)
		}
		answers = appendVerdict(answers, &limit.Verdict{Remaining: r.cost})
	}
	if err := b.answer(&peerpb.Frame{Id: w.sent[n].Id, Records: answers}); err != nil {
		t.Fatal(err)
	}
}

// batch is a batcher whose clock stands at now, and what it asked to be woken
// for.
type batch struct {
	*batcher
	now   int64
	wakes []time.Duration
}

func newTestBatch() *batch {
	b := &batch{}
	b.batcher = newBatcher(func() int64 { return b.now }, func(in time.Duration) { b.wakes = append(b.wakes, in) })
	return b
}

// put adds a check of that cost, and leads if it has to.
func (b *batch) put(t *testing.T, cost, deadline int64) *waiter {
	t.Helper()
	w := b.waiters.Get(deadline)
	leads, err := b.add(&record{cost: cost, name: []byte("k")}, w)
	if err != nil {
		t.Fatal(err)
	}
	if leads {
		b.lead()
	}
	return w
}

// has reads a waiter's answer; not ok: it still waits. The waiter is not used again,
// so that a test may go on to compare it with others.
func has(w *waiter) (a answer, ok bool) { return new(waiters).Poll(w) }

// A lone check leaves at once. While two frames are unanswered, checks share
// the next, which leaves with the first answer.
func TestNaturalBatching(t *testing.T) {
	b, out := newTestBatch(), &wire{}
	b.start(&session{stream: out})
	var ws []*waiter
	for i := range int64(10) {
		ws = append(ws, b.put(t, i+1, 100))
	}
	if len(out.sent) != 2 || out.sent[0].Id != 1 || out.sent[1].Id != 2 {
		t.Fatalf("%d frames were sent", len(out.sent))
	}
	out.reply(t, b.batcher, 1) // out of order is in order
	if len(out.sent) != 3 {
		t.Fatalf("%d frames after the first answer", len(out.sent))
	}
	out.reply(t, b.batcher, 2)
	out.reply(t, b.batcher, 0)
	for i, w := range ws {
		if a, ok := has(w); !ok || a.verdict.Remaining != int64(i+1) {
			t.Errorf("check %d: %+v, %v", i, a, ok)
		}
	}
	if b.pending != 0 || b.unanswered != 0 {
		t.Errorf("%d pending, %d unanswered", b.pending, b.unanswered)
	}
}

// What comes before the stream stands leaves with it, in frames of bounded size.
func TestQueueBeforeTheStreamIsSentInBoundedFrames(t *testing.T) {
	b, out := newTestBatch(), &wire{}
	for range 3*maxRecords - 1 {
		b.put(t, 1, 100)
	}
	b.start(&session{stream: out})
	for n := 0; n < len(out.sent); n++ {
		out.reply(t, b.batcher, n)
	}
	if len(out.sent) != 3 {
		t.Errorf("%d frames", len(out.sent))
	}
	large := &record{cost: 1, name: make([]byte, maxName)}
	for range 3 {
		if _, err := b.add(large, b.waiters.Get(100)); err != nil {
			t.Fatal(err)
		}
	}
	if len(b.queue) != 3 {
		t.Errorf("large names share %d frames", len(b.queue))
	}
}

func TestPendingChecksAreBounded(t *testing.T) {
	b, out := newTestBatch(), &wire{}
	for range maxPending {
		b.put(t, 1, 100)
	}
	if _, err := b.add(&record{cost: 1, name: []byte("k")}, b.waiters.Get(100)); !errors.Is(err, forward.ErrOverloaded) {
		t.Errorf("one too many: %v", err)
	}
	b.start(&session{stream: out})
	out.reply(t, b.batcher, 0)
	b.put(t, 1, 100)
}

// Long names are bounded by their bytes: 16 Ki of them would be half a
// gigabyte. What leaves the queue, by whichever way, makes room.
func TestQueuedBytesAreBounded(t *testing.T) {
	b, out := newTestBatch(), &wire{}
	long := &record{cost: 1, name: make([]byte, maxName)}
	fill := func() (n int) {
		for ; ; n++ {
			w := b.waiters.Get(100)
			if _, err := b.add(long, w); err != nil {
				if !errors.Is(err, forward.ErrOverloaded) {
					t.Fatal(err)
				}
				return n
			}
		}
	}
	most := fill()
	if bytes := most * maxName; bytes > maxQueued || bytes < maxQueued-2*maxName {
		t.Errorf("%d bytes are queued", bytes)
	}
	b.start(&session{stream: out})
	for n := 0; n < len(out.sent); n++ {
		out.reply(t, b.batcher, n)
	}
	if n := fill(); n != most {
		t.Errorf("%d after all were sent, %d before", n, most)
	}
	b.now = 100
	b.scan()
	b.fail(connecting)
	b.now = 0
	if n := fill(); n != most {
		t.Errorf("%d after all were overdue, %d before", n, most)
	}
	b.fail(down)
	b.fail(connecting)
	if n := fill(); n != most {
		t.Errorf("%d after all failed, %d before", n, most)
	}
}

// A scan fails exactly the overdue, wakes for the next, and what nobody waits
// for any more is not sent.
func TestScan(t *testing.T) {
	b, out := newTestBatch(), &wire{}
	b.start(&session{stream: out})
	flying, open := b.put(t, 1, 100), b.put(t, 2, 300)
	queued := []*waiter{b.put(t, 3, 200), b.put(t, 4, 150)}
	if len(b.wakes) != 1 || b.wakes[0] != 100 {
		t.Fatalf("woken in %v", b.wakes)
	}
	overdue := func(w *waiter) bool { a, ok := has(w); return ok && errors.Is(a.err, forward.ErrTimeout) }
	b.now = 150
	b.scan()
	if !overdue(flying) || !overdue(queued[1]) || b.scanAt != 200 || b.wakes[1] != 50 || b.pending != 3 {
		t.Errorf("at 150: next scan at %d, woken in %v, %d pending", b.scanAt, b.wakes, b.pending)
	}
	b.now = 200
	b.scan()
	if !overdue(queued[0]) || len(b.queue) != 0 || b.pending != 2 {
		t.Errorf("at 200: %d frames queued, %d pending", len(b.queue), b.pending)
	}
	out.reply(t, b.batcher, 0) // late: for nobody
	out.reply(t, b.batcher, 1)
	if a, ok := has(open); !ok || a.verdict.Remaining != 2 {
		t.Errorf("in time: %+v, %v", a, ok)
	}
	b.scan()
	if len(out.sent) != 2 || b.scanAt != math.MaxInt64 {
		t.Errorf("%d frames sent, next scan at %d", len(out.sent), b.scanAt)
	}
	b.put(t, 5, 400)
	if last := b.wakes[len(b.wakes)-1]; last != 200 {
		t.Errorf("woken in %v after a calm", last)
	}
}

// Overdue checks leave the frame that others still wait in: on_failure has
// answered them, and the owner must not charge for them too.
func TestOverdueChecksAreNotSent(t *testing.T) {
	b, out := newTestBatch(), &wire{}
	var kept []*waiter
	for i := range int64(9) {
		w := b.put(t, i+1, 100+100*(i%3))
		if i%3 == 2 {
			kept = append(kept, w)
		}
	}
	b.now = 200
	b.scan()
	b.start(&session{stream: out})
	if len(out.sent) != 1 {
		t.Fatalf("%d frames", len(out.sent))
	}
	out.reply(t, b.batcher, 0)
	for i, w := range kept {
		if a, ok := has(w); !ok || a.verdict.Remaining != int64(3*i+3) {
			t.Errorf("check %d: %+v, %v", i, a, ok)
		}
	}
	if b.pending != 0 || b.queued != 0 {
		t.Errorf("%d pending, %d bytes queued", b.pending, b.queued)
	}
}

// When the stream ends, what was sent fails, and the rest goes on the next one;
// with no way left it fails too, and so does what comes.
func TestFail(t *testing.T) {
	b, first, second := newTestBatch(), &wire{}, &wire{}
	b.start(&session{stream: first})
	one, two, three := b.put(t, 1, 100), b.put(t, 2, 100), b.put(t, 3, 100)
	b.fail(connecting)
	for _, w := range []*waiter{one, two} {
		if a, ok := has(w); !ok || !errors.Is(a.err, forward.ErrUnreachable) {
			t.Errorf("sent: %+v, %v", a, ok)
		}
	}
	b.start(&session{stream: second})
	if len(second.sent) != 1 || second.sent[0].Id != 3 {
		t.Fatalf("%d frames on the new stream", len(second.sent))
	}
	five := b.put(t, 5, 100)
	six := b.put(t, 6, 100)
	b.fail(down)
	for w, want := range map[*waiter]error{
		three: forward.ErrUnreachable, five: forward.ErrUnreachable, six: forward.ErrAbsent,
	} {
		if a, ok := has(w); !ok || a.err != want {
			t.Errorf("%+v, %v, want %v", a, ok, want)
		}
	}
	if _, err := b.add(&record{cost: 1, name: []byte("k")}, b.waiters.Get(100)); err != forward.ErrAbsent {
		t.Errorf("down: %v", err)
	}
	if b.pending != 0 || b.unanswered != 0 {
		t.Errorf("%d pending, %d unanswered", b.pending, b.unanswered)
	}
}

// Nothing leaves on a stream whose owner has said farewell: what was not sent
// can be asked of another node. The stream is closed with the last answer.
func TestLeave(t *testing.T) {
	b, out := newTestBatch(), &wire{}
	s := &session{stream: out}
	b.start(s)
	sent := []*waiter{b.put(t, 1, 100), b.put(t, 2, 100)}
	queued := b.put(t, 3, 100)
	b.leave(s)
	if a, ok := has(queued); !ok || a.err != forward.ErrAbsent {
		t.Errorf("not sent: %+v, %v", a, ok)
	}
	if _, err := b.add(&record{cost: 1, name: []byte("k")}, b.waiters.Get(100)); err != forward.ErrAbsent {
		t.Errorf("afterwards: %v", err)
	}
	for i, w := range sent {
		if out.closed {
			t.Errorf("closed before answer %d", i)
		}
		out.reply(t, b.batcher, i)
		if a, ok := has(w); !ok || a.err != nil {
			t.Errorf("sent: %+v, %v", a, ok)
		}
	}
	if !out.closed || len(out.sent) != 2 {
		t.Errorf("closed %v, %d frames sent", out.closed, len(out.sent))
	}
}

// What is retired asks nothing any more, whatever becomes of its streams.
func TestRetire(t *testing.T) {
	for what, then := range map[string]func(b *batch){
		"":                 func(*batch) {},
		"a stream stands":  func(b *batch) { b.start(&session{stream: &wire{}}) },
		"a stream breaks":  func(b *batch) { b.fail(connecting) },
		"a farewell comes": func(b *batch) { b.leave(&session{stream: &wire{}}) },
	} {
		b := newTestBatch()
		w := b.put(t, 1, 100)
		waits := b.retire()
		if a, ok := has(w); waits || !ok || a.err != forward.ErrAbsent {
			t.Errorf("not sent: %+v, %v; somebody waits: %v", a, ok, waits)
		}
		then(b)
		if _, err := b.add(&record{cost: 1, name: []byte("k")}, b.waiters.Get(100)); err != forward.ErrAbsent {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// Answers that fit no question end the stream.
func TestAnswersToNothing(t *testing.T) {
	for what, reply := range map[string]*peerpb.Frame{
		"unknown id":         {Id: 7, Records: []byte{byte(full)}},
		"too few":            {Id: 1},
		"too many":           {Id: 1, Records: []byte{byte(full), byte(full)}},
		"late, and too many": {Id: 1, Records: []byte{byte(later), byte(full)}},
		"garbage":            {Id: 1, Records: []byte{0xff}},
	} {
		b := newTestBatch()
		b.start(&session{stream: &wire{}})
		w := b.put(t, 1, 100)
		if err := b.answer(reply); !errors.Is(err, errBadFrame) {
			t.Errorf("%s: %v", what, err)
		}
		if _, ok := has(w); ok != (reply.Id == 1) {
			t.Errorf("%s: the check has an answer: %v", what, ok)
		}
	}
}

// The reader that finds a bad frame sends nothing more: the owner would count
// what is lost with the stream.
func TestNothingIsSentAfterABadFrame(t *testing.T) {
	b, out := newTestBatch(), &wire{}
	b.start(&session{stream: out})
	for i := range int64(3) {
		b.put(t, i+1, 100)
	}
	if err := b.answer(&peerpb.Frame{Id: 1, Records: []byte{0xff}}); !errors.Is(err, errBadFrame) {
		t.Fatal(err)
	}
	if len(out.sent) != 2 || len(b.queue) != 1 {
		t.Errorf("%d frames sent, %d queued", len(out.sent), len(b.queue))
	}
}

// A frame whose answers break off goes back to the pool empty and whole: no
// waiter is in it, for another check may have it by now.
func TestBrokenOffFrameIsReused(t *testing.T) {
	b := newTestBatch()
	f := b.frames.get()
	room := cap(f.seats)
	var ws []*waiter
	for range 3 {
		ws = append(ws, b.waiters.Get(100))
		f.add(&record{cost: 1, name: []byte("k")}, seatOf(ws[len(ws)-1]))
	}
	if _, err := b.handOut(f, []byte{byte(full), byte(full), 0xff}); !errors.Is(err, errBadFrame) {
		t.Fatal(err)
	}
	b.frames.put(f)
	if cap(f.seats) != room {
		t.Errorf("room for %d seats of %d", cap(f.seats), room)
	}
	for i, s := range f.seats[:3] {
		if !s.empty() {
			t.Errorf("seat %d is still taken", i)
		}
	}
	for i, want := range []error{owner.ErrFull, owner.ErrFull, forward.ErrUnreachable} {
		if a, ok := has(ws[i]); !ok || !errors.Is(a.err, want) {
			t.Errorf("check %d: %+v, %v", i, a, ok)
		}
	}
}
