package forward

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/ringlimit/ringlimit/limit"
	"github.com/ringlimit/ringlimit/membership"
	"github.com/ringlimit/ringlimit/owner"
	"github.com/ringlimit/ringlimit/owner/transfer"
)

// played is what a node does when it is asked for a call of many.
type played struct {
	err   error         // nil: it decides
	alone bool          // handed over with others, it wants to be asked for this one alone
	late  time.Duration // the answer of a call of this very node is put off for so long; 0: it is not
}

func drawPlayed() *rapid.Generator[played] {
	return rapid.Custom(func(t *rapid.T) played {
		return played{
			err: rapid.SampledFrom([]error{
				nil, nil, &transfer.NotMine{}, &transfer.NotMine{Hint: other}, &transfer.NotMine{Hint: third}, &transfer.NotMine{Hint: self},
				&transfer.NotMine{Hint: "e"}, ErrAbsent, ErrTimeout, ErrUnreachable, ErrOverloaded, owner.ErrFull,
			}).Draw(t, "answer"),
			alone: rapid.IntRange(0, 4).Draw(t, "alone") == 0,
			late:  time.Duration(rapid.SampledFrom([]int64{0, 0, 1, 30, 70}).Draw(t, "late")) * time.Millisecond,
		}
	})
}

// troupe is three nodes that keep to a script for each call, told apart by its cost.
type troupe struct {
	*fixture
	mu      sync.Mutex
	scripts [][]played
	asked   [][]scene // by call
	order   []int64   // of the costs asked for in searches
}

type scene struct {
	node   membership.NodeID
	at     int64
	played played
}

func newTroupe(t *testing.T, scripts [][]played) *troupe {
	w := &troupe{scripts: scripts, asked: make([][]scene, len(scripts))}
	w.fixture = newFixture(t, func(c *Config) { c.Local = stage{w, self} })
	w.publish(t, map[membership.NodeID]Peer{other: stage{w, other}, third: stage{w, third}})
	return w
}

// play goes through the call's script; behind its end nobody holds the counter.
func (w *troupe) play(id membership.NodeID, c *owner.Call, alone bool) (limit.Verdict, played) {
	w.mu.Lock()
	defer w.mu.Unlock()
	i, p := c.Cost-1, played{err: &transfer.NotMine{}}
	if n := len(w.asked[i]); n < len(w.scripts[i]) {
		p = w.scripts[i][n]
	}
	if p.alone = p.alone && !alone && id != self; p.alone {
		p.err = ErrNoGroup
	}
	if p.late > 0 && id == self && !alone && p.err != nil && uncounted(p.err) {
		p.late = 0
	}
	if alone {
		w.order = append(w.order, c.Cost)
	}
	w.asked[i] = append(w.asked[i], scene{id, wall(), p})
	return limit.Verdict{Allowed: p.err == nil, Remaining: c.Cost}, p
}

// stage is one of the nodes, this one or another.
type stage struct {
	*troupe
	id membership.NodeID
}

func (s stage) Check(_ context.Context, c *owner.Call, _ int64) (limit.Verdict, error) {
	v, p := s.play(s.id, c, true)
	return v, p.err
}

func (s stage) SendEach(calls []owner.Call, _ int64, to *Inbox, first int) {
	for i := range calls {
		v, p := s.play(s.id, &calls[i], false)
		to.Put(first+i, &owner.Result{Verdict: v, Err: p.err})
	}
	to.Ring()
}

func (s stage) Decide(_ context.Context, _, _ int64, c *owner.Call, v *limit.Verdict) (err error) {
	var p played
	*v, p = s.play(s.id, c, true)
	return p.err
}

func (s stage) DecideFrame(_, _ int64, calls []owner.Call, results []owner.Result, late owner.Late, frame uint64) {
	for i := range calls {
		v, p := s.play(s.id, &calls[i], false)
		results[i] = owner.Result{Verdict: v, Err: p.err}
		if p.late > 0 {
			answer := results[i]
			time.AfterFunc(p.late, func() { late.Answer(frame, i, answer) })
			results[i].Err = owner.ErrLater
		}
	}
}

func (stage) Send([]owner.Call, []owner.Result, int64) Sent { panic("no groups") }
func (stage) DecideGroup(context.Context, int64, int64, []owner.Call, []owner.Result) {
	panic("no groups")
}

