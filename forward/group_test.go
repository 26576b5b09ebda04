package forward

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
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

// groupPeer is another node, as far as a router sees it.
type groupPeer struct {
	*owner.Table
	singly bool                      // it knows no groups
	fails  func(c *owner.Call) error // instead of deciding; nil: never
	loses  func(c *owner.Call) error // instead of the answer; nil: never
	asked  atomic.Int64              // calls
	sent   atomic.Int64              // how often, together
}

func newGroupPeer() *groupPeer { return &groupPeer{Table: table(params.Partitions, wall)} }

func (p *groupPeer) Check(_ context.Context, c *owner.Call, _ int64) (v limit.Verdict, err error) {
	p.asked.Add(1)
	if p.fails != nil {
		if err := p.fails(c); err != nil {
			return v, err
		}
	}
	err = p.Decide(wall(), c, &v)
	if p.loses != nil {
		err = cmp.Or(err, p.loses(c))
	}
	return v, err
}

func (p *groupPeer) Send(calls []owner.Call, results []owner.Result, _ int64) Sent {
	p.asked.Add(int64(len(calls)))
	p.sent.Add(1)
	return awaitFunc(func(context.Context) { p.await(calls, results) })
}

// SendEach has all answers at once.
func (p *groupPeer) SendEach(calls []owner.Call, deadline int64, to *Inbox, first int) {
	p.sent.Add(1)
	for i := range calls {
		v, err := p.Check(context.Background(), &calls[i], deadline)
		to.Put(first+i, &owner.Result{Verdict: v, Err: err})
	}
	to.Ring()
}

func (p *groupPeer) await(calls []owner.Call, results []owner.Result) {
	if p.singly && len(calls) > 1 {
		fail(results, ErrNoGroup)
		return
	}
	for i := range calls {
		if p.fails == nil {
			break
		}
		if err := p.fails(&calls[i]); err != nil {
			fail(results, err)
			return
		}
	}
	p.DecideFrame(wall(), calls, results)
	if p.loses != nil && results[0].Err == nil {
		if err := p.loses(&calls[0]); err != nil {
			fail(results, err)
		}
	}
}

// trio is a router among three nodes.
type trio struct {
	*fixture
	b, c *groupPeer
}

func newTrio(t testing.TB) *trio {
	k := &trio{newFixture(t, nil), newGroupPeer(), newGroupPeer()}
	k.publish(t, map[membership.NodeID]Peer{other: k.b, third: k.c})
	return k
}

// named is a counter that the node owns, one of many.
func (k *trio) named(t testing.TB, id membership.NodeID, n int) []byte {
	t.Helper()
	for i := range 10_000 {
		name := fmt.Appendf(nil, "%d-%d", n, i)
		if _, owner, _ := k.Locate(name); owner == id {
			return name
		}
	}
	t.Fatalf("%s owns nothing", id)
	return nil
}

func (k *trio) takeAll(t testing.TB, charges ...limit.Charge) []limit.Verdict {
	t.Helper()
	v, err := k.decideAll(context.Background(), charges)
	if err != nil {
		t.Fatalf("DecideAll: %v", err)
	}
	return v
}

func (k *trio) decideAll(ctx context.Context, charges []limit.Charge) ([]limit.Verdict, error) {
	calls, verdicts := make([]owner.Call, len(charges)), make([]limit.Verdict, len(charges))
	for i := range charges {
		calls[i].Charge = charges[i]
	}
	return verdicts, k.DecideAll(ctx, calls, verdicts)
}

// left is what remains of a counter at its owner.
func (k *trio) left(t testing.TB, ch limit.Charge) int64 {
	t.Helper()
	synctest.Wait() // for refunds
	ch.Mode = limit.Peek
	v, err := k.fixture.Decide(context.Background(), &ch)
	if err != nil || v.Source == limit.SourceFallback {
		t.Fatalf("to look at a counter: %+v, %v", v, err)
	}
	return v.Remaining
}

