package forward

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ringlimit/ringlimit/limit"
	"github.com/ringlimit/ringlimit/membership"
	"github.com/ringlimit/ringlimit/owner"
	"github.com/ringlimit/ringlimit/owner/transfer"
)

// lateLocal decides, and its copies never come.
type lateLocal struct {
	tableLocal
	why error
}

func (l lateLocal) Decide(_ context.Context, now, _ int64, c *owner.Call, v *limit.Verdict) error {
	if err := l.Table.Decide(now, c, v); err != nil || c.Mode != limit.Take {
		return err
	}
	return l.why
}

func (l lateLocal) DecideGroup(_ context.Context, now, _ int64, calls []owner.Call, results []owner.Result) {
	l.Table.DecideFrame(now, calls, results)
	for i := range results {
		if results[i].Taken {
			results[i].Err = l.why
		}
	}
}

// What this node has charged, and has no copy of in time, is given back when the
// request is refused, by an owner or by on_failure, and when its caller goes. When
// the request is admitted it stays charged.
func TestLateChargesAreGivenBack(t *testing.T) {
	for _, c := range []struct {
		here      int // limits
		why       error
		onFailure limit.OnFailure
		full      bool // another owner refuses
		left      int64
	}{
		{1, context.DeadlineExceeded, limit.FailLocal, true, 9}, {2, context.DeadlineExceeded, limit.FailLocal, true, 9},
		{2, context.DeadlineExceeded, limit.FailAllow, true, 9}, {2, context.DeadlineExceeded, limit.FailDeny, false, 9},
		{1, context.Canceled, limit.FailLocal, false, 9}, {2, context.Canceled, limit.FailLocal, false, 9},
		{1, context.DeadlineExceeded, limit.FailLocal, false, 8}, {2, context.DeadlineExceeded, limit.FailAllow, false, 8},
	} {
		synctest.Test(t, func(t *testing.T) {
			k := newTrio(t)
			defer k.Close()
			k.cfg.Local = lateLocal{tableLocal{k.local}, c.why}
			rule := withFailure(tokens(t, 9), c.onFailure)
			charges := []limit.Charge{unit(k.named(t, other, 0), tokens(t, 9))}
			for i := range c.here {
				charges = append(charges, unit(k.named(t, self, i+1), rule))
			}
			if c.full {
				charges[0].Cost = 10
			}
			_, err := k.decideAll(context.Background(), charges)
			if want := c.why == context.Canceled; errors.Is(err, context.Canceled) != want {
				t.Errorf("%+v: error %v", c, err)
			}
			for _, ch := range charges[1:] {
				if left := k.left(t, ch); left != c.left {
					t.Errorf("%+v: %d left, want %d", c, left, c.left)
				}
			}
		})
	}
}

// A refund of which a part is lost says how many limits were given it, and each is
// sent once, all before one is waited for.
func TestRefundsThatAreLost(t *testing.T) {
	for _, c := range []struct {
		lost []membership.NodeID
		why  error
		want int // returned, of 3
	}{{nil, nil, 3}, {[]membership.NodeID{other}, ErrTimeout, 2}, {[]membership.NodeID{other, third}, ErrUnreachable, 1}, {[]membership.NodeID{third}, context.Canceled, 2}} {
		synctest.Test(t, func(t *testing.T) {
			k := newTrio(t)
			defer k.Close()
			var charges []limit.Charge
			for i, id := range []membership.NodeID{self, other, third} {
				charges = append(charges, unit(k.named(t, id, i), tokens(t, 9)))
			}
			k.takeAll(t, charges...)
			k.b.asked.Store(0)
			k.c.asked.Store(0)
			for p, id := range map[*groupPeer]membership.NodeID{k.b: other, k.c: third} {
				p.fails = func(*owner.Call) error {
					if k.b.asked.Load() < 1 || k.c.asked.Load() != 1 {
						t.Errorf("b was asked %d times, c %d", k.b.asked.Load(), k.c.asked.Load())
					}
					if slices.Contains(c.lost, id) {
						return c.why
					}
					return nil
				}
			}
			for i := range charges {
				charges[i].Mode = limit.Refund
			}
			_, err := k.decideAll(context.Background(), charges)
			lost, ok := errors.AsType[*limit.RefundError](err)
			if c.want == 3 && err != nil || c.want < 3 && (!ok || lost.Returned != c.want || lost.Of != 3 || !errors.Is(err, c.why)) {
				t.Errorf("%v lost: %v", c.lost, err)
			}
			_, err = k.fixture.Decide(context.Background(), &charges[1])
			if lost, ok := errors.AsType[*limit.RefundError](err); ok != slices.Contains(c.lost, other) || ok && (lost.Returned != 0 || lost.Of != 1) {
				t.Errorf("one by itself: %v", err)
			}
		})
	}
}

