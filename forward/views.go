package forward

import (
	"time"

	"github.com/ringlimit/ringlimit/limit"
	"github.com/ringlimit/ringlimit/owner"
)

// maxView is how old a view may be.
const maxView = time.Second

// views remembers how limits looked when requests with several of them met them. A
// request that is refused already shows its other limits by them, so that a flood
// of such requests costs a hop a second for each counter, and not one each. A view
// is shown, and decides nothing. Requests with one limit neither fill nor read it.
type views struct{ cache[view] }

// view is what a request of this cost would come to by this limit alone. Times are
// as a denial's.
type view struct {
	cost, limit, remaining, retryAt, resetAt int64

	allowed bool
	reason  limit.Reason
	source  limit.Source
}

func newViews(size int) *views { return &views{newCache[view](size)} }

// find shows a call's limit in v, if the view on it is fresh and of the same cost.
func (w *views) find(now int64, c *owner.Call, v *limit.Verdict) bool {
	e := w.recall(now, c)
	if e == nil || e.cost != c.Cost {
		return false
	}
	*v = limit.Verdict{
		Allowed: e.allowed, Reason: e.reason, Source: e.source, Rule: c.Rule, Limit: e.limit, Remaining: e.remaining,
		RetryAfter: left(e.retryAt, now), ResetAfter: left(e.resetAt, now),
	}
	return true
}

// left is the time until at, which 0 stands for none.
func left(at, now int64) time.Duration { return time.Duration(max(0, at-now)) }

// add remembers the verdict that a call sent at sent has had by now. It ends when
// the verdict would be another: when the wait is over, or all is back. What has
// taken the last of a limit says nothing of who comes next.
func (w *views) add(sent, now int64, c *owner.Call, v *limit.Verdict, taken bool) {
	if taken && v.Remaining < c.Cost {
		return
	}
	e := view{cost: c.Cost, limit: v.Limit, remaining: v.Remaining, allowed: v.Allowed, reason: v.Reason, source: source(v)}
	until := sent + int64(maxView)
	if v.RetryAfter > 0 {
		e.retryAt = now + int64(v.RetryAfter)
		until = min(until, e.retryAt)
	}
	if v.ResetAfter > 0 {
		e.resetAt = now + int64(v.ResetAfter)
		until = min(until, e.resetAt)
	}
	if now < until {
		w.keep(sent, until, c, e)
	}
}

// source is who a view of the verdict is by: of a refusal, this node, from the
// owner's word; of what nobody could be asked for, on_failure. What is shown as
// admitted nobody has decided.
func source(v *limit.Verdict) limit.Source {
	switch {
	case v.Source == limit.SourceFallback:
		return limit.SourceFallback
	case v.Allowed:
		return limit.NoSource
	}
	return limit.SourceDenyCache
}