func unit(name []byte, r *limit.Rule) limit.Charge {
	return limit.Charge{Counter: name, Rule: r, Cost: 1}
}

// hourly is n an hour.
func hourly(t testing.TB, a limit.Algorithm, n int64) *limit.Rule {
	spec := limit.Spec{Algorithm: a, Limit: n, Window: time.Hour}
	if a == limit.LeakyBucket {
		spec.Burst = n - 1
	}
	return ruleOf(t, spec)
}

var algorithms = []limit.Algorithm{limit.TokenBucket, limit.LeakyBucket, limit.FixedWindow, limit.SlidingWindowLog, limit.SlidingWindowCounter}

// Case G47, envoyproxy#1060: 5/h and 100/h on one request. After 20 requests 95 of
// the 100 are left, wherever the two are counted.
func TestG47DeniedRequestsChargeNothingAnywhere(t *testing.T) {
	nodes := []membership.NodeID{self, other, third}
	for _, a := range algorithms {
		for _, small := range nodes {
			for _, large := range nodes {
				for _, singly := range []bool{false, true} {
					synctest.Test(t, func(t *testing.T) {
						k := newTrio(t)
						k.b.singly, k.c.singly = singly, singly
						five := unit(k.named(t, small, 1), hourly(t, a, 5))
						hundred := unit(k.named(t, large, 2), hourly(t, a, 100))
						for i := range 20 {
							v := k.takeAll(t, five, hundred)
							synctest.Wait() // for the refund
							if want := i < 5; v[0].Allowed != want || v[0].Rule != five.Rule {
								t.Fatalf("%v on %s and %s: request %d: %+v", a, small, large, i+1, v)
							}
							if !v[1].Allowed || v[1].Remaining != int64(max(95, 99-i)) || v[1].Rule != hundred.Rule {
								t.Errorf("%v on %s and %s: request %d: the larger limit says %+v", a, small, large, i+1, v[1])
							}
						}
						if left := k.left(t, hundred); left != 95 {
							t.Errorf("%v on %s and %s, singly %v: %d of 100 left; want 95", a, small, large, singly, left)
						}
						k.Close()
					})
				}
			}
		}
	}
}

// plan is requests with several limits.
type plan struct {
	singly   bool // one node knows no groups
	owners   []membership.NodeID
	limits   []int64
	requests []planned
}

type planned struct {
	pause time.Duration
	costs []int64 // one a limit; under 1: it is not asked for
}

func drawPlan() *rapid.Generator[plan] {
	return rapid.Custom(func(t *rapid.T) plan {
		p := plan{singly: rapid.Bool().Draw(t, "singly")}
		for range 7 {
			p.owners = append(p.owners, rapid.SampledFrom([]membership.NodeID{self, other, third}).Draw(t, "owner"))
			p.limits = append(p.limits, rapid.Int64Range(1, 12).Draw(t, "limit"))
		}
		for range rapid.IntRange(1, 25).Draw(t, "requests") {
			p.requests = append(p.requests, planned{
				time.Duration(rapid.Int64Range(0, int64(20*time.Minute)).Draw(t, "pause")),
				rapid.SliceOfN(rapid.Int64Range(-2, 3), 7, 7).Draw(t, "costs"),
			})
		}
		return p
	})
}

// moment is what a counter was, once.
type moment struct {
	at    int64
	state limit.State
}

// seen says whether a verdict shows a counter as it was in the last second.
func seen(past []moment, now int64, c *limit.Charge, v *limit.Verdict) bool {
	for _, m := range past {
		if now-m.at < int64(maxView) {
			if then := c.Rule.Peek(copied(m.state), m.at, c.Cost); v.Allowed == then.Allowed && v.Remaining == then.Remaining && v.Reason == then.Reason {
				return true
			}
		}
	}
	return false
}

func copied(s limit.State) limit.State {
	s.Log = slices.Clone(s.Log)
	return s
}

