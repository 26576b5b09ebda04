package peerrpc

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/ringlimit/ringlimit/forward"
	"github.com/ringlimit/ringlimit/forward/peerrpc/peerpb"
	"github.com/ringlimit/ringlimit/limit"
	"github.com/ringlimit/ringlimit/owner"
)

// put off answers the n-th frame sent so: a check of which putOff says yes later,
// the others as reply does.
func (w *wire) putOff(t interface{ Fatal(...any) }, b *batcher, n int, putOff func(cost int64) bool) {
	records, answers := w.sent[n].Records, []byte(nil)
	for len(records) > 0 {
		var r record
		var err error
		if records, err = cutRecord(records, &r); err != nil {
			t.Fatal(err)
		}
		if putOff(r.cost) {
			answers = append(answers, byte(later))
		} else {
			answers = appendVerdict(answers, &limit.Verdict{Remaining: r.cost})
		}
	}
	if err := b.answer(&peerpb.Frame{Id: w.sent[n].Id, Records: answers}); err != nil {
		t.Fatal(err)
	}
}

func appendLate(b []byte, frame, index uint64, a answer) []byte {
	b = binary.AppendUvarint(binary.AppendUvarint(b, frame), index)
	return appendAnswer(b, &a)
}

func remains(n int64) answer { return answer{verdict: limit.Verdict{Remaining: n}} }

func (b *batch) hear(records []byte) error {
	return b.answer(&peerpb.Frame{Id: lateAnswers, Records: records})
}

func always(int64) bool { return true }

// lateBatch has one frame of so many checks of which all answers are put off.
// The first frame, with one check, is in flight.
func lateBatch(t *testing.T, n int64) (*batch, *wire, []*waiter) {
	b, out := newTestBatch(), &wire{}
	ws := []*waiter{b.put(t, 1, 1000)}
	b.start(&session{stream: out})
	b.fail(connecting) // so that ids do not begin at 1
	has(ws[0])
	b.put(t, 1, 1000)
	b.start(&session{stream: out})
	b.leading = true // nobody sends the next frame yet
	ws = nil
	for i := range n {
		ws = append(ws, b.put(t, i+1, 100*(i+1)))
	}
	b.lead()
	out.putOff(t, b.batcher, 2, always)
	return b, out, ws
}

// A frame whose answers are put off is answered: the next one leaves. The rest
// comes in any order.
func TestLateAnswersComeInAnyOrder(t *testing.T) {
	b, out, ws := lateBatch(t, 3)
	if b.unanswered != 1 || b.pending != 4 {
		t.Fatalf("%d unanswered, %d pending", b.unanswered, b.pending)
	}
	if b.put(t, 9, 100); len(out.sent) != 4 {
		t.Errorf("%d frames were sent", len(out.sent))
	}
	if err := b.hear(appendLate(appendLate(nil, 3, 2, remains(3)), 3, 0, remains(1))); err != nil {
		t.Fatal(err)
	}
	if _, ok := has(ws[1]); ok || b.pending != 3 {
		t.Errorf("the second has an answer: %v; %d pending", ok, b.pending)
	}
	if err := b.hear(appendLate(nil, 3, 1, answer{err: owner.ErrFull})); err != nil {
		t.Fatal(err)
	}
	for i, want := range []answer{remains(1), {err: owner.ErrFull}, remains(3)} {
		if a, _ := has(ws[i]); a != want {
			t.Errorf("check %d: %+v", i, a)
		}
	}
	if b.pending != 2 || len(b.late) != 0 {
		t.Errorf("%d pending, %d late frames", b.pending, len(b.late))
	}
}

// Checks whose answer is put off expire like others; what comes then is for
// nobody, and no fault.
func TestLateChecksExpire(t *testing.T) {
	b, _, ws := lateBatch(t, 3)
	b.scanAt, b.wakes = 1<<62, nil // as if no scan had been asked for
	b.release(b.late[3], 0)
	b.due(b.late[3].earliest)
	if len(b.wakes) != 1 || b.wakes[0] != 100 {
		t.Errorf("woken in %v", b.wakes)
	}
	b.now = 200
	b.scan()
	for i, w := range ws {
		if a, ok := has(w); ok != (i < 2) || ok && a.err != forward.ErrTimeout {
			t.Errorf("check %d: %+v, %v", i, a, ok)
		}
	}
	if b.scanAt != 300 || b.pending != 2 {
		t.Errorf("next scan at %d, %d pending", b.scanAt, b.pending)
	}
	if err := b.hear(appendLate(nil, 3, 1, remains(2))); err != nil {
		t.Errorf("an overdue answer: %v", err)
	}
	b.now = 300
	b.scan()
	if err := b.hear(appendLate(nil, 3, 2, remains(3))); err != nil || len(b.late) != 0 || b.pending != 1 {
		t.Errorf("an answer to a frame that is no more: %v; %d late frames, %d pending", err, len(b.late), b.pending)
	}
}

