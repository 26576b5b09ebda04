package peerrpc

import (
	"bytes"
	"math"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/ringlimit/ringlimit/limit"
	"github.com/ringlimit/ringlimit/membership"
	"github.com/ringlimit/ringlimit/owner"
	"github.com/ringlimit/ringlimit/owner/transfer"
)

func remaining(n int64) owner.Result { return owner.Result{Verdict: limit.Verdict{Remaining: n}} }

// kept is what is taken, as an asker reads it.
func kept(t interface{ Fatal(...any) }, taken bundles) (all []lateAnswer) {
	for _, b := range taken {
		if b.frame.Id != lateAnswers {
			t.Fatal("a frame of late answers has another id")
		}
		heard, err := cutLate(b.frame.Records, nil)
		if err != nil || len(heard) != b.answers {
			t.Fatal(err, len(heard), b.answers)
		}
		all = append(all, heard...)
	}
	return all
}

func woken(p *promises) bool {
	select {
	case <-p.wake:
		return true
	default:
		return false
	}
}

// An answer that is there before its frame has been answered does not overtake
// the others.
func TestEarlyAnswersWait(t *testing.T) {
	p := newPromises()
	p.begin(1, 0, 100, 2, nil)
	p.follow(2)
	p.begin(2, 0, 100, 3, nil)
	p.Answer(2, 1, remaining(21))
	if woken(p) {
		t.Error("woken for what must not be sent")
	}
	p.Answer(1, 0, remaining(10))
	if got := kept(t, p.take(nil)); !woken(p) || len(got) != 1 || got[0].frame != 1 {
		t.Errorf("before the frame is answered: %+v", got)
	}
	p.follow(2)
	if got := kept(t, p.take(nil)); !woken(p) || len(got) != 1 || got[0].frame != 2 || got[0].index != 1 || got[0].answer.verdict.Remaining != 21 {
		t.Errorf("afterwards: %+v", got)
	}
	p.Answer(2, 0, remaining(20))
	if got := kept(t, p.take(nil)); len(got) != 1 || p.owed != 1 {
		t.Errorf("the last: %+v, %d owed", got, p.owed)
	}
}

// The answers are to records, of which some are no calls.
func TestLateAnswersNameTheRecord(t *testing.T) {
	p := newPromises()
	p.begin(1, 0, 100, 2, []uint16{3, 7})
	p.Answer(1, 1, remaining(1))
	p.follow(2)
	p.Answer(1, 0, remaining(1))
	got := kept(t, p.take(nil))
	if len(got) != 2 || got[0].index != 7 || got[1].index != 3 {
		t.Errorf("%+v", got)
	}
}

// So many answers may be put off and no more, until some are given, or nobody
// waits for them any longer.
func TestPromisesAreBounded(t *testing.T) {
	p := newPromises()
	id := uint64(0)
	next := func(now int64, calls int) bool { id++; return p.begin(id, now, now+100, calls, nil) }
	for range maxPromised / maxRecords {
		if !next(0, maxRecords) {
			t.Fatal("too early")
		}
		p.follow(maxRecords)
	}
	if next(0, 1) {
		t.Error("one too many")
	}
	p.Answer(1, 5, remaining(0))
	if !next(0, 1) || next(0, 2) {
		t.Error("after an answer there is room for one, and not for two")
	}
	if !next(99, 1) || next(99, 2) || !next(100, maxRecords) || p.owed != 0 || len(p.frames) != 0 {
		t.Errorf("after the deadline: %d owed in %d frames", p.owed, len(p.frames))
	}
	p.Answer(2, 0, remaining(0))
	if woken(p); len(kept(t, p.take(nil))) != 1 {
		t.Error("an answer after the deadline is sent")
	}
}

// An asker that uses an id again loses what it was promised, and no more.
func TestIDThatIsUsedAgain(t *testing.T) {
	p := newPromises()
	for range 3 {
		p.begin(1, 0, 100, 5, nil)
		p.follow(5)
	}
	if p.owed != 5 {
		t.Errorf("%d owed", p.owed)
	}
}

// Answers after the stream has ended go nowhere.
func TestAnswersAfterTheEnd(t *testing.T) {
	p := newPromises()
	p.begin(1, 0, 100, 2, nil)
	p.Answer(1, 0, remaining(1))
	p.follow(2)
	p.end()
	p.Answer(1, 1, remaining(1))
	if got := p.take(nil); len(got) != 0 {
		t.Errorf("%d bundles", len(got))
	}
	p = newPromises()
	p.begin(1, 0, 100, 2, nil) // the stream broke before its answers were sent
	p.end()
	if p.Answer(1, 0, remaining(1)); len(p.judged.early) != 0 {
		t.Error("an answer is kept for a stream that has ended")
	}
}