// Law: a request is admitted if each of its limits, by itself, would admit it, and
// only then charged, to all of them. The last limit is a shadow. Of a request that is
// refused each limit is shown, as it is or as it was within the last second.
func TestAllOrNone(t *testing.T) { checkLaw(t, drawPlan(), (*trio).follow) }

// checkLaw has fresh trios live through what is drawn, with each algorithm. live
// says what was wrong.
func checkLaw[D any](t *testing.T, draw *rapid.Generator[D], live func(*trio, *testing.T, limit.Algorithm, D) (wrong string)) {
	for _, a := range algorithms {
		t.Run(a.String(), func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				drawn := draw.Draw(rt, "drawn")
				var wrong string
				synctest.Test(t, func(t *testing.T) {
					k := newTrio(t)
					defer k.Close()
					wrong = live(k, t, a, drawn)
				})
				if wrong != "" {
					rt.Fatal(wrong)
				}
			})
		})
	}
}

func (k *trio) follow(t *testing.T, a limit.Algorithm, p plan) (wrong string) {
	k.b.singly = p.singly
	var charges []limit.Charge
	for i, at := range p.owners {
		rule := hourly(t, a, p.limits[i])
		rule.Shadow = i == len(p.owners)-1
		charges = append(charges, unit(k.named(t, at, i), rule))
	}
	model, past := make([]limit.State, len(charges)), make([][]moment, len(charges))
	for _, r := range p.requests {
		time.Sleep(r.pause)
		var request []limit.Charge
		var wants []limit.Verdict
		var of []int
		refused := false
		for i, cost := range r.costs {
			if cost <= 0 {
				continue
			}
			c := charges[i]
			c.Cost = cost
			past[i] = append(past[i], moment{wall(), copied(model[i])})
			v := c.Rule.Peek(model[i], wall(), cost)
			request, wants, of = append(request, c), append(wants, v), append(of, i)
			refused = refused || !v.Allowed && !c.Rule.Shadow
		}
		for n, i := range of {
			if !refused {
				model[i], wants[n] = charges[i].Rule.Take(model[i], wall(), request[n].Cost)
				past[i] = append(past[i], moment{wall(), copied(model[i])})
			}
		}
		for n, v := range k.takeAll(t, request...) {
			if refused && v.Rule == request[n].Rule && seen(past[of[n]], wall(), &request[n], &v) {
				continue
			}
			if v.Allowed != wants[n].Allowed || v.Remaining != wants[n].Remaining || v.Rule != request[n].Rule {
				return fmt.Sprintf("refused %v: %+v, want %+v", refused, v, wants[n])
			}
		}
		for i, c := range charges {
			if left, want := k.left(t, c), c.Rule.Peek(model[i], wall(), 1).Remaining; left != want {
				return fmt.Sprintf("counter %d: %d left, want %d; refused %v", i, left, want, refused)
			}
		}
	}
	return ""
}

// What one owner has to judge travels once, and what is known to be denied not at
// all.
func TestWhoIsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newTrio(t)
		defer k.Close()
		one := hourly(t, limit.FixedWindow, 1)
		charges := []limit.Charge{
			unit(k.named(t, other, 1), hourly(t, limit.FixedWindow, 9)), unit(k.named(t, third, 2), one), unit(k.named(t, other, 3), one),
		}
		k.takeAll(t, charges...)
		if k.b.sent.Load() != 1 || k.b.asked.Load() != 2 || k.c.asked.Load() != 1 {
			t.Errorf("b was asked %d in %d groups, c %d", k.b.asked.Load(), k.b.sent.Load(), k.c.asked.Load())
		}
		k.takeAll(t, charges...) // denied by both: nothing to give back
		b, c := k.b.asked.Load(), k.c.asked.Load()
		v := k.takeAll(t, charges...)
		if !v[0].Allowed || v[0].Remaining != 8 || v[0].Source != limit.NoSource || v[1].Source != limit.SourceDenyCache || v[1].Rule != one || v[2].Source != limit.SourceDenyCache {
			t.Errorf("from the deny cache: %+v", v)
		}
		if k.b.asked.Load() != b || k.c.asked.Load() != c || b != 4 || c != 2 {
			t.Errorf("b was asked %d, c %d", k.b.asked.Load(), k.c.asked.Load())
		}
	})
}