// A frame that is put by while another scan runs is looked at in time.
func TestLateChecksAskForAScan(t *testing.T) {
	b, out := newTestBatch(), &wire{}
	b.start(&session{stream: out})
	w := b.put(t, 1, 100)
	f := b.land(&peerpb.Frame{Id: 1})
	b.scan() // does not see it
	b.settle(f, 1)
	if b.scanAt != 100 {
		t.Fatalf("next scan at %d", b.scanAt)
	}
	b.now = 100
	b.scan()
	if a, ok := has(w); !ok || a.err != forward.ErrTimeout {
		t.Errorf("%+v, %v", a, ok)
	}
}

// Checks whose answers are put off fail with the stream: they may have been
// counted. Answers that belong to them are to nothing on the next one.
func TestLateChecksFailWithTheStream(t *testing.T) {
	b, out, ws := lateBatch(t, 2)
	b.fail(connecting)
	for i, w := range ws {
		if a, ok := has(w); !ok || a.err != forward.ErrUnreachable {
			t.Errorf("check %d: %+v, %v", i, a, ok)
		}
	}
	if b.pending != 0 || len(b.late) != 0 {
		t.Errorf("%d pending, %d late frames", b.pending, len(b.late))
	}
	b.start(&session{stream: out})
	if err := b.hear(appendLate(nil, 3, 0, remains(1))); !errors.Is(err, errBadFrame) {
		t.Errorf("an answer to the stream before: %v", err)
	}
}

// Late answers that fit no question end the stream; those before them in the
// frame are good if the frame can be read.
func TestLateAnswersToNothing(t *testing.T) {
	good := appendLate(nil, 3, 0, remains(1))
	for what, c := range map[string]struct {
		records []byte
		answers bool // to what comes before
	}{
		"not sent yet":    {appendLate(good, 4, 0, remains(1)), true},
		"stream before":   {appendLate(good, 1, 0, remains(1)), true},
		"in flight":       {appendLate(good, 2, 0, remains(1)), true},
		"no such place":   {appendLate(good, 3, 2, remains(1)), true},
		"cut short":       {good[:len(good)-1], false},
		"garbage":         {append(bytes.Clone(good), 0xff), false},
		"put off again":   {appendLate(good, 3, 1, answer{err: owner.ErrLater}), false},
		"unknown outcome": {append(bytes.Clone(good), 3, 1, 0xee), false},
		"too many":        {bytes.Repeat(appendLate(nil, 3, 0, answer{err: owner.ErrFull}), maxRecords+1), false},
	} {
		b, _, ws := lateBatch(t, 2)
		if err := b.hear(c.records); !errors.Is(err, errBadFrame) {
			t.Errorf("%s: %v", what, err)
		}
		if _, ok := has(ws[0]); ok != c.answers {
			t.Errorf("%s: the first check has an answer: %v", what, ok)
		}
	}
}

// Checks whose answers are put off count against the bound like others.
func TestLateChecksAreBounded(t *testing.T) {
	b, out := newTestBatch(), &wire{}
	b.start(&session{stream: out})
	fill := func() (n int) {
		for {
			w := b.waiters.Get(100)
			leads, err := b.add(&record{cost: 1, name: []byte("k")}, w)
			if err != nil {
				if err != forward.ErrOverloaded {
					t.Fatal(err)
				}
				return n
			}
			if n++; leads {
				b.lead()
			}
		}
	}
	if n := fill(); n != maxPending {
		t.Fatalf("%d checks", n)
	}
	for n := 0; n < len(out.sent); n++ {
		out.putOff(t, b.batcher, n, always)
	}
	if n := fill(); n != 0 || b.pending != maxPending {
		t.Errorf("%d more while all answers are put off, %d pending", n, b.pending)
	}
	if err := b.hear(appendLate(nil, 2, 0, remains(1))); err != nil {
		t.Fatal(err)
	}
	if n := fill(); n != 1 {
		t.Errorf("%d more after a late answer", n)
	}
}