// Whatever the nodes answer to calls that are asked for together: each is answered
// once; it is asked for again only after an answer that says that nobody has counted
// it; the verdict is the owner's if one has decided in time, else on_failure's; and
// those of one counter are looked for in their order.
func TestLawDecideEach(t *testing.T) {
	rule := withFailure(tokens(t, 10), limit.FailDeny)
	rapid.Check(t, func(rt *rapid.T) {
		scripts := rapid.SliceOfN(rapid.SliceOfN(drawPlayed(), 0, 6), 1, 12).Draw(rt, "scripts")
		names := rapid.SliceOfN(rapid.IntRange(0, 8), len(scripts), len(scripts)).Draw(rt, "counters")
		var wrong string
		synctest.Test(t, func(t *testing.T) {
			w := newTroupe(t, scripts)
			wrong = w.perform(rule, names)
			time.Sleep(time.Second) // what is late has come
		})
		if wrong != "" {
			rt.Fatal(wrong)
		}
	})
}

func (w *troupe) perform(rule *limit.Rule, names []int) (wrong string) {
	calls := make([]owner.Call, len(names))
	for i, name := range names {
		calls[i].Charge = limit.Charge{Counter: fmt.Appendf(nil, "counter-%d", name), Rule: rule, Cost: int64(i + 1)}
	}
	start, answered := wall(), make([]int, len(names))
	w.DecideEach(context.Background(), calls, func(i int, v *limit.Verdict, err error) {
		answered[i]++
		if err != nil {
			wrong = err.Error()
			return
		}
		if v.Rule != rule {
			wrong = "another rule"
		}
		if why := w.judge(i, v, time.Duration(wall()-start)); why != "" {
			wrong = fmt.Sprintf("call %d: %s", i, why)
		}
	})
	for i, n := range answered {
		if n != 1 {
			return fmt.Sprintf("call %d was answered %d times", i, n)
		}
	}
	last := map[int]int64{}
	for _, cost := range w.order {
		name := names[cost-1]
		if cost < last[name] {
			return fmt.Sprintf("call %d was looked for after %d", cost-1, last[name]-1)
		}
		last[name] = cost
	}
	return wrong
}

func (w *troupe) judge(i int, v *limit.Verdict, took time.Duration) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	asked := w.asked[i]
	for n, s := range asked {
		if n < len(asked)-1 && !uncounted(s.played.err) && !(n == 0 && s.played.alone) {
			return fmt.Sprintf("asked again after %v", s.played.err)
		}
	}
	if len(asked) == 0 || took > DefaultDeadline {
		return fmt.Sprintf("asked %d times, answered after %v", len(asked), took)
	}
	s := asked[len(asked)-1]
	want := limit.SourceForwarded
	switch {
	case s.played.err != nil, len(asked) == 1 && s.node == self && s.played.late >= DefaultDeadline:
		want = limit.SourceFallback
	case s.node == self:
		want = limit.SourceOwner
	}
	if v.Source != want || v.Allowed != (want != limit.SourceFallback) {
		return fmt.Sprintf("%+v of %+v", v, asked)
	}
	return ""
}

// eachAnswer is what DecideEach says, in the order in which it does.
type eachAnswer struct {
	index   int
	verdict limit.Verdict
	err     error
	after   time.Duration
}

func (f *fixture) decideEach(ctx context.Context, charges ...limit.Charge) (answers []eachAnswer) {
	calls, start := make([]owner.Call, len(charges)), time.Now()
	for i := range charges {
		calls[i].Charge = charges[i]
	}
	f.DecideEach(ctx, calls, func(i int, v *limit.Verdict, err error) {
		a := eachAnswer{index: i, err: err, after: time.Since(start)}
		if v != nil {
			a.verdict = *v
		}
		answers = append(answers, a)
	})
	return answers
}

