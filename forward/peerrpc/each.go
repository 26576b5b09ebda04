package peerrpc

import (
	"github.com/ringlimit/ringlimit/forward"
	"github.com/ringlimit/ringlimit/owner"
)

// SendEach implements forward.Peer. The calls enter the frames under one lock, beside
// the checks of other callers; who has filled several frames sends as many as may be
// on their way.
func (c *conn) SendEach(calls []owner.Call, deadline int64, to *forward.Inbox, first int) {
	b := c.batch
	for leads := b.addEach(calls, deadline, to, first); leads; leads = b.leads() {
		b.lead()
	}
}

// addEach is add for many checks. Those that may not wait are answered at once.
func (b *batcher) addEach(calls []owner.Call, deadline int64, to *forward.Inbox, first int) (leads bool) {
	entered := false
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range calls {
		call := &calls[i]
		r := record{mode: call.Mode, rule: call.Rule.ID(), cost: call.Cost, name: call.Counter, age: call.Age}
		err := forward.ErrRejected
		if r.valid() && len(r.name) <= maxName {
			err = b.enter(&r, seat{inbox: to, index: first + i, deadline: deadline})
		}
		if err != nil {
			to.Put(first+i, &owner.Result{Err: err})
			to.Ring()
			continue
		}
		entered = true
	}
	if !entered {
		return false
	}
	b.due(deadline)
	return b.claimLead()
}

// leads says whether the caller is to lead once more.
func (b *batcher) leads() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.claimLead()
}
