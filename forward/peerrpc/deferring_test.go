package peerrpc

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"

	"github.com/ringlimit/ringlimit/forward"
	"github.com/ringlimit/ringlimit/forward/peerrpc/peerpb"
	"github.com/ringlimit/ringlimit/limit"
	"github.com/ringlimit/ringlimit/membership"
	"github.com/ringlimit/ringlimit/owner"
	"github.com/ringlimit/ringlimit/owner/transfer"
)

// deferring decides at once, but puts the answer off as wait says: for so long,
// or with 0 only until before DecideFrame returns. A negative time: not at all.
// As its callers are told, it answers nothing after the deadline.
type deferring struct {
	table
	steady
	wait  func(c *owner.Call) time.Duration
	heard atomic.Int64 // the deadline it was last given
}

func (d *deferring) DecideFrame(now, deadline int64, calls []owner.Call, results []owner.Result, late owner.Late, frame uint64) {
	d.heard.Store(deadline)
	d.table.DecideFrame(now, calls, results)
	for i := range calls {
		after := d.wait(&calls[i])
		if after < 0 {
			continue
		}
		r := results[i]
		results[i] = owner.Result{Err: owner.ErrLater}
		if after == 0 {
			late.Answer(frame, i, r)
		} else if now+int64(after) < deadline {
			time.AfterFunc(after, func() { late.Answer(frame, i, r) })
		}
	}
}

// echo answers each call with its cost.
type echo struct{ *owner.Table }

func (echo) DecideFrame(_ int64, calls []owner.Call, results []owner.Result) {
	for i := range calls {
		results[i] = owner.Result{Verdict: limit.Verdict{Allowed: true, Remaining: calls[i].Cost}}
	}
}

func knowing(rule *limit.Rule) echo {
	t := holding(testPartitions)
	t.Learn(rule)
	return echo{t}
}

func deferringConfig(id membership.NodeID, d Decider) ServerConfig {
	cfg := serverConfig(id, nil)
	cfg.Decider = d
	return cfg
}

func idle(t *testing.T, p *Pool) {
	t.Helper()
	for _, c := range p.conns {
		b := c.batch
		b.mu.Lock()
		if b.pending != 0 || b.unanswered != 0 || len(b.queue) != 0 || len(b.late) != 0 {
			t.Errorf("left behind: %d pending, %d unanswered, %d queued, %d late", b.pending, b.unanswered, len(b.queue), len(b.late))
		}
		b.mu.Unlock()
	}
}

// Answers that are put off reach who asked, whether they come before the others
// of their frame, in time, too late or never.
func TestLateAnswersReachTheirAskers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rule := tokens(t, 1)
		p := newPairWith(t, deferringConfig("owner", &deferring{table: knowing(rule), wait: func(c *owner.Call) time.Duration {
			return time.Duration(c.Cost%12-2) * time.Millisecond
		}}))
		synctest.Wait()
		var cost, answers, overdue, cancelled atomic.Int64
		var wg sync.WaitGroup
		for g := range 100 {
			wg.Go(func() {
				for range 60 {
					mine := cost.Add(1)
					ctx, cancel := context.WithCancel(context.Background())
					if g%3 == 0 {
						time.AfterFunc(time.Duration(1+rand.IntN(8))*time.Millisecond, cancel)
					}
					v, err := p.peer.Check(ctx, callOf(rule, fmt.Sprint(mine), mine), within(time.Duration(1+rand.IntN(10))*time.Millisecond))
					cancel()
					switch {
					case err == nil && v.Remaining == mine:
						answers.Add(1)
					case errors.Is(err, forward.ErrTimeout):
						overdue.Add(1)
					case errors.Is(err, context.Canceled):
						cancelled.Add(1)
					default:
						t.Errorf("check %d: %+v, %v", mine, v, err)
					}
				}
			})
		}
		wg.Wait()
		if answers.Load() == 0 || overdue.Load() == 0 || cancelled.Load() == 0 {
			t.Errorf("%d answers, %d overdue, %d cancelled: the test tests nothing", answers.Load(), overdue.Load(), cancelled.Load())
		}
		time.Sleep(time.Second)
		idle(t, p.pool)
	})
}

