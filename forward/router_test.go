package forward

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ringlimit/ringlimit/limit"
	"github.com/ringlimit/ringlimit/membership"
	"github.com/ringlimit/ringlimit/owner"
	"github.com/ringlimit/ringlimit/owner/transfer"
)

// tablePeer is a peer that decides in a table of its own.
func tablePeer(tab *owner.Table, asked *atomic.Int32) peerFunc {
	return func(_ context.Context, c *owner.Call, _ int64) (limit.Verdict, error) {
		asked.Add(1)
		v, err := answer(tab, c)
		if err != nil {
			return v, &transfer.NotMine{}
		}
		return v, nil
	}
}

// failing is a peer that fails with err.
func failing(err error, asked *atomic.Int32) peerFunc {
	return func(context.Context, *owner.Call, int64) (limit.Verdict, error) {
		asked.Add(1)
		return limit.Verdict{}, err
	}
}

func TestOwnCounterIsDecidedHere(t *testing.T) {
	f := newFixture(t, nil)
	var asked atomic.Int32
	f.publish(t, map[membership.NodeID]Peer{other: failing(ErrTimeout, &asked)})
	rule := tokens(t, 10)
	v := f.take(t, f.nameOf(t, self), rule, 3)
	if !v.Allowed || v.Remaining != 7 || v.Source != limit.SourceOwner || v.Rule != rule || asked.Load() != 0 {
		t.Errorf("verdict %+v, %d asked", v, asked.Load())
	}
}

// H63: an exhausted key asked at a node that does not own it is denied with the
// same numbers as at the owner.
func TestH63SameNumbersElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		remote := table(params.Partitions, wall)
		var asked atomic.Int32
		f.publish(t, map[membership.NodeID]Peer{other: tablePeer(remote, &asked)})
		rule, name := tokens(t, 2), f.nameOf(t, other)
		for range 2 {
			if v := f.take(t, name, rule, 1); !v.Allowed || v.Source != limit.SourceForwarded {
				t.Fatalf("verdict %+v", v)
			}
		}
		id := owner.Seed(1).ID(name)
		for i, source := range []limit.Source{limit.SourceForwarded, limit.SourceDenyCache, limit.SourceDenyCache} {
			time.Sleep(time.Second)
			want, err := answer(remote, &owner.Call{ID: id, Partition: int(id.Hi % 64),
				Charge: limit.Charge{Counter: name, Rule: rule, Cost: 1}})
			if err != nil || want.Allowed {
				t.Fatalf("at the owner: %+v, %v", want, err)
			}
			want.Rule, want.Source = rule, source
			if v := f.take(t, name, rule, 1); v != want {
				t.Errorf("ask %d: %+v, the owner said %+v", i, v, want)
			}
		}
		if asked.Load() != 3 {
			t.Errorf("the owner was asked %d times", asked.Load())
		}
	})
}

// E37: a changed rule is asked for anew, deny cache or not.
func TestE37ChangedRuleMissesDenyCache(t *testing.T) {
	f := newFixture(t, nil)
	var asked atomic.Int32
	f.publish(t, map[membership.NodeID]Peer{other: tablePeer(table(params.Partitions, wall), &asked)})
	name := f.nameOf(t, other)
	f.take(t, name, tokens(t, 1), 1)
	if v := f.take(t, name, tokens(t, 1), 1); v.Allowed {
		t.Fatal("not exhausted")
	}
	if v := f.take(t, name, tokens(t, 1), 1); v.Source != limit.SourceDenyCache {
		t.Fatalf("source %v", v.Source)
	}
	if v := f.take(t, name, tokens(t, 3), 1); !v.Allowed || v.Remaining != 1 {
		t.Errorf("under the larger limit: %+v", v)
	}
}

func TestRefundReachesOwnerAndClearsDenyCache(t *testing.T) {
	f := newFixture(t, nil)
	var asked atomic.Int32
	f.publish(t, map[membership.NodeID]Peer{other: tablePeer(table(params.Partitions, wall), &asked)})
	rule, name := tokens(t, 1), f.nameOf(t, other)
	f.take(t, name, rule, 1)
	f.take(t, name, rule, 1) // denied, and remembered
	v, err := f.Decide(context.Background(), &limit.Charge{Counter: name, Rule: rule, Cost: 1, Mode: limit.Refund})
	if err != nil || !v.Allowed || v.Remaining != 1 {
		t.Fatalf("refund: %+v, %v", v, err)
	}
	if v := f.take(t, name, rule, 1); !v.Allowed {
		t.Errorf("after the refund: %+v", v)
	}
}