// A stream that is left is not closed while an answer is put off, and is when
// the last one has come or is overdue.
func TestLeaveWaitsForLateAnswers(t *testing.T) {
	for what, end := range map[string]func(*batch) error{
		"answered": func(b *batch) error { return b.hear(appendLate(nil, 1, 0, remains(1))) },
		"overdue":  func(b *batch) error { b.now = 100; b.scan(); return nil },
	} {
		b, out := newTestBatch(), &wire{}
		s := &session{stream: out}
		b.start(s)
		b.put(t, 1, 100)
		b.leave(s)
		out.putOff(t, b.batcher, 0, always)
		if out.closed {
			t.Errorf("%s: closed while an answer was put off", what)
		}
		if err := end(b); err != nil || !out.closed {
			t.Errorf("%s: %v, closed %v", what, err, out.closed)
		}
	}
}

// The patience of a frame is that of its most patient check, when it leaves.
func TestPatience(t *testing.T) {
	b, out := newTestBatch(), &wire{}
	b.put(t, 1, 5_000_000)
	b.put(t, 1, 9_001_999)
	b.put(t, 1, 7_000_000)
	b.now = 1_000_000
	b.start(&session{stream: out})
	b.put(t, 1, 500_000) // overdue, and nobody has looked
	if p, q := out.sent[0].PatienceUs, out.sent[1].PatienceUs; p != 8001 || q != 0 {
		t.Errorf("%d µs and %d µs", p, q)
	}
}

// seated is who waits for one check: alone, or at a place of an inbox, from which one
// hears of others as well.
type seated struct {
	seat
	heard map[int]answer // of the inbox
}

// has sees what is in an inbox only once it was rung.
func (k seated) has() (a answer, ok bool) {
	if k.inbox == nil {
		return has(k.waiter)
	}
	select {
	case <-k.inbox.Rung():
		for _, arrived := range k.inbox.Take(nil) {
			k.heard[arrived.Index] = answer{arrived.Verdict, arrived.Err}
		}
	default:
	}
	a, ok = k.heard[k.index]
	return a, ok
}