// What the deny cache knows is asked of nobody; the rest of each owner is handed over
// once.
func TestDecideEachAsksEachOwnerOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newTrio(t)
		rule := tokens(t, 2)
		denied := unit(k.named(t, other, 1), rule)
		for range 3 {
			k.take(t, denied.Counter, rule, 1)
		}
		k.b.asked.Store(0)
		k.b.sent.Store(0)
		peek := denied
		peek.Mode = limit.Peek
		b, c, own := unit(k.named(t, other, 2), rule), unit(k.named(t, third, 3), rule), unit(k.named(t, self, 4), rule)
		var sources []limit.Source
		for _, a := range k.decideEach(context.Background(), b, c, denied, own, b, c, own, b, peek) {
			sources = append(sources, a.verdict.Source)
			if a.verdict.Allowed != (a.index != 7 && a.index != 2 && a.index != 8) || a.verdict.Rule != rule || a.err != nil {
				t.Errorf("%+v", a)
			}
		}
		if k.b.sent.Load() != 1 || k.c.sent.Load() != 1 || k.b.asked.Load() != 4 || k.c.asked.Load() != 2 {
			t.Errorf("b: %d calls in %d, c: %d in %d", k.b.asked.Load(), k.b.sent.Load(), k.c.asked.Load(), k.c.sent.Load())
		}
		cached := limit.SourceDenyCache
		if sources[0] != cached || slices.Contains(sources[1:], cached) {
			t.Errorf("sources %v", sources)
		}
		if len(k.witness.hops) != 3+6 {
			t.Errorf("%d hops were timed", len(k.witness.hops))
		}
		again := k.decideEach(context.Background(), b) // its denial is remembered
		if again[0].verdict.Source != cached {
			t.Errorf("%+v", again)
		}
	})
}

// Who gives up is told of all that has no answer, and the next caller hears nothing of
// what comes after.
func TestDecideEachIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newTrio(t)
		var left *Inbox
		k.publish(t, map[membership.NodeID]Peer{other: handing{k.b, func(to *Inbox) { left = to }}, third: k.c})
		ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
		time.AfterFunc(time.Millisecond, cancel)
		rule := tokens(t, 5)
		b, c := unit(k.named(t, other, 1), rule), unit(k.named(t, third, 2), rule)
		answers := k.decideEach(ctx, b, c)
		if len(answers) != 2 || answers[0].index != 1 || answers[0].after > 0 || answers[1].err != context.Canceled || answers[1].after != time.Millisecond {
			t.Errorf("%+v", answers)
		}
		left.Put(0, &owner.Result{Err: owner.ErrFull})
		left.Ring()
		k.publish(t, map[membership.NodeID]Peer{other: k.b, third: k.c})
		for range 3 {
			if a := k.decideEach(context.Background(), c, b); len(a) != 2 || a[0].err != nil || a[1].err != nil {
				t.Errorf("afterwards: %+v", a)
			}
		}
	})
}

// handing tells of the inbox, and never answers.
type handing struct {
	*groupPeer
	tell func(*Inbox)
}

func (h handing) SendEach(_ []owner.Call, _ int64, to *Inbox, _ int) { h.tell(to) }

// A deadline that has passed before sends nothing to anybody.
func TestDecideEachTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newTrio(t)
		ctx, cancel := context.WithDeadline(context.Background(), time.Now())
		defer cancel()
		rule := withFailure(tokens(t, 5), limit.FailAllow)
		answers := k.decideEach(ctx, unit(k.named(t, other, 1), rule), unit(k.named(t, third, 2), rule))
		for _, a := range answers {
			if !a.verdict.Allowed || a.verdict.Source != limit.SourceFallback || a.after > 0 {
				t.Errorf("%+v", a)
			}
		}
		if n := k.b.asked.Load() + k.c.asked.Load(); n != 0 || k.witness.counts()["timeout"] != 2 {
			t.Errorf("%d were asked; %s", n, k.witness.told())
		}
	})
}

// Without a ring there is nobody to ask.
func TestDecideEachWithoutOwners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		rule := withFailure(tokens(t, 5), limit.FailDeny)
		answers := f.decideEach(context.Background(), unit([]byte("x"), rule), unit([]byte("y"), rule))
		for _, a := range answers {
			if a.verdict.Reason != limit.Unavailable || a.after > DefaultDeadline {
				t.Errorf("%+v", a)
			}
		}
		if len(answers) != 2 || f.witness.counts()["no_owner"] != 2 {
			t.Errorf("%d answers; %s", len(answers), f.witness.told())
		}
		f.DecideEach(context.Background(), nil, func(int, *limit.Verdict, error) { t.Error("an answer to nothing") })
	})
}

// lateFrames puts off what is asked of it.
type lateFrames struct {
	tableLocal
	after time.Duration
}

func (l lateFrames) DecideFrame(now, _ int64, calls []owner.Call, results []owner.Result, late owner.Late, frame uint64) {
	l.Table.DecideFrame(now, calls, results)
	for i, r := range results {
		time.AfterFunc(l.after, func() { late.Answer(frame, i, r) })
		results[i].Err = owner.ErrLater
	}
}