// All owners have been asked before one is waited for.
func TestAllAreAskedBeforeOneIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newTrio(t)
		defer k.Close()
		waits := 0
		wait := func(*owner.Call) error {
			if waits++; k.b.asked.Load() != 2 || k.c.asked.Load() != 1 {
				t.Errorf("b was asked for %d, c for %d", k.b.asked.Load(), k.c.asked.Load())
			}
			return nil
		}
		k.b.fails, k.c.fails = wait, wait
		var charges []limit.Charge
		for i, id := range []membership.NodeID{other, self, third, other} {
			charges = append(charges, unit(k.named(t, id, i), tokens(t, 9)))
		}
		if v := k.takeAll(t, charges...); waits != 3 || !v[0].Allowed || !v[1].Allowed || !v[2].Allowed || !v[3].Allowed {
			t.Errorf("after %d waits: %+v", waits, v)
		}
	})
}

// A client who is over a limit that is counted here costs the others nothing.
func TestRefusedHereAsksNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newTrio(t)
		defer k.Close()
		charges := []limit.Charge{unit(k.named(t, other, 1), tokens(t, 9)), unit(k.named(t, self, 2), hourly(t, limit.FixedWindow, 1))}
		k.takeAll(t, charges...)
		v := k.takeAll(t, charges...)
		if k.b.asked.Load() != 1 || !v[0].Allowed || v[0].Remaining != 8 || v[0].Source != limit.NoSource || v[1].Allowed || v[1].Source != limit.SourceOwner || v[1].Rule != charges[1].Rule {
			t.Errorf("b was asked %d times: %+v", k.b.asked.Load(), v)
		}
	})
}

// A shadow counts and says so, and refuses nobody: also from the deny cache.
func TestShadowRefusesNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newTrio(t)
		defer k.Close()
		shadow := hourly(t, limit.FixedWindow, 1)
		shadow.Shadow = true
		charges := []limit.Charge{
			unit(k.named(t, other, 1), shadow), unit(k.named(t, other, 2), hourly(t, limit.FixedWindow, 3)), unit(k.named(t, third, 3), shadow),
		}
		for i := range 4 {
			v := k.takeAll(t, charges...)
			if v[0].Allowed != (i == 0) || v[1].Source != limit.NoSource && v[1].Allowed != (i < 3) {
				t.Errorf("request %d: %+v", i+1, v)
			}
		}
		if left := k.left(t, charges[1]); left != 0 {
			t.Errorf("%d left", left)
		}
	})
}

// What on_failure decides counts as well as an owner's word.
func TestGroupsAndOnFailure(t *testing.T) {
	for _, c := range []struct {
		onFailure limit.OnFailure
		full      bool // the other owner refuses
		allowed   bool
	}{
		{limit.FailAllow, false, true}, {limit.FailAllow, true, false},
		{limit.FailDeny, false, false}, {limit.FailLocal, false, true}, {limit.FailLocal, true, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			k := newTrio(t)
			defer k.Close()
			k.b.fails = func(*owner.Call) error { return ErrUnreachable }
			lost := unit(k.named(t, other, 1), withFailure(tokens(t, 30), c.onFailure))
			held := unit(k.named(t, third, 2), tokens(t, 2))
			if c.full {
				held.Cost = 3
			}
			v := k.takeAll(t, lost, held)
			if v[0].Source != limit.SourceFallback || v[1].Source != limit.SourceForwarded || (v[0].Allowed && v[1].Allowed) != c.allowed {
				t.Errorf("%+v: %+v", c, v)
			}
			held.Cost = 1
			if left, want := k.left(t, held), map[bool]int64{true: 1, false: 2}[c.allowed]; left != want {
				t.Errorf("%+v: %d left, want %d", c, left, want)
			}
			lost.Mode = limit.Peek
			if v, _ := k.fixture.Decide(context.Background(), &lost); c.onFailure == limit.FailLocal && v.Remaining != map[bool]int64{true: 9, false: 10}[c.allowed] {
				t.Errorf("%+v: %d left of this node's share", c, v.Remaining)
			}
		})
	}
}