// Two nodes each of which answers only when the other has taken its copy, both
// with many callers and many messages: neither waits for ever.
func TestStandbysOfEachOtherDoNotWaitForEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, rule := newNetwork(), tokens(t, 1)
		members := []membership.Member{{ID: "a", Boot: 1, Peer: "a"}, {ID: "b", Boot: 1, Peer: "b"}}
		nodes := make([]*standby, 2)
		for i, m := range members {
			nodes[i] = &standby{table: knowing(rule), other: members[1-i], owed: map[int64]func(){}}
			cfg := poolConfig(n.dial)
			cfg.Self, cfg.Boot = m.ID, m.Boot
			nodes[i].pool = NewPool(cfg)
			defer nodes[i].pool.Close()
		}
		for i, m := range members {
			cfg := deferringConfig(m.ID, nodes[i])
			cfg.Receive = nodes[i].receive
			serve(t, cfg, n.listen(m.Peer))
		}
		synctest.Wait()
		var wg sync.WaitGroup
		var answered atomic.Int64
		for _, nd := range nodes {
			peer := nd.pool.Peer(nd.other)
			for g := range 300 {
				wg.Go(func() {
					for i := range 40 {
						mine := int64(1000*g + i + 1)
						v, err := peer.Check(context.Background(), callOf(rule, fmt.Sprint(mine), mine), within(time.Second))
						if err != nil || v.Remaining != mine {
							t.Errorf("check %d: %+v, %v", mine, v, err)
							return
						}
						answered.Add(1)
					}
				})
			}
		}
		wg.Wait()
		if answered.Load() != 2*300*40 {
			t.Errorf("%d answers", answered.Load())
		}
		for _, nd := range nodes {
			idle(t, nd.pool)
		}
	})
}

// standby answers a frame when the other node has acknowledged a message.
type standby struct {
	table
	steady
	pool  *Pool
	other membership.Member

	mu   sync.Mutex
	last int64
	owed map[int64]func()
}

func (s *standby) DecideFrame(now, _ int64, calls []owner.Call, results []owner.Result, late owner.Late, frame uint64) {
	s.table.DecideFrame(now, calls, results)
	decided := append([]owner.Result(nil), results...)
	for i := range results {
		results[i] = owner.Result{Err: owner.ErrLater}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	s.owed[s.last] = func() {
		for i, r := range decided {
			late.Answer(frame, i, r)
		}
	}
	s.pool.Post(s.other, &transfer.Beat{At: s.last})
}

// receive answers under its lock, as a driver does.
func (s *standby) receive(_ membership.NodeID, _ membership.BootID, m transfer.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch m := m.(type) {
	case *transfer.Beat:
		s.pool.Post(s.other, &transfer.BeatBack{At: m.At})
	case *transfer.BeatBack:
		s.owed[m.At]()
		delete(s.owed, m.At)
	}
}

// An asker that does not read holds nobody up who answers late, however much the
// answers are, and is owed a bounded number of them.
func TestSlowAskerHoldsNobodyUp(t *testing.T) {
	l, rule := loopback(t), tokens(t, 1)
	type owing struct {
		late  owner.Late
		frame uint64
		calls int
	}
	frames := make(chan owing, 100)
	d := &capturing{table: knowing(rule), see: func(late owner.Late, frame uint64, calls int) { frames <- owing{late, frame, calls} }}
	s := NewServer(deferringConfig("owner", d))
	go s.Serve(l)
	stream := rawStream(t, l.Addr().String(), greeting())
	var owed []owing
	for n := range 2 * maxPromised / maxRecords {
		if err := stream.Send(&peerpb.Frame{Id: uint64(n + 1), Records: manyRecords(rule), PatienceUs: math.MaxUint64}); err != nil {
			t.Fatal(err)
		}
		f, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if overloaded := outcome(f.Records[0]) == overloaded; overloaded != (n >= maxPromised/maxRecords) {
			t.Fatalf("frame %d: overloaded %v", n, overloaded)
		} else if !overloaded {
			owed = append(owed, <-frames)
		}
	}
	longest := &transfer.NotMine{Hint: membership.NodeID(make([]byte, maxHint)), Ring: 1}
	for _, o := range owed { // hangs if one of them waits for the asker
		for i := range o.calls {
			o.late.Answer(o.frame, i, owner.Result{Err: longest})
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	s.Stop(ctx)
	owed[0].late.Answer(1, 0, owner.Result{Err: longest}) // after the end it does no harm
}

// capturing puts everything off and shows whom to answer.
type capturing struct {
	table
	steady
	see func(late owner.Late, frame uint64, calls int)
}

func (c *capturing) DecideFrame(_, _ int64, calls []owner.Call, results []owner.Result, late owner.Late, frame uint64) {
	for i := range results {
		results[i] = owner.Result{Err: owner.ErrLater}
	}
	c.see(late, frame, len(calls))
}

// The owner is told how long the asker waits, and believes up to a minute.
func TestDeadlineOfAFrame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rule := tokens(t, 1)
		d := &deferring{table: knowing(rule), wait: func(*owner.Call) time.Duration { return -1 }}
		p := newPairWith(t, deferringConfig("owner", d))
		for _, c := range []struct{ patience, want time.Duration }{
			{50 * time.Millisecond, 50 * time.Millisecond}, {time.Hour, maxPatience},
		} {
			if _, err := p.check(rule, "k", 1, c.patience); err != nil {
				t.Fatal(err)
			}
			if got := time.Duration(d.heard.Load() - wall()); got != c.want {
				t.Errorf("a check that waits %v: the owner may take %v", c.patience, got)
			}
		}
		stream := rawStream(t, "owner:1", greeting(), grpc.WithContextDialer(p.net.dial))
		if err := stream.Send(&peerpb.Frame{Id: 1, Records: manyRecords(rule), PatienceUs: math.MaxUint64}); err != nil {
			t.Fatal(err)
		}
		if _, err := stream.Recv(); err != nil || d.heard.Load() != wall()+int64(maxPatience) {
			t.Errorf("for ever: %v, %v", err, time.Duration(d.heard.Load()-wall()))
		}
	})
}