func TestPeekDoesNotUseDenyCache(t *testing.T) {
	f := newFixture(t, nil)
	var asked atomic.Int32
	f.publish(t, map[membership.NodeID]Peer{other: tablePeer(table(params.Partitions, wall), &asked)})
	rule, name := tokens(t, 1), f.nameOf(t, other)
	f.take(t, name, rule, 1)
	f.take(t, name, rule, 1)
	v, err := f.Decide(context.Background(), &limit.Charge{Counter: name, Rule: rule, Cost: 1, Mode: limit.Peek})
	if err != nil || v.Allowed || v.Source != limit.SourceForwarded {
		t.Errorf("peek: %+v, %v", v, err)
	}
}

// A lost refund is an error, sent once, and nothing is given back here.
func TestRefundIsSentOnceAndNeverMinted(t *testing.T) {
	for _, cause := range []error{ErrTimeout, ErrUnreachable, owner.ErrFull} {
		f := newFixture(t, nil)
		var asked atomic.Int32
		f.publish(t, map[membership.NodeID]Peer{other: failing(cause, &asked)})
		name := f.nameOf(t, other)
		v, err := f.Decide(context.Background(), &limit.Charge{Counter: name, Rule: tokens(t, 10), Cost: 1, Mode: limit.Refund})
		if !errors.Is(err, cause) || v.Allowed || asked.Load() != 1 {
			t.Errorf("%v: verdict %+v, error %v, asked %d times", cause, v, err, asked.Load())
		}
		if f.witness.counts()[Reason(cause)] != 1 {
			t.Errorf("%v: observer was told %s", cause, f.witness.told())
		}
	}
}

// What may have been counted is never sent again.
func TestFailedCheckIsAskedOnce(t *testing.T) {
	for _, cause := range []error{ErrTimeout, ErrUnreachable, ErrOverloaded, ErrRejected, owner.ErrFull, context.DeadlineExceeded} {
		f := newFixture(t, nil)
		var asked atomic.Int32
		f.publish(t, map[membership.NodeID]Peer{other: failing(cause, &asked)})
		v := f.take(t, f.nameOf(t, other), withFailure(tokens(t, 10), limit.FailAllow), 1)
		if asked.Load() != 1 || v.Source != limit.SourceFallback || !v.Allowed {
			t.Errorf("%v: asked %d times, verdict %+v", cause, asked.Load(), v)
		}
		if f.witness.counts()[Reason(cause)] != 1 || Reason(cause) == "other" {
			t.Errorf("%v: observer was told %s", cause, f.witness.told())
		}
	}
}

func TestCancelledContextIsTheOnlyError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		var asked atomic.Int32
		f.publish(t, map[membership.NodeID]Peer{other: failing(&transfer.NotMine{}, &asked)})
		name := f.nameOf(t, other)
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(7*time.Millisecond, cancel)
		start := time.Now()
		if _, err := f.Decide(ctx, &limit.Charge{Counter: name, Rule: tokens(t, 1), Cost: 1}); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
		if took := time.Since(start); took != 7*time.Millisecond {
			t.Errorf("took %v", took)
		}
		if got := f.witness.told(); got != "map[] []" {
			t.Errorf("observer was told %s", got)
		}
	})
}

// The caller's deadline, if it is the shorter, is the peer's; when it passes,
// on_failure answers.
func TestShorterDeadlineIsTheCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		hangs := peerFunc(func(ctx context.Context, _ *owner.Call, deadline int64) (limit.Verdict, error) {
			if in := time.Duration(deadline - wall()); in != 20*time.Millisecond {
				t.Errorf("deadline in %v", in)
			}
			<-ctx.Done()
			return limit.Verdict{}, ctx.Err()
		})
		f.publish(t, map[membership.NodeID]Peer{other: hangs})
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
		defer cancel()
		v, err := f.Decide(ctx, &limit.Charge{Counter: f.nameOf(t, other), Rule: tokens(t, 10), Cost: 1})
		if err != nil || v.Source != limit.SourceFallback || !v.Allowed {
			t.Errorf("verdict %+v, %v", v, err)
		}
	})
}

