package peerrpc

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ringlimit/ringlimit/forward"
	"github.com/ringlimit/ringlimit/forward/peerrpc/peerpb"
	"github.com/ringlimit/ringlimit/limit"
	"github.com/ringlimit/ringlimit/owner"
)

// callsOf are checks of different counters, whose costs count up from 1.
func callsOf(rule *limit.Rule, n int) []owner.Call {
	calls := make([]owner.Call, n)
	for i := range calls {
		calls[i] = *callOf(rule, fmt.Sprint("counter-", i), int64(i+1))
	}
	return calls
}

// hearAll waits for the answers to n calls.
func hearAll(t *testing.T, to *forward.Inbox, first, n int) []owner.Result {
	t.Helper()
	results, left := make([]owner.Result, n), n
	for left > 0 {
		<-to.Rung()
		for _, a := range to.Take(nil) {
			results[a.Index-first] = a.Result
			left--
		}
	}
	return results
}

func (p *pair) sendEach(t *testing.T, calls []owner.Call, d time.Duration) []owner.Result {
	to := forward.NewInbox()
	p.peer.SendEach(calls, within(d), to, 7)
	return hearAll(t, to, 7, len(calls))
}

// Many checks travel in as many frames as they need, and each gets its own answer.
func TestSendEach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := holding(testPartitions)
		p, rule := newPair(t, table), tokens(t, 10_000)
		table.Learn(rule)
		const n = 5 * maxRecords / 2
		for i, r := range p.sendEach(t, callsOf(rule, n), time.Second) {
			if want := int64(10_000 - i - 1); r.Err != nil || !r.Verdict.Allowed || r.Verdict.Remaining != want {
				t.Errorf("check %d: %+v", i, r)
			}
		}
		same := make([]owner.Call, n) // in their order
		for i := range same {
			same[i] = *callOf(rule, "one", 1)
		}
		for i, r := range p.sendEach(t, same, time.Second) {
			if want := int64(10_000 - i - 1); r.Err != nil || r.Verdict.Remaining != want {
				t.Errorf("check %d of one counter: %+v", i, r)
			}
		}
	})
}

// What cannot be judged is refused by itself; an owner that lacks a rule has each such
// check asked for alone; one that is gone was not asked; one that hangs is waited for
// until the deadline, and one that dies may have counted.
func TestSendEachThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		let := make(chan struct{})
		table := &scripted{Table: holding(testPartitions), decide: func(calls []owner.Call, _ []owner.Result) {
			if len(calls) > 0 {
				<-let
			}
		}}
		p, rule := newPair(t, table), tokens(t, 10)
		expect := func(what string, results []owner.Result, want error) {
			t.Helper()
			for i, r := range results {
				if !errors.Is(r.Err, want) {
					t.Errorf("%s: %d: %v, want %v", what, i, r.Err, want)
				}
			}
		}
		bad := callsOf(rule, 3)
		bad[0].Cost, bad[1].Counter, bad[2].Counter = 0, nil, make([]byte, maxName+1)
		expect("invalid", p.sendEach(t, bad, time.Second), forward.ErrRejected)
		expect("unknown rule", p.sendEach(t, callsOf(rule, 3), time.Second), forward.ErrNoGroup)
		table.Learn(rule)
		start := time.Now()
		expect("hangs", p.sendEach(t, callsOf(rule, 3), time.Second), forward.ErrTimeout)
		if took := time.Since(start); took != time.Second {
			t.Errorf("it took %v", took)
		}
		to := forward.NewInbox()
		p.peer.SendEach(callsOf(rule, 3), within(time.Second), to, 0)
		synctest.Wait()
		p.net.forget("owner:1")
		p.net.cut()
		expect("dies", hearAll(t, to, 0, 3), forward.ErrUnreachable)
		synctest.Wait()
		expect("is gone", p.sendEach(t, callsOf(rule, 3), time.Second), forward.ErrAbsent)
		close(let)
		p.pool.Close()
		p.peer = p.pool.Peer(ownerMember)
		expect("closed", p.sendEach(t, callsOf(rule, 3), time.Second), forward.ErrAbsent)
	})
}

