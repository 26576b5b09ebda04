package forward

import (
	"sync"
	"time"

	"github.com/ringlimit/ringlimit/limit"
	"github.com/ringlimit/ringlimit/owner"
)

// DefaultFallbackCapacity is how many checks a second the fallbacks of a whole
// cluster may admit when Config does not say.
const DefaultFallbackCapacity = 10_000

// maxShares bounds how many rules' shares are kept.
const maxShares = 1 << 10

// fallback answers by on_failure. For on_failure: local each of n nodes counts
// by itself against an n-th of the limit, and against an n-th of what the
// backends can bear: with the owners gone, keys may be spread over all nodes.
// Its counters live on between outages: an owner that comes and goes must not
// give out a fresh share each time.
type fallback struct {
	table    Fallback
	capacity int64 // checks a second of the whole cluster

	mu     sync.Mutex
	n      int // what shares and bucket are made for
	shares map[limit.RuleID]*limit.Rule
	bucket *limit.Rule // this node's share of capacity
	level  limit.State // of bucket
}

func newFallback(table Fallback, capacity int64) *fallback {
	if capacity <= 0 {
		capacity = DefaultFallbackCapacity
	}
	return &fallback{table: table, capacity: min(capacity, limit.MaxLimit)}
}

// decide answers a Take or a Peek as one of n nodes. It may change c.
func (f *fallback) decide(now int64, c *owner.Call, n int) limit.Verdict {
	var v limit.Verdict
	switch full := c.Rule.Capacity(); c.Rule.OnFailure {
	case limit.FailAllow:
		v = limit.Verdict{Allowed: true, Limit: full, Remaining: full}
	case limit.FailDeny:
		v = limit.Verdict{Reason: limit.Unavailable, Limit: full}
	default:
		v = f.local(now, c, n)
	}
	v.Source = limit.SourceFallback
	return v
}

func (f *fallback) local(now int64, c *owner.Call, n int) limit.Verdict {
	whole := c.Rule
	c.Partition, c.Rule = 0, f.share(now, whole, n)
	var v limit.Verdict
	if err := f.table.Decide(now, c, &v); err != nil { // no room to count in, so nothing can be admitted
		return limit.Verdict{Reason: limit.Unavailable, Limit: whole.Capacity()}
	}
	if v.Reason == limit.CostExceedsLimit && c.Cost <= whole.Capacity() {
		v.Reason = limit.Unavailable // only the share is too small
	}
	if v.Allowed && c.Mode == limit.Take {
		if wait := f.admit(now, n); wait > 0 {
			return f.giveBack(now, c, wait)
		}
	}
	return v
}

// giveBack denies what the counter has admitted and the node has no capacity
// for.
func (f *fallback) giveBack(now int64, c *owner.Call, wait time.Duration) limit.Verdict {
	c.Mode = limit.Refund
	var v limit.Verdict
	_ = f.table.Decide(now, c, &v) // the counter exists, so there is no error
	v.Allowed, v.RetryAfter = false, wait
	return v
}

// refund undoes what decide has admitted for on_failure: local, as of taken. c is
// as decide has left it.
func (f *fallback) refund(now, taken int64, c *owner.Call) {
	c.Mode, c.Age = limit.Refund, time.Duration(now-taken)
	var v limit.Verdict
	_ = f.table.Decide(now, c, &v) // the counter exists, so there is no error
	f.mu.Lock()
	defer f.mu.Unlock()
	f.level, _ = f.bucket.Refund(f.level, now, 1)
}

// admit takes one check from the node's capacity, or says how long it is used
// up.
func (f *fallback) admit(now int64, n int) (wait time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.divide(now, n)
	var v limit.Verdict
	f.level, v = f.bucket.Take(f.level, now, 1)
	return v.RetryAfter
}

// share is an n-th of the rule.
func (f *fallback) share(now int64, whole *limit.Rule, n int) *limit.Rule {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.divide(now, n)
	share, ok := f.shares[whole.ID()]
	if !ok {
		if len(f.shares) == maxShares {
			clear(f.shares)
		}
		share = whole.Share(n)
		f.shares[whole.ID()] = share
	}
	return share
}

// divide makes the capacity and the shares anew when the cluster's size has
// changed. What was used stays used. f.mu is held.
func (f *fallback) divide(now int64, n int) {
	if f.n == n {
		return
	}
	f.n, f.shares = n, map[limit.RuleID]*limit.Rule{}
	part := max(1, f.capacity/int64(n))
	bucket, err := limit.NewRule(limit.Spec{Algorithm: limit.TokenBucket, Limit: part, Window: time.Second})
	if err != nil {
		panic("forward: a share of the fallback's capacity is no rule: " + err.Error())
	}
	if f.bucket != nil {
		f.level = bucket.Carry(f.bucket, f.level, now)
	}
	f.bucket = bucket
}