// Refunds bear their age, are sent once and counted when they are lost; there are
// never more of them on their way than the bound.
func TestLostRefunds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newTrio(t)
		charges := []limit.Charge{unit(k.named(t, other, 1), hourly(t, limit.FixedWindow, 1e6)), unit(k.named(t, third, 2), hourly(t, limit.FixedWindow, 1))}
		charges[1].Cost = 2 // never fits
		hang, refunds := make(chan struct{}), atomic.Int64{}
		k.b.fails = func(c *owner.Call) error {
			if c.Mode != limit.Refund {
				time.Sleep(time.Millisecond)
				return nil
			}
			if c.Age != 2*time.Millisecond || c.Joined {
				t.Errorf("a refund of %+v", c)
			}
			refunds.Add(1)
			<-hang
			return ErrTimeout
		}
		for range mostRefunds + 3 {
			k.takeAll(t, charges...)
		}
		synctest.Wait()
		if refunds.Load() != mostRefunds || k.witness.counts()[lostRefund] != 3 {
			t.Errorf("%d refunds, %v", refunds.Load(), k.witness.counts())
		}
		close(hang)
		k.Close()
		if n := k.witness.counts()[lostRefund]; n != mostRefunds+3 || refunds.Load() != mostRefunds {
			t.Errorf("%d are lost of %d", n, refunds.Load())
		}
		k.takeAll(t, charges...) // after Close it goes on, without refunds
		if n := k.witness.counts()[lostRefund]; n != mostRefunds+4 {
			t.Errorf("after Close: %d are lost", n)
		}
		k.Close()
	})
}

// Once one owner refuses, a counter that has to be looked for is not charged.
func TestNothingIsTakenAfterADenial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newTrio(t)
		defer k.Close()
		moved, full := unit(k.named(t, other, 1), hourly(t, limit.FixedWindow, 9)), unit(k.named(t, third, 2), hourly(t, limit.FixedWindow, 1))
		full.Cost = 2 // never fits
		k.b.fails = func(*owner.Call) error {
			return &transfer.NotMine{Hint: third, Ring: k.routes.Load().ring.Fingerprint()}
		}
		k.c.fails = func(c *owner.Call) error {
			if string(c.Counter) == string(moved.Counter) && c.Mode != limit.Peek {
				t.Error("taken from, and given back to, what is only to be shown")
			}
			return nil
		}
		if v := k.takeAll(t, moved, full); !v[0].Allowed || v[0].Remaining != 9 || v[1].Allowed {
			t.Errorf("%+v", v)
		}
	})
}

// Nobody is asked for a caller whose time is up: it might be counted, and not be
// given back.
func TestNobodyIsAskedTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newTrio(t)
		defer k.Close()
		ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
		defer cancel()
		time.Sleep(time.Millisecond)
		deny := withFailure(hourly(t, limit.FixedWindow, 9), limit.FailDeny)
		charges := []limit.Charge{unit(k.named(t, other, 1), deny), unit(k.named(t, other, 2), deny), unit(k.named(t, third, 3), deny)}
		v, err := k.decideAll(ctx, charges)
		if err != nil || v[0].Reason != limit.Unavailable || k.b.asked.Load() != 0 || k.c.asked.Load() != 0 || k.witness.counts()["timeout"] != 3 {
			t.Errorf("b was asked %d times, c %d: %+v, %v, %v", k.b.asked.Load(), k.c.asked.Load(), v[0], err, k.witness.counts())
		}
	})
}