// A frame of which one record was not judged: the late answers find the others.
func TestLateAnswersBesideAnUnknownRule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		known, unknown := tokens(t, 1), tokens(t, 2)
		p := newPairWith(t, deferringConfig("owner", &deferring{table: knowing(known), wait: func(*owner.Call) time.Duration { return time.Millisecond }}))
		var wg sync.WaitGroup
		for i := range int64(40) { // before the stream stands: they share a frame
			wg.Go(func() {
				rule := known
				if i%3 == 0 {
					rule = unknown
				}
				if v, err := p.check(rule, fmt.Sprint(i), i+1, time.Second); err != nil || v.Remaining != i+1 {
					t.Errorf("check %d: %+v, %v", i, v, err)
				}
			})
		}
		wg.Wait()
	})
}

// A node that stops gives the answers that it has put off.
func TestStopGivesLateAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rule := tokens(t, 1)
		for _, c := range []struct {
			comes, waits, ends time.Duration
			err                error
		}{
			{300 * time.Millisecond, time.Second, 300 * time.Millisecond, nil},
			{time.Hour, 400 * time.Millisecond, 400 * time.Millisecond, forward.ErrTimeout}, // it never comes: who waits gives up
			{time.Hour, time.Hour, farewellTime, forward.ErrUnreachable},                    // and who does not is not waited for
		} {
			n := newNetwork()
			s := NewServer(deferringConfig("owner", &deferring{table: knowing(rule), wait: func(*owner.Call) time.Duration { return c.comes }}))
			go s.Serve(n.listen("owner:1"))
			pool := NewPool(poolConfig(n.dial))
			peer := pool.Peer(ownerMember)
			start, done, stopped := time.Now(), make(chan error), make(chan struct{})
			go func() {
				_, err := peer.Check(context.Background(), callOf(rule, "k", 1), within(c.waits))
				done <- err
			}()
			synctest.Wait()
			go func() {
				s.Stop(context.Background())
				close(stopped)
			}()
			if err := <-done; err != c.err || time.Since(start) != c.ends {
				t.Errorf("%+v: the check: %v after %v", c, err, time.Since(start))
			}
			if <-stopped; time.Since(start) != c.ends {
				t.Errorf("%+v: stopped after %v", c, time.Since(start))
			}
			pool.Close()
			time.Sleep(time.Hour)
		}
	})
}