// The bounds on what waits for a peer hold for each check of many as for one.
func TestSendEachIsBounded(t *testing.T) {
	b, rule := newTestBatch(), tokens(t, 1)
	to := forward.NewInbox()
	b.addEach(callsOf(rule, maxPending+5), 100, to, 0)
	refused := to.Take(nil)
	for i, a := range refused {
		if a.Index != maxPending+i || a.Err != forward.ErrOverloaded {
			t.Errorf("%+v", a)
		}
	}
	if len(refused) != 5 || b.pending != maxPending {
		t.Errorf("%d refused, %d pending", len(refused), b.pending)
	}
	for _, f := range b.queue {
		if len(f.seats) > maxRecords || len(f.packet.Records) > frameBytes {
			t.Errorf("a frame of %d checks and %d bytes", len(f.seats), len(f.packet.Records))
		}
	}
	b, to = newTestBatch(), forward.NewInbox()
	long := callsOf(rule, maxQueued/maxName+1)
	for i := range long {
		long[i].Counter = make([]byte, maxName)
	}
	b.addEach(long, 100, to, 0)
	if refused := to.Take(nil); len(refused) == 0 || b.queued > maxQueued || len(refused)+b.pending != len(long) {
		t.Errorf("%d refused, %d pending, %d bytes", len(refused), b.pending, b.queued)
	}
}

// A caller with several frames sends as many as may be on their way, and no more.
func TestSendEachFillsTheWire(t *testing.T) {
	b, out := newTestBatch(), &wire{}
	b.start(&session{stream: out})
	(&conn{batch: b.batcher}).SendEach(callsOf(tokens(t, 1), 4*maxRecords), 100, forward.NewInbox(), 0)
	if len(out.sent) != maxUnanswered {
		t.Errorf("%d frames were sent", len(out.sent))
	}
}

// nestedWire has a check added, and perhaps its frame led by another, while the first
// frame is being sent.
type nestedWire struct {
	wire
	meanwhile func()
}

func (w *nestedWire) Send(f *peerpb.Frame) error {
	if meanwhile := w.meanwhile; meanwhile != nil {
		w.meanwhile = nil
		meanwhile()
	}
	return w.wire.Send(f)
}

// Frames leave in the order in which they were filled, whoever sends them.
func TestFramesLeaveInOrder(t *testing.T) {
	b, out := newTestBatch(), &nestedWire{}
	var second sync.WaitGroup
	out.meanwhile = func() {
		if leads, err := b.add(&record{cost: 2, name: []byte("k")}, b.waiters.Get(100)); err != nil || !leads {
			t.Errorf("leads: %v, %v", leads, err)
		}
		second.Go(b.lead)
		for range 100 {
			runtime.Gosched() // it gets as far as it can
		}
		if b.unansweredNow() != 1 {
			t.Error("the second frame was taken before the first had left")
		}
	}
	b.start(&session{stream: out})
	b.put(t, 1, 100)
	second.Wait()
	for i, f := range out.sent {
		var r record
		if _, err := cutRecord(f.Records, &r); err != nil || r.cost != int64(i+1) || f.Id != uint64(i+1) {
			t.Errorf("frame %d: id %d, cost %d, %v", i, f.Id, r.cost, err)
		}
	}
	if len(out.sent) != 2 {
		t.Errorf("%d frames", len(out.sent))
	}
}

func (b *batch) unansweredNow() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.unanswered
}

// A batch whose rule the owner has not heard of is decided all the same.
func TestDecideEachTeachesTheRule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		a, b := newGateway(t, n, "a"), newGateway(t, n, "b")
		rg := a.believe(t, "a", "b")
		b.believe(t, "a", "b")
		synctest.Wait()
		rule, name := tokens(t, 20), nameWhere(t, rg, "b", rg, "b")
		calls := make([]owner.Call, 20)
		for i := range calls {
			calls[i].Charge = limit.Charge{Counter: []byte(name), Rule: rule, Cost: 1}
		}
		left := int64(20)
		a.DecideEach(context.Background(), calls, func(i int, v *limit.Verdict, err error) {
			if left--; err != nil || v.Source != limit.SourceForwarded || v.Remaining != left || i != int(19-left) {
				t.Errorf("%d: %+v, %v", i, v, err)
			}
		})
		if left != 0 {
			t.Errorf("%d answers are missing", left)
		}
	})
}