// When on_failure refuses for one counter, what it has taken for another is given
// back: of the node's share and of what the node may admit.
func TestFallbackGivesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newTrio(t)
		defer k.Close()
		k.b.fails = func(*owner.Call) error { return ErrUnreachable }
		k.c.fails = k.b.fails
		charges := []limit.Charge{unit(k.named(t, other, 1), tokens(t, 30)), unit(k.named(t, third, 2), tokens(t, 3))}
		for i := range 5 {
			v := k.takeAll(t, charges...)
			if v[0].Remaining != 9 || v[1].Allowed != (i == 0) {
				t.Errorf("request %d: %+v", i+1, v)
			}
		}
	})
}

// A group that its owner cannot judge whole is asked for call by call, by a new
// ring or with a hint.
func TestGroupIsDivided(t *testing.T) {
	for name, err := range map[string]error{
		"not mine": &transfer.NotMine{Hint: third}, "full": owner.ErrFull, "rejected": ErrRejected, "no groups": ErrNoGroup, "absent": ErrAbsent,
	} {
		synctest.Test(t, func(t *testing.T) {
			k := newTrio(t)
			defer k.Close()
			charges := []limit.Charge{unit(k.named(t, other, 1), tokens(t, 9)), unit(k.named(t, other, 2), tokens(t, 9))}
			k.b.fails = func(c *owner.Call) error {
				if string(c.Counter) == string(charges[1].Counter) {
					return err
				}
				return nil
			}
			v := k.takeAll(t, charges...)
			if !v[0].Allowed || v[0].Source != limit.SourceForwarded || v[0].Remaining != 8 || !v[1].Allowed {
				t.Errorf("%s: %+v", name, v)
			}
			if want := map[bool]limit.Source{true: limit.SourceForwarded, false: limit.SourceFallback}[name == "not mine"]; v[1].Source != want {
				t.Errorf("%s: the second one's source is %v, want %v", name, v[1].Source, want)
			}
		})
	}
}

// A caller who goes is told so, and what was taken for him is given back.
func TestGroupOfACallerWhoGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newTrio(t)
		defer k.Close()
		ctx, cancel := context.WithCancel(context.Background())
		k.c.fails = func(*owner.Call) error { cancel(); return ctx.Err() }
		charges := []limit.Charge{unit(k.named(t, other, 1), tokens(t, 9)), unit(k.named(t, third, 2), tokens(t, 9))}
		if _, err := k.decideAll(ctx, charges); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
		if left := k.left(t, charges[0]); left != 9 {
			t.Errorf("%d left", left)
		}
	})
}

// Several peeks take nothing; several refunds give back each.
func TestPeekAndRefundOfSeveral(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newTrio(t)
		defer k.Close()
		charges := []limit.Charge{unit(k.named(t, other, 1), tokens(t, 9)), unit(k.named(t, self, 2), tokens(t, 9)), unit(k.named(t, other, 3), tokens(t, 9))}
		for _, step := range []struct {
			mode limit.Mode
			want int64
		}{{limit.Peek, 9}, {limit.Take, 8}, {limit.Peek, 8}, {limit.Refund, 9}, {limit.Take, 8}} {
			charges := slices.Clone(charges)
			for i := range charges {
				charges[i].Mode = step.mode
			}
			for i, v := range k.takeAll(t, charges...) {
				if !v.Allowed || v.Remaining != step.want || v.Rule != charges[i].Rule {
					t.Errorf("mode %d, counter %d: %+v, want %d left", step.mode, i, v, step.want)
				}
			}
		}
		if err := k.DecideAll(context.Background(), nil, nil); err != nil {
			t.Errorf("nothing to decide: %v", err)
		}
	})
}