func TestDeadlinePassedIsNotSent(t *testing.T) {
	f := newFixture(t, nil)
	var asked atomic.Int32
	f.publish(t, map[membership.NodeID]Peer{other: failing(ErrTimeout, &asked)})
	ctx, cancel := context.WithDeadline(context.Background(), time.Now().Add(-time.Second))
	defer cancel()
	v, err := f.Decide(ctx, &limit.Charge{Counter: f.nameOf(t, other), Rule: tokens(t, 10), Cost: 1})
	if err != nil || v.Source != limit.SourceFallback || asked.Load() != 0 {
		t.Errorf("verdict %+v, %v, asked %d", v, err, asked.Load())
	}
}

func TestWithoutOwners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		rule := tokens(t, 10)
		if v := f.take(t, []byte("k"), rule, 1); v.Source != limit.SourceFallback || v.Limit != 10 {
			t.Errorf("before the first ring: %+v", v)
		}
		f.Publish(ringOf(t), self, nil)
		if v := f.take(t, []byte("k"), rule, 1); v.Source != limit.SourceFallback || v.Remaining != 8 {
			t.Errorf("in an empty ring: %+v", v)
		}
		if _, _, ok := f.Locate([]byte("k")); ok {
			t.Error("somebody owns a counter of an empty ring")
		}
		if id, _ := f.OwnerOf(0); id != "" {
			t.Errorf("%q owns a partition of an empty ring", id)
		}
		if got := f.witness.told(); got != "map[no_owner:2] [true]" {
			t.Errorf("observer was told %s", got)
		}
	})
}

// A cluster that is just starting has no owners for a moment.
func TestTheFirstOwnerIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		time.AfterFunc(12*time.Millisecond, func() { f.publish(t, nil) })
		start := time.Now()
		v := f.take(t, []byte("k"), tokens(t, 10), 1)
		if v.Source != limit.SourceOwner || time.Since(start) != 15*time.Millisecond {
			t.Errorf("verdict %+v after %v", v, time.Since(start))
		}
		if got := f.witness.told(); got != "map[] []" {
			t.Errorf("observer was told %s", got)
		}
	})
}

// An outage is told once when it starts and once when it is over.
func TestOutageIsToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		var asked atomic.Int32
		var broken atomic.Bool
		broken.Store(true)
		remote := tablePeer(table(params.Partitions, wall), &asked)
		f.publish(t, map[membership.NodeID]Peer{other: peerFunc(func(ctx context.Context, c *owner.Call, d int64) (limit.Verdict, error) {
			if broken.Load() {
				return limit.Verdict{}, ErrUnreachable
			}
			return remote(ctx, c, d)
		})})
		rule, name := tokens(t, 1000), f.nameOf(t, other)
		for range 10 { // every other check fails: still one outage
			f.take(t, name, rule, 1)
			broken.Store(!broken.Load())
			time.Sleep(time.Second)
		}
		broken.Store(false)
		time.Sleep(calm)
		f.take(t, name, rule, 1)
		if got := f.witness.told(); got != "map[unreachable:5] [true false]" {
			t.Errorf("observer was told %s", got)
		}
		if logs := f.logs.String(); strings.Count(logs, "\n") != 2 || !strings.Contains(logs, "owner=b") || !strings.Contains(logs, "failures=5") {
			t.Errorf("log: %s", logs)
		}
	})
}

// A denial that arrives after a refund may have been decided before it. It is
// not remembered: the cache would refuse what was given back.
func TestDenialOvertakenByARefund(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, remote := newFixture(t, nil), table(params.Partitions, wall)
		rule := tokens(t, 1)
		slow := peerFunc(func(_ context.Context, c *owner.Call, _ int64) (limit.Verdict, error) {
			v, err := answer(remote, c)
			if !v.Allowed {
				time.Sleep(10 * time.Millisecond)
			}
			return v, err
		})
		f.publish(t, map[membership.NodeID]Peer{other: slow})
		name := f.nameOf(t, other)
		f.take(t, name, rule, 1)
		time.AfterFunc(5*time.Millisecond, func() {
			if _, err := f.Decide(context.Background(), &limit.Charge{Counter: name, Rule: rule, Cost: 1, Mode: limit.Refund}); err != nil {
				t.Error(err)
			}
		})
		if v := f.take(t, name, rule, 1); v.Allowed {
			t.Fatalf("before the refund: %+v", v)
		}
		if v := f.take(t, name, rule, 1); !v.Allowed || v.Source != limit.SourceForwarded {
			t.Errorf("after the refund: %+v", v)
		}
	})
}

