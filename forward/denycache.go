package forward

import (
	"time"

	"github.com/ringlimit/ringlimit/limit"
	"github.com/ringlimit/ringlimit/owner"
)

// maxDenial bounds how long a denial is believed: until then a refund at
// another node goes unnoticed.
const maxDenial = 5 * time.Second

// denyCache remembers denials of other nodes, so that a client who is over the
// limit and does not wait costs no hop. It remembers denials only, so it admits
// nothing, and only those of cost 1: where that is refused, everything is, so
// until the wait is over nothing remains, nothing is taken, and the verdict's
// numbers stay true. While a larger cost is refused, tokens come and smaller
// costs are admitted: what remains, and when all is back, would soon be wrong.
type denyCache struct{ cache[denial] }

// denial is an owner's verdict. Its times count from its arrival, so that who
// waits as told has waited long enough. They are in Unix nanoseconds of this node.
type denial struct{ limit, retryAt, resetAt int64 }

func newDenyCache(size int) *denyCache { return &denyCache{newCache[denial](size)} }

// find answers a call into v if it is certain to be denied.
func (d *denyCache) find(now int64, c *owner.Call, v *limit.Verdict) bool {
	if c.Cost != 1 {
		return false
	}
	e := d.recall(now, c)
	if e == nil {
		return false
	}
	*v = limit.Verdict{
		Source: limit.SourceDenyCache, Limit: e.limit,
		RetryAfter: time.Duration(e.retryAt - now), ResetAfter: time.Duration(e.resetAt - now),
	}
	return true
}

// add remembers the denial of a call that was sent and answered at the given
// times. The owner decided in between: its wait began at sent or later.
func (d *denyCache) add(sent, received int64, c *owner.Call, v *limit.Verdict) {
	until := sent + int64(min(v.RetryAfter, maxDenial))
	if c.Cost != 1 || v.Allowed || v.Reason != limit.NoReason || until <= received {
		return
	}
	d.keep(sent, until, c, denial{v.Limit, received + int64(v.RetryAfter), received + int64(v.ResetAfter)})
}
