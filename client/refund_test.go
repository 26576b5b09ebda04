package client_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/ringlimit/ringlimit/client"
	"github.com/ringlimit/ringlimit/front"
	"github.com/ringlimit/ringlimit/limit"
)

// lost holds a refund's error to what a door says of a refund that must not be sent
// again.
func lost(t *testing.T, err, cause error) {
	t.Helper()
	_, ok := errors.AsType[*limit.RefundError](err)
	if status := front.ProblemOf(err).Status; !ok || status != http.StatusFailedDependency || !errors.Is(err, cause) {
		t.Errorf("a refund that may have arrived: %d, %v; want %v", status, err, cause)
	}
}

// notSent holds it to what a door says of one that can be sent again.
func notSent(t *testing.T, err, cause error) {
	t.Helper()
	_, refund := errors.AsType[*limit.RefundError](err)
	if status := front.ProblemOf(err).Status; refund || status != http.StatusServiceUnavailable || !errors.Is(err, cause) {
		t.Errorf("a refund that was not sent: %d, %v; want %v", status, err, cause)
	}
}

// A refund that may have arrived must not be sent again, by nobody: doors that use
// the client say so.
func TestRefundThatMayBeLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNodes(t)
		counters := perMinute(t, 10)
		open := gate(counters)
		defer open()
		n.start("a", counters)
		c := n.client("a")
		slow := limit.Request{Key: "slow"}
		_, err := c.Refund(t.Context(), slow)
		lost(t, err, client.ErrTimeout)

		hasty, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		_, err = c.Refund(hasty, slow)
		lost(t, err, context.DeadlineExceeded)

		ctx, giveUp := context.WithCancel(t.Context())
		time.AfterFunc(10*time.Millisecond, giveUp)
		_, err = c.Refund(ctx, slow)
		lost(t, err, context.Canceled)

		time.AfterFunc(10*time.Millisecond, func() { n.cut("a") })
		_, err = c.Refund(t.Context(), slow)
		lost(t, err, client.ErrLost)
	})
}

// What a node says of a refund a door says again.
func TestRefundThatANodeDidNotDeliver(t *testing.T) {
	for name, test := range map[string]struct {
		err    error
		status int
	}{
		"lost":       {&limit.RefundError{Returned: 1, Of: 2, Err: errors.New("an owner is gone")}, http.StatusFailedDependency},
		"not sent":   {front.NewProblem(http.StatusServiceUnavailable, "", "the node is joining"), http.StatusServiceUnavailable},
		"bad input":  {&limit.InputError{Field: "tier", Problem: "is unknown"}, http.StatusBadRequest},
		"in no time": {context.DeadlineExceeded, http.StatusFailedDependency}, // it says nothing of the refund
	} {
		synctest.Test(t, func(t *testing.T) {
			n := newNodes(t)
			counters := perMinute(t, 10)
			counters.before = func(limit.Request) error { return test.err }
			n.start("a", counters)
			_, err := n.client("a").Refund(t.Context(), limit.Request{Key: "k"})
			if got := front.ProblemOf(err).Status; err == nil || got != test.status {
				t.Errorf("%s: %d, %v", name, got, err)
			}
			if node, ok := errors.AsType[*client.NodeError](err); name == "lost" && (!ok || node.Code != codes.FailedPrecondition) {
				t.Errorf("%s: the node's words are not in %v", name, err)
			}
		})
	}
}

func TestRefundThatIsNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNodes(t)
		counters := perMinute(t, 10)
		n.start("a", counters)
		c := n.client("a")
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		for range 2 {
			_, err := c.Refund(ended, limit.Request{Key: "ended"})
			notSent(t, err, context.Canceled)
			if _, err := c.Check(ended, limit.Request{Key: "ended"}); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			time.Sleep(time.Second) // then the stream stands
		}
		if got := counters.times("ended"); got != 0 {
			t.Errorf("asked for %d times", got)
		}
		n.cut("a")
		time.Sleep(time.Second)
		_, err := c.Refund(t.Context(), limit.Request{Key: "k"})
		notSent(t, err, client.ErrUnavailable)
	})
}

// A refund that has waited in vain for a connection was not sent.
func TestRefundThatNeverLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNodes(t)
		n.delay = 1500 * time.Millisecond
		counters := perMinute(t, 10)
		n.start("a", counters)
		c := n.client("a")
		_, err := c.Refund(t.Context(), limit.Request{Key: "k"})
		notSent(t, err, client.ErrTimeout)
		time.Sleep(time.Second)
		if got := counters.times("k"); got != 0 {
			t.Errorf("asked for %d times", got)
		}
	})
}
