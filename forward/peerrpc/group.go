package peerrpc

import (
	"context"

	"github.com/ringlimit/ringlimit/forward"
	"github.com/ringlimit/ringlimit/limit"
	"github.com/ringlimit/ringlimit/owner"
)

// fewCalls is how large a group may be that needs no allocation.
const fewCalls = 8

// CheckGroup implements forward.Peer. The checks travel side by side in one frame.
func (c *conn) CheckGroup(ctx context.Context, calls []owner.Call, results []owner.Result, deadline int64) {
	var room [fewCalls]record
	records := room[:0]
	for i := range calls {
		call := &calls[i]
		r := record{
			mode: call.Mode, rule: call.Rule.ID(), cost: call.Cost, name: call.Counter,
			joined: i > 0, shadow: call.Shadow,
		}
		if !r.valid() || len(r.name) > maxName {
			failAll(results, forward.ErrRejected)
			return
		}
		records = append(records, r)
	}
	c.askAll(ctx, records, results, deadline)
	if results[0].Err == errUnknownRule { // then none was counted
		for i := range records {
			if records[i].body = calls[i].Rule.Encode(); len(records[i].body) > maxBody {
				failAll(results, forward.ErrRejected)
				return
			}
		}
		c.askAll(ctx, records, results, deadline)
	}
	for i := range results {
		if results[i].Err == errUnknownRule {
			results[i].Err = forward.ErrRejected // it would not learn it
		}
	}
	refused := owner.Refused(calls, results)
	for i := range results {
		r := &results[i]
		r.Taken = !refused && r.Err == nil && r.Verdict.Allowed && calls[i].Mode == limit.Take
	}
}

// askAll sends the records of a group and waits for all answers.
func (c *conn) askAll(ctx context.Context, records []record, results []owner.Result, deadline int64) {
	var room [fewCalls]*waiter
	waiters := room[:0]
	for range records {
		waiters = append(waiters, c.batch.waiters.get(deadline))
	}
	leads, err := c.batch.addGroup(records, waiters)
	if err != nil {
		for _, w := range waiters {
			c.batch.waiters.put(w)
		}
		failAll(results, err)
		return
	}
	if leads {
		c.batch.lead()
	}
	for i, w := range waiters {
		a := c.batch.waiters.await(ctx, w)
		results[i] = owner.Result{Verdict: a.verdict, Err: a.err}
	}
}

func failAll(results []owner.Result, err error) {
	for i := range results {
		results[i] = owner.Result{Err: err}
	}
}

// addGroup is add for checks that are decided together: they must not be parted,
// and have one deadline, so that they do not part later either.
func (b *batcher) addGroup(records []record, waiters []*waiter) (leads bool, err error) {
	bytes := 0
	for i := range records {
		bytes += records[i].maxSize()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.link == down:
		return false, forward.ErrAbsent
	case !b.groups, len(records) > maxRecords, bytes > frameBytes:
		return false, forward.ErrNoGroup
	case b.pending+len(records) > maxPending, b.queued+bytes > maxQueued:
		return false, forward.ErrOverloaded
	}
	f := b.open(len(records), bytes)
	for i := range records {
		b.queued += f.add(&records[i], waiters[i])
	}
	b.pending += len(records)
	b.due(waiters[0].deadline)
	return b.claimLead(), nil
}