// A process whose name a later one has taken asks that one like any other node.
func TestLaterProcessOfOurNameIsAnotherNode(t *testing.T) {
	f := newFixture(t, nil)
	var asked atomic.Int32
	later := tablePeer(table(params.Partitions, wall), &asked)
	f.Publish(ringOf(t, self), "", func(membership.NodeID) Peer { return later })
	rule := tokens(t, 1)
	for i, want := range []limit.Source{limit.SourceForwarded, limit.SourceForwarded, limit.SourceDenyCache} {
		if v := f.take(t, []byte("k"), rule, 1); v.Source != want || v.Allowed != (i == 0) {
			t.Errorf("check %d: %+v", i, v)
		}
	}
}

// fullTable has no room for a counter.
type fullTable struct{ asked int }

func (l *fullTable) Decide(context.Context, int64, int64, *owner.Call, *limit.Verdict) error {
	l.asked++
	return owner.ErrFull
}

func (l *fullTable) DecideGroup(_ context.Context, _, _ int64, _ []owner.Call, results []owner.Result) {
	l.asked++
	for i := range results {
		results[i] = owner.Result{Err: owner.ErrFull}
	}
}

func (l *fullTable) DecideFrame(_, _ int64, _ []owner.Call, results []owner.Result, _ owner.Late, _ uint64) {
	l.asked++
	fail(results, owner.ErrFull)
}

// A table that is full is asked once: to refuse a counter it looks for room,
// and counts that it found none.
func TestFullTableIsAskedOnce(t *testing.T) {
	local := &fullTable{}
	f := newFixture(t, func(c *Config) { c.Local = local })
	f.publish(t, nil)
	v := f.take(t, f.nameOf(t, self), tokens(t, 10), 1)
	if !v.Allowed || v.Source != limit.SourceFallback || local.asked != 1 {
		t.Errorf("verdict %+v, asked %d times", v, local.asked)
	}
	if _, err := f.Decide(context.Background(), &limit.Charge{
		Counter: f.nameOf(t, self), Rule: tokens(t, 10), Cost: 1, Mode: limit.Refund,
	}); !errors.Is(err, owner.ErrFull) || local.asked != 2 {
		t.Errorf("a refund: %v, asked %d times", err, local.asked)
	}
	if got := f.witness.told(); got != "map[full:2] [true]" {
		t.Errorf("observer was told %s", got)
	}
}

// Who decides here gets all the time there is, and the context that ends it.
func TestLocalMayWaitUntilTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type key struct{}
		f := newFixture(t, func(c *Config) {
			c.Local = localFunc(func(ctx context.Context, now, deadline int64, _ *owner.Call, v *limit.Verdict) error {
				if now != wall() || deadline != now+int64(DefaultDeadline) || ctx.Value(key{}) != "the caller's" {
					t.Errorf("at %d until %d", now-wall(), deadline-now)
				}
				time.Sleep(30 * time.Millisecond)
				v.Allowed = true
				return nil
			})
		})
		f.publish(t, nil)
		ctx := context.WithValue(context.Background(), key{}, "the caller's")
		v, err := f.Decide(ctx, &limit.Charge{Counter: f.nameOf(t, self), Rule: tokens(t, 10), Cost: 1})
		if err != nil || !v.Allowed || v.Source != limit.SourceOwner {
			t.Errorf("verdict %+v, %v", v, err)
		}
	})
}