// However large the answers are, each frame of them is one that an asker takes.
func TestLateFramesAreBounded(t *testing.T) {
	p, n := newPromises(), 0
	longest := owner.Result{Err: &transfer.NotMine{Hint: membership.NodeID(bytes.Repeat([]byte("n"), maxHint)), Ring: math.MaxUint64}}
	for _, r := range []owner.Result{longest, {Err: owner.ErrFull}} {
		for id := range uint64(4) {
			p.begin(math.MaxUint64-1-id, 0, 100, maxRecords, nil)
			for i := range maxRecords {
				if i == maxRecords/2 {
					p.follow(maxRecords)
				}
				p.Answer(math.MaxUint64-1-id, i, r)
			}
		}
	}
	taken := p.take(nil)
	for _, b := range taken {
		n += len(kept(t, bundles{b}))
		if size := proto.Size(&b.frame); size > maxReply {
			t.Errorf("%d bytes; the asker takes %d", size, maxReply)
		}
	}
	if n != 8*maxRecords || len(taken) > 100 {
		t.Errorf("%d answers in %d frames", n, len(taken))
	}
	if p.take(taken); len(p.spare) != maxSpare {
		t.Errorf("%d are kept for reuse", len(p.spare))
	}
}

// In whatever order, each answer is sent once, after its frame was answered, and
// the books balance.
func TestLawPromises(t *testing.T) {
	type owed struct {
		frame uint64
		call  int
	}
	rapid.Check(t, func(t *rapid.T) {
		p := newPromises()
		var (
			now    int64
			id     uint64 = 10
			judged uint64 // or 0
			due    = map[uint64]int64{}
			places = map[uint64][]uint16{}
			open   []owed // promised, or may be by the frame that is judged
			early  []owed
			ready  []owed
			spare  bundles
		)
		t.Repeat(map[string]func(*rapid.T){
			"begin": func(t *rapid.T) {
				if judged != 0 {
					return
				}
				id++
				n := rapid.IntRange(1, 4).Draw(t, "calls")
				due[id] = now + int64(rapid.IntRange(1, 30).Draw(t, "patience"))
				if rapid.Bool().Draw(t, "with indices") {
					for i := range n {
						places[id] = append(places[id], uint16(2*i+1))
					}
				}
				p.begin(id, now, due[id], n, places[id])
				for i := range n {
					open = append(open, owed{id, i})
				}
				judged = id
			},
			"follow": func(t *rapid.T) {
				if judged == 0 {
					return
				}
				laters := len(early)
				open = slices.DeleteFunc(open, func(o owed) bool { // some were decided at once
					return o.frame == judged && rapid.Bool().Draw(t, "at once")
				})
				for _, o := range open {
					if o.frame == judged {
						laters++
					}
				}
				if laters > 0 {
					p.follow(laters)
				}
				ready, early, judged = append(ready, early...), nil, 0
			},
			"answer": func(t *rapid.T) {
				if len(open) == 0 {
					return
				}
				o := drawOut(t, &open)
				p.Answer(o.frame, o.call, remaining(int64(o.frame)))
				switch {
				case o.frame == judged:
					early = append(early, o)
				default:
					ready = append(ready, o)
				}
			},
			"time": func(t *rapid.T) {
				if judged != 0 {
					return // it takes no time here
				}
				now += int64(rapid.IntRange(1, 20).Draw(t, "passes"))
				p.begin(1, now, now+1, 1, nil)
				open = slices.DeleteFunc(open, func(o owed) bool { return due[o.frame] <= now })
			},
			"take": func(t *rapid.T) {
				if woke := woken(p); !woke && len(ready) > 0 {
					t.Fatal("nobody is told that there is something to send")
				}
				spare = p.take(spare)
				got := kept(t, spare)
				if len(got) != len(ready) {
					t.Fatalf("%d answers, want %d", len(got), len(ready))
				}
				for i, o := range ready {
					want := uint64(o.call)
					if places[o.frame] != nil {
						want = uint64(places[o.frame][o.call])
					}
					if g := got[i]; g.frame != o.frame || g.index != want || g.answer.verdict.Remaining != int64(o.frame) {
						t.Fatalf("answer %d: %+v, want %+v", i, g, o)
					}
				}
				ready = nil
			},
			"": func(t *rapid.T) {
				n := 0
				for _, o := range open {
					if o.frame != judged {
						n++
					}
				}
				if p.owed != n {
					t.Fatalf("%d owed, want %d", p.owed, n)
				}
			},
		})
	})
}
