package grpcfront

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/durationpb"
	"pgregory.net/rapid"

	ringlimitv1 "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/internal/wire"
	"github.com/ringlimit/ringlimit/limit"
)

// batches is a BatchChecker that answers in an order of its own: those of the keys
// behind its gate last, when that is open.
type batches struct {
	*counters
	behind  gate
	batches atomic.Int64
	sizes   atomic.Int64
}

func (b *batches) CheckAll(ctx context.Context, reqs []limit.Request, answer func(int, *limit.Verdict, error)) {
	b.batches.Add(1)
	b.sizes.Add(int64(len(reqs)))
	verdicts, errs := make([]limit.Verdict, len(reqs)), make([]error, len(reqs))
	var slow []int
	for i := range reqs {
		verdicts[i], errs[i] = b.Check(ctx, reqs[i])
	}
	for _, i := range rand.Perm(len(reqs)) {
		if slices.Contains(b.behind.keys, reqs[i].Key) {
			slow = append(slow, i)
			continue
		}
		answer(i, &verdicts[i], errs[i])
		verdicts[i] = limit.Verdict{Limit: -1} // it lasts no longer
		runtime.Gosched()
	}
	for _, i := range slow {
		_ = b.behind.pass(reqs[i])
		answer(i, &verdicts[i], errs[i])
	}
	clear(reqs) // they are ours until we return
}

func batchConfig(b *batches) Config {
	cfg := config(b.counters)
	cfg.Checker = b
	return cfg
}

// A message is one question, and the calls of it that wait hold up no others.
func TestMessagesAreAskedWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &batches{counters: limited(t, 100), behind: gate{[]string{"slow"}, make(chan struct{})}}
		s := converse(t, client(t, batchConfig(b)))
		s.ask(1, "slow", "a", "b", "", "slow")
		synctest.Wait()
		s.ask(6, "slow", "c")
		s.ask(8, "d")
		for _, id := range []uint64{2, 3, 7, 8} {
			if v := s.verdict(id); v.GetLimit() != 100 || v.GetRemaining() != 99 {
				t.Errorf("call %d: %v", id, v)
			}
		}
		if e := s.reply(4).GetError(); e.GetField() != "key" || s.replies[1] != nil || s.replies[6] != nil {
			t.Errorf("answered %v", s.replies)
		}
		close(b.behind.open)
		for id, remaining := range map[uint64]int64{1: 99, 5: 98, 6: 97} {
			if v := s.verdict(id); v.GetRemaining() != remaining {
				t.Errorf("call %d: %v", id, v)
			}
		}
		s.end()
		if n, of := b.batches.Load(), b.sizes.Load(); n != 3 || of != 7 {
			t.Errorf("%d batches of %d checks", n, of)
		}
	})
}

// A batch of checks has its results in order, whatever the order of the answers.
func TestBatchIsAskedWhole(t *testing.T) {
	b := &batches{counters: limited(t, 100)}
	c := client(t, batchConfig(b))
	var m ringlimitv1.CheckBatchRequest
	for i := range 50 {
		m.Checks = append(m.Checks, &ringlimitv1.CheckRequest{Key: fmt.Sprint(i % 7)})
	}
	m.Checks[20].Tier = "gold"
	got, err := c.CheckBatch(t.Context(), &m)
	if err != nil {
		t.Fatal(err)
	}
	charged := map[string]int64{}
	for i, r := range got.Results {
		if i == 20 {
			if e := r.GetError(); e.GetField() != "tier" || codes.Code(e.GetCode()) != codes.InvalidArgument {
				t.Errorf("check 20: %v", r)
			}
			continue
		}
		key := m.Checks[i].Key
		charged[key]++
		if v := r.GetVerdict(); v.GetRemaining() != 100-charged[key] {
			t.Errorf("check %d: %v", i, r)
		}
	}
	if n := b.batches.Load(); n != 1 || len(got.Results) != 50 {
		t.Errorf("%d batches, %d results", n, len(got.Results))
	}
}

// Whatever the messages are made of, and whatever the order of the answers, each call
// is answered once, and with what is its own.
func TestEachCallIsAnsweredOnce(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		b := &batches{counters: limited(t, 1e6)}
		s := New(batchConfig(b))
		l := &line{ctx: t.Context()}
		tiers, id := map[uint64]string{}, uint64(0)
		for range rapid.IntRange(0, 6).Draw(rt, "messages") {
			var m []byte
			for range rapid.IntRange(0, 20).Draw(rt, "calls") {
				id++
				tiers[id] = rapid.SampledFrom([]string{"default", "free", "open", "gold"}).Draw(rt, "tier")
				refund := rapid.IntRange(0, 9).Draw(rt, "refund") == 0
				m = wire.AppendCall(m, id, &limit.Request{Key: "k", Tier: tiers[id]}, refund)
			}
			l.in = append(l.in, string(m))
		}
		if err := s.checkStream(l); err != nil {
			rt.Fatal(err)
		}
		heard := map[uint64]bool{}
		var rules wire.Rules
		for _, m := range l.sent {
			var r wire.Response
			if err := r.Read(m, &rules); err != nil {
				rt.Fatal(err)
			}
			for i := range r.Replies {
				reply := &r.Replies[i]
				if heard[reply.ID] {
					rt.Errorf("call %d was answered twice", reply.ID)
				}
				heard[reply.ID] = true
				if got := tierOf(reply); got != tiers[reply.ID] {
					rt.Errorf("call %d of tier %s was answered as one of %s", reply.ID, tiers[reply.ID], got)
				}
			}
		}
		if len(heard) != len(tiers) {
			rt.Errorf("%d calls were answered, of %d", len(heard), len(tiers))
		}
	})
}

func tierOf(reply *wire.Reply) string {
	switch {
	case reply.Err != nil && reply.Err.Field == "tier":
		return "gold"
	case reply.Err != nil:
		return reply.Err.Message
	case reply.Verdict.Rule == nil:
		return "open"
	case reply.Verdict.Rule.Name == "global":
		return "default"
	}
	return reply.Verdict.Rule.Name
}

// A Checker that is asked one by one comes to some checks of a message when they are
// overdue: those are charged to nobody either.
func TestChecksThatBecomeOverdueAreNotJudged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		counters := limited(t, 100)
		counters.before = func(limit.Request) error { time.Sleep(30 * time.Millisecond); return nil }
		cfg := config(counters)
		cfg.Now = time.Now
		s := converse(t, client(t, cfg))
		m := ringlimitv1.CheckStreamRequest{Timeout: durationpb.New(50 * time.Millisecond)}
		for id := range uint64(3) {
			m.Calls = append(m.Calls, &ringlimitv1.Call{Id: id, Call: &ringlimitv1.Call_Check{Check: &ringlimitv1.CheckRequest{Key: "one"}}})
		}
		s.send(&m)
		for id := range uint64(3) {
			e := s.reply(id).GetError()
			if late := id == 2; late != (e != nil) || late && codes.Code(e.GetCode()) != codes.DeadlineExceeded {
				t.Errorf("call %d: %v", id, s.replies[id])
			}
		}
		s.end()
		if n := len(counters.requests()); n != 2 {
			t.Errorf("%d were judged", n)
		}
	})
}