// A search that has waited here has the rest of the time, not all of it anew; a
// context's deadline is told to the next one asked.
func TestTheRestOfTheTimeIsForTheNext(t *testing.T) {
	for _, tt := range []struct{ timeout, left time.Duration }{{time.Hour, 20 * time.Millisecond}, {40 * time.Millisecond, 10 * time.Millisecond}} {
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t, func(c *Config) {
				c.Local = localFunc(func(context.Context, int64, int64, *owner.Call, *limit.Verdict) error {
					time.Sleep(30 * time.Millisecond)
					return &transfer.NotMine{Hint: other}
				})
			})
			f.publish(t, map[membership.NodeID]Peer{other: peerFunc(func(_ context.Context, _ *owner.Call, deadline int64) (limit.Verdict, error) {
				if left := time.Duration(deadline - wall()); left != tt.left {
					t.Errorf("%v are left; want %v", left, tt.left)
				}
				return limit.Verdict{Allowed: true}, nil
			})})
			ctx, cancel := context.WithTimeout(context.Background(), tt.timeout)
			defer cancel()
			if v, err := f.Decide(ctx, &limit.Charge{Counter: f.nameOf(t, self), Rule: tokens(t, 10), Cost: 1}); err != nil || v.Source != limit.SourceForwarded {
				t.Errorf("verdict %+v, %v", v, err)
			}
		})
	}
}

// What has run out of time here may have been counted: it is a timeout like
// another's, and is sent nowhere.
func TestLocalTimeoutIsAskedOnce(t *testing.T) {
	var asked atomic.Int32
	f := newFixture(t, func(c *Config) {
		c.Local = localFunc(func(context.Context, int64, int64, *owner.Call, *limit.Verdict) error {
			asked.Add(1)
			return context.DeadlineExceeded
		})
	})
	f.publish(t, nil)
	charge := limit.Charge{Counter: f.nameOf(t, self), Rule: withFailure(tokens(t, 10), limit.FailDeny), Cost: 1}
	if v, err := f.Decide(context.Background(), &charge); err != nil || v.Allowed || v.Source != limit.SourceFallback || asked.Load() != 1 {
		t.Errorf("verdict %+v, %v, asked %d times", v, err, asked.Load())
	}
	charge.Mode = limit.Refund
	if _, err := f.Decide(context.Background(), &charge); !errors.Is(err, context.DeadlineExceeded) || asked.Load() != 2 {
		t.Errorf("a refund: %v, asked %d times", err, asked.Load())
	}
	if got := f.witness.told(); got != "map[timeout:2] [true]" {
		t.Errorf("observer was told %s", got)
	}
	if logs := f.logs.String(); !strings.Contains(logs, "owner=a") {
		t.Errorf("log: %s", logs)
	}
}

// Nobody waits for the verdict of a call that was cancelled while it waited here.
func TestLocalCancelled(t *testing.T) {
	f := newFixture(t, func(c *Config) {
		c.Local = localFunc(func(ctx context.Context, _, _ int64, _ *owner.Call, _ *limit.Verdict) error {
			<-ctx.Done()
			return ctx.Err()
		})
	})
	f.publish(t, nil)
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(time.Millisecond, cancel)
	if _, err := f.Decide(ctx, &limit.Charge{Counter: f.nameOf(t, self), Rule: tokens(t, 1), Cost: 1}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if got := f.witness.told(); got != "map[] []" {
		t.Errorf("observer was told %s", got)
	}
}

func TestDecideDoesNotAllocate(t *testing.T) {
	f := newFixture(t, nil)
	peer := peerFunc(func(context.Context, *owner.Call, int64) (limit.Verdict, error) {
		return limit.Verdict{Allowed: true}, nil
	})
	full := peerFunc(func(context.Context, *owner.Call, int64) (limit.Verdict, error) {
		return limit.Verdict{RetryAfter: time.Minute}, nil
	})
	f.publish(t, map[membership.NodeID]Peer{other: peer, third: full})
	rule := tokens(t, 1e9)
	for _, id := range []membership.NodeID{self, other, third} {
		call := owner.Call{Charge: limit.Charge{Counter: f.nameOf(t, id), Rule: rule, Cost: 1}}
		f.take(t, call.Counter, rule, 1)
		var v limit.Verdict
		if n := testing.AllocsPerRun(100, func() { f.Router.Decide(t.Context(), &call, &v) }); n >= 1 {
			t.Errorf("owned by %s: %v allocations", id, n)
		}
	}
}