// Callers of many who give up soon, of an owner who puts off some answers: each call is
// answered once, and with what was said to it, though the room for calls, the frames and
// the inboxes are used again and again.
func TestAnswersToManyReachTheirAskers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, rule := newNetwork(), tokens(t, 10)
		serve(t, deferringConfig("b", &deferring{table: knowing(rule), wait: func(c *owner.Call) time.Duration {
			return time.Duration(c.Cost%6-1) * time.Millisecond
		}}), n.listen("b"))
		a := newGateway(t, n, "a")
		a.believe(t, "b")
		synctest.Wait()
		var cost, heard, overdue, cancelled atomic.Int64
		var all sync.WaitGroup
		for g := range 30 {
			all.Go(func() {
				for range 40 {
					ctx, cancel := context.WithTimeout(context.Background(), time.Duration(1+rand.IntN(6))*time.Millisecond)
					if g%3 == 0 {
						time.AfterFunc(time.Duration(1+rand.IntN(4))*time.Millisecond, cancel)
					}
					calls := make([]owner.Call, 1+rand.IntN(60))
					for i := range calls {
						c := cost.Add(1)
						calls[i].Charge = limit.Charge{Counter: fmt.Append(nil, c), Rule: rule, Cost: c}
					}
					answers := make([]int, len(calls))
					a.DecideEach(ctx, calls, func(i int, v *limit.Verdict, err error) {
						answers[i]++
						switch mine := calls[i].Cost; {
						case err == context.Canceled:
							cancelled.Add(1)
						case err != nil:
							t.Errorf("call %d: %v", mine, err)
						case v.Source == limit.SourceFallback:
							overdue.Add(1)
						case v.Source == limit.SourceForwarded && v.Remaining == mine:
							heard.Add(1)
						default:
							t.Errorf("call %d: %+v", mine, v)
						}
					})
					cancel()
					for i, n := range answers {
						if n != 1 {
							t.Errorf("call %d was answered %d times", i, n)
						}
					}
				}
			})
		}
		all.Wait()
		if heard.Load() == 0 || overdue.Load() == 0 || cancelled.Load() == 0 {
			t.Errorf("%d answers, %d overdue, %d cancelled: the test tests nothing", heard.Load(), overdue.Load(), cancelled.Load())
		}
		time.Sleep(time.Second) // answers that nobody waits for
		idle(t, a.pool)
	})
}

// Callers who ask for many and callers who ask for one share the frames: each counter
// is charged as often as it was asked for.
func TestManyAndSingleChecksTogether(t *testing.T) {
	table := holding(testPartitions)
	rule, err := limit.NewRule(limit.Spec{Algorithm: limit.TokenBucket, Limit: 1000, Window: 10_000 * time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	table.Learn(rule)
	l := loopback(t)
	serve(t, serverConfig("owner", table), l)
	member := ownerMember
	member.Peer = l.Addr().String()
	peer := newPool(t, nil).Peer(member)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 20 {
				to := forward.NewInbox()
				calls := callsOf(rule, 100)
				for i := range calls {
					calls[i].Cost = 1
				}
				peer.SendEach(calls, within(10*time.Second), to, 0)
				for i, r := range hearAll(t, to, 0, len(calls)) {
					if r.Err != nil {
						t.Errorf("%d: %v", i, r.Err)
					}
				}
			}
		})
		all.Go(func() {
			for i := range 500 {
				if _, err := peer.Check(context.Background(), callOf(rule, fmt.Sprint("counter-", i%100), 1), within(10*time.Second)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	for i := range 100 {
		var v limit.Verdict
		c := callOf(rule, fmt.Sprint("counter-", i), 1)
		c.Mode = limit.Peek
		if err := table.Decide(wall(), c, &v); err != nil || v.Remaining != 1000-4*(20+5) {
			t.Errorf("counter %d: %+v, %v", i, v, err)
		}
	}
}