// Whatever happens in whatever order, each check gets its own answer or error,
// once, and the books balance: those that are asked for together too.
func TestLawLateAnswers(t *testing.T) {
	rule := tokens(t, 1)
	rapid.Check(t, func(t *rapid.T) {
		b, out := newTestBatch(), &wire{}
		b.start(&session{stream: out})
		type owed struct {
			frame, index uint64
			cost         int64
		}
		var (
			ws     = map[int64]seated{} // by cost, not answered
			frames []int                // sent and not answered, as places in out.sent
			late   []owed               // put off and not answered on this stream
			sent   int
			costs  int64
		)
		gone := func(cost int64, want answer) {
			if a, ok := ws[cost].has(); !ok || a != want {
				t.Fatalf("check %d: %+v, %v; want %+v", cost, a, ok, want)
			}
			delete(ws, cost)
		}
		look := func() {
			for ; sent < len(out.sent); sent++ {
				frames = append(frames, sent)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				costs++
				w := b.waiters.Get(b.now + int64(rapid.IntRange(1, 50).Draw(t, "patience")))
				leads, err := b.add(&record{cost: costs, name: []byte("k")}, w)
				if err != nil {
					t.Fatal(err)
				}
				if ws[costs] = (seated{seat: seatOf(w)}); leads {
					b.lead()
				}
			},
			"send each": func(t *rapid.T) {
				deadline := b.now + int64(rapid.IntRange(1, 50).Draw(t, "patience"))
				calls, first := make([]owner.Call, rapid.IntRange(1, 6).Draw(t, "calls")), rapid.IntRange(0, 9).Draw(t, "first")
				to, heard := forward.NewInbox(), map[int]answer{}
				for i := range calls {
					costs++
					calls[i].Charge = limit.Charge{Counter: []byte("k"), Rule: rule, Cost: costs}
					ws[costs] = seated{seat{inbox: to, index: first + i, deadline: deadline}, heard}
				}
				(&conn{batch: b.batcher}).SendEach(calls, deadline, to, first)
			},
			"answer": func(t *rapid.T) {
				if len(frames) == 0 {
					return
				}
				n := drawOut(t, &frames)
				i, done := uint64(0), []int64{}
				out.putOff(t, b.batcher, n, func(cost int64) bool {
					off := rapid.Bool().Draw(t, "put off")
					if off {
						late = append(late, owed{out.sent[n].Id, i, cost})
					} else if _, waits := ws[cost]; waits {
						done = append(done, cost)
					}
					i++
					return off
				})
				for _, cost := range done {
					gone(cost, remains(cost))
				}
			},
			"late": func(t *rapid.T) {
				var records []byte
				var done []int64
				for range rapid.IntRange(0, min(5, len(late))).Draw(t, "n") {
					o := drawOut(t, &late)
					records = appendLate(records, o.frame, o.index, remains(o.cost))
					if _, waits := ws[o.cost]; waits {
						done = append(done, o.cost)
					}
				}
				if err := b.hear(records); err != nil {
					t.Fatal(err)
				}
				for _, cost := range done {
					gone(cost, remains(cost))
				}
			},
			"time": func(t *rapid.T) {
				b.now += int64(rapid.IntRange(1, 40).Draw(t, "passes"))
				if b.now < b.scanAt {
					return
				}
				b.scan()
				for cost, w := range ws {
					if w.deadline <= b.now {
						gone(cost, answer{err: forward.ErrTimeout})
					}
				}
			},
			"break": func(t *rapid.T) {
				b.fail(connecting)
				queued := map[seat]bool{}
				for _, f := range b.queue {
					for _, s := range f.seats {
						queued[s] = true
					}
				}
				for cost, w := range ws {
					if !queued[w.seat] {
						gone(cost, answer{err: forward.ErrUnreachable})
					}
				}
				frames, late, sent = nil, nil, len(out.sent)
				b.start(&session{stream: out})
			},
			"": func(t *rapid.T) {
				look()
				flying := 0
				for _, n := range frames { // overdue checks of a frame in flight count until it lands
					records := out.sent[n].Records
					for len(records) > 0 {
						var r record
						records, _ = cutRecord(records, &r)
						if _, waits := ws[r.cost]; !waits {
							flying++
						}
					}
				}
				if b.pending != len(ws)+flying {
					t.Fatalf("%d pending; %d wait, %d overdue in flight", b.pending, len(ws), flying)
				}
				for _, w := range ws {
					if w.deadline < b.scanAt {
						t.Fatalf("a check is due at %d, the next scan at %d", w.deadline, b.scanAt)
					}
				}
			},
		})
	})
}

// drawOut takes one of them out.
func drawOut[E any](t *rapid.T, from *[]E) E {
	n := rapid.IntRange(0, len(*from)-1).Draw(t, "which")
	e := (*from)[n]
	*from = slices.Delete(*from, n, n+1)
	return e
}

func FuzzLateAnswers(f *testing.F) {
	f.Add(appendLate(appendLate(nil, 1, 0, remains(4)), 2, 1, answer{err: owner.ErrFull}))
	f.Add(appendLate(nil, 3, 0, remains(4)))
	f.Add([]byte{1, 0, byte(later)})
	f.Fuzz(func(t *testing.T, records []byte) {
		b, out := newTestBatch(), &wire{}
		b.start(&session{stream: out})
		var ws []*waiter
		for range 8 {
			ws = append(ws, b.put(new(testing.T), 1, 100))
		}
		for n := range 2 {
			out.putOff(t, b.batcher, n, always)
		}
		_ = b.hear(records) // whatever the bytes, the books balance
		waiting := 0
		for _, w := range ws {
			if _, ok := has(w); !ok {
				waiting++
			}
		}
		if b.pending != waiting {
			t.Fatalf("%d pending, %d wait", b.pending, waiting)
		}
		b.fail(down)
		for _, w := range ws {
			if _, ok := has(w); ok {
				waiting--
			}
		}
		if waiting != 0 || b.pending != 0 || len(b.late) != 0 {
			t.Fatalf("%d left waiting, %d pending, %d late frames", waiting, b.pending, len(b.late))
		}
	})
}