// What this node puts off is waited for, and timed as a wait; others' answers come
// before.
func TestDecideEachWaitsForItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newTrio(t)
		k.cfg.Local = lateFrames{tableLocal{k.local}, 3 * time.Millisecond}
		rule := tokens(t, 5)
		answers := k.decideEach(context.Background(), unit(k.named(t, self, 1), rule), unit(k.named(t, other, 2), rule))
		if len(answers) != 2 || answers[0].index != 1 || answers[0].after > 0 || answers[1].verdict.Source != limit.SourceOwner {
			t.Errorf("%+v", answers)
		}
		if w := k.witness.waits; len(w) != 1 || w[0] != 3*time.Millisecond || len(k.witness.hops) != 1 {
			t.Errorf("waits %v, hops %v", w, k.witness.hops)
		}
		k.cfg.Local = lateFrames{tableLocal{k.local}, time.Hour}
		for _, a := range k.decideEach(context.Background(), unit(k.named(t, self, 1), rule)) {
			if a.err != nil || a.verdict.Source != limit.SourceFallback || a.after != DefaultDeadline {
				t.Errorf("%+v", a)
			}
		}
		time.Sleep(2 * time.Hour) // the late answer reaches nobody
	})
}

// teaching wants to be asked for each call alone, and takes a while for that.
type teaching struct {
	*groupPeer
	now, most, asked *atomic.Int64
}

func (p teaching) SendEach(calls []owner.Call, _ int64, to *Inbox, first int) {
	for i := range calls {
		to.Put(first+i, &owner.Result{Err: ErrNoGroup})
	}
	to.Ring()
}

func (p teaching) Check(_ context.Context, c *owner.Call, _ int64) (limit.Verdict, error) {
	p.asked.Add(1)
	p.most.Store(max(p.most.Load(), p.now.Add(1)))
	defer p.now.Add(-1)
	time.Sleep(time.Millisecond)
	return limit.Verdict{Allowed: true, Remaining: c.Cost}, nil
}

// However many counters are looked for, only so many goroutines do it; and all are
// found, once each, those of one counter in their order.
func TestDecideEachBoundsItsSearches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newTrio(t)
		p := teaching{k.b, new(atomic.Int64), new(atomic.Int64), new(atomic.Int64)}
		k.publish(t, map[membership.NodeID]Peer{other: p, third: k.c})
		const counters = 2*maxSeekers + 1
		rule, calls := tokens(t, 5), make([]limit.Charge, 0, 2*counters)
		for cost := int64(1); cost <= 2; cost++ {
			for i := range counters {
				c := unit(k.named(t, other, i), rule)
				c.Cost = cost
				calls = append(calls, c)
			}
		}
		costs := map[int]int64{}
		answers := k.decideEach(context.Background(), calls...)
		for _, a := range answers {
			of := a.index % counters
			if a.err != nil || a.verdict.Source != limit.SourceForwarded || a.verdict.Remaining != costs[of]+1 {
				t.Fatalf("%+v after cost %d", a, costs[of])
			}
			costs[of]++
		}
		if most := p.most.Load(); most != maxSeekers || len(answers) != len(calls) || p.asked.Load() != int64(len(calls)) {
			t.Errorf("%d at once; %d answers to %d calls, asked %d times", most, len(answers), len(calls), p.asked.Load())
		}
	})
}

// An answer that has come when the caller gives up is not lost: the owner has counted.
func TestDecideEachTellsWhatHasCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newTrio(t)
		ctx, cancel := context.WithCancel(context.Background())
		k.publish(t, map[membership.NodeID]Peer{third: k.c, other: handing{k.b, func(to *Inbox) {
			to.Put(1, &owner.Result{Verdict: limit.Verdict{Allowed: true, Remaining: 3}}) // nobody has rung yet
			time.AfterFunc(time.Millisecond, cancel)
		}}})
		rule := tokens(t, 5)
		answers := k.decideEach(ctx, unit(k.named(t, other, 1), rule), unit(k.named(t, other, 2), rule))
		if len(answers) != 2 || answers[0].err != nil || answers[0].verdict.Remaining != 3 || answers[1].err != context.Canceled {
			t.Errorf("%+v", answers)
		}
	})
}
