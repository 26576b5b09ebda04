package client

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/ringlimit/ringlimit/limit"
)

// Wait is Check for a caller who can wait: while req is denied it sleeps as long as
// the verdict says, and asks again. The wait is spread, unless the rule says
// otherwise, so that those who are refused together do not come back together; and
// twice as far with each denial, for then the crowd is larger than what passes.
//
// It waits only for what can come to pass. It returns the denial, at once and without
// an error, when no wait helps (the cost is above the limit, or nobody could be asked
// and the rule refuses then), when ctx ends before the request could pass, and when
// too many retries have been in vain: see Config.RetryReserve.
//
// An admitted request whose turn comes later, as a leaky bucket may say, has waited
// for it when Wait returns: its verdict has no Delay left.
//
// When ctx ends meanwhile, or the client is closed, the error says so and the verdict
// is the last one. It is an admitted one if the request has its turn after ctx ends,
// which Wait says at once: the turn is taken, and Refund may give it back. All other
// errors are those of Check, and end the wait: a call that may have been counted is
// never sent again.
func (c *Client) Wait(ctx context.Context, req limit.Request) (limit.Verdict, error) {
	c.retries.earn(c.now())
	v, err := c.call(ctx, &req, false)
	for denials := 0; err == nil && !v.Allowed; denials++ {
		pause, helps := untilRetry(ctx, &v, denials)
		if !helps || !c.retries.spend(c.now()) {
			return v, nil
		}
		if err := c.sleep(ctx, pause); err != nil {
			c.retries.giveBack()
			return v, err
		}
		if v, err = c.call(ctx, &req, false); v.Allowed {
			c.retries.giveBack()
		}
	}
	if err == nil && v.Delay > 0 {
		err = c.awaitTurn(ctx, &v)
	}
	return v, err
}

const (
	minPause  = time.Millisecond // a denial without a time must not be asked again in a loop
	maxSpread = 10 * time.Second // as that of Retry-After
)

// untilRetry is how long to sleep after a denial; false: it is of no use.
func untilRetry(ctx context.Context, v *limit.Verdict, denials int) (time.Duration, bool) {
	if v.Reason != limit.NoReason {
		return 0, false
	}
	base := max(v.RetryAfter, minPause)
	room := untilEnd(ctx) - base
	if room <= 0 {
		return 0, false
	}
	if v.Rule != nil && !v.Rule.Jitter {
		return base, true
	}
	return base + rand.N(min(spread(base, denials), room/2)+1), true // the other half is for the answer
}

// spread is min(base·2^denials, 10 s).
func spread(base time.Duration, denials int) time.Duration {
	if base >= maxSpread>>min(denials, 62) {
		return maxSpread
	}
	return base << denials
}

// forever is longer than any wait that a verdict can have, by less than what a
// time.Duration holds.
const forever = time.Duration(1<<63 - 1)

// untilEnd is the time that ctx leaves.
func untilEnd(ctx context.Context) time.Duration {
	if deadline, ok := ctx.Deadline(); ok {
		return time.Until(deadline)
	}
	return forever
}

// awaitTurn waits the verdict's delay out; the verdict is then one of that moment.
func (c *Client) awaitTurn(ctx context.Context, v *limit.Verdict) error {
	if v.Delay > untilEnd(ctx) {
		return context.DeadlineExceeded
	}
	if err := c.sleep(ctx, v.Delay); err != nil {
		return err
	}
	later(v, v.Delay)
	return nil
}

// later lets time pass for a verdict, and for its limits, which are ours alone.
func later(v *limit.Verdict, d time.Duration) {
	v.Delay = max(v.Delay-d, 0)
	v.ResetAfter = max(v.ResetAfter-d, 0)
	limits := v.Limits()
	for i := range limits {
		later(&limits[i], d)
	}
}

// sleep says what has ended it too soon.
func (c *Client) sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-c.ctx.Done():
		return ErrClosed
	}
}
