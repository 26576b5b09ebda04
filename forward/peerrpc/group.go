package peerrpc

import (
	"cmp"
	"context"
	"sync"

	"github.com/ringlimit/ringlimit/forward"
	"github.com/ringlimit/ringlimit/limit"
	"github.com/ringlimit/ringlimit/owner"
)

// sent is a group on its way. Its checks travel side by side in one frame.
type sent struct {
	conn     *conn
	calls    []owner.Call
	results  []owner.Result
	deadline int64
	records  []record
	waiters  []*waiter // none if it could not be sent: then the results are there
}

// sends is a pool of them.
type sends struct{ pool sync.Pool }

func (p *sends) get() *sent {
	if s, ok := p.pool.Get().(*sent); ok {
		return s
	}
	return new(sent)
}

// put lets go of what is the caller's.
func (p *sends) put(s *sent) {
	clear(s.records)
	*s = sent{records: s.records[:0], waiters: s.waiters[:0]}
	p.pool.Put(s)
}

// Send implements forward.Peer.
func (c *conn) Send(calls []owner.Call, results []owner.Result, deadline int64) forward.Sent {
	s := c.sends.get()
	s.conn, s.calls, s.results, s.deadline = c, calls, results, deadline
	for i := range calls {
		call := &calls[i]
		s.records = append(s.records, record{
			mode: call.Mode, rule: call.Rule.ID(), cost: call.Cost, name: call.Counter, age: call.Age,
			joined: i > 0, shadow: call.Shadow && len(calls) > 1,
		})
		if r := &s.records[i]; !r.valid() || len(r.name) > maxName {
			failAll(results, forward.ErrRejected)
			return s
		}
	}
	s.send()
	return s
}

// Await implements forward.Sent. What an owner answers that lacks a rule was not
// counted: it is asked once more, with the rules.
func (s *sent) Await(ctx context.Context) {
	s.receive(ctx)
	if s.results[0].Err == errUnknownRule {
		s.explain()
		s.receive(ctx)
	}
	conclude(s.calls, s.results)
	s.conn.sends.put(s)
}

// conclude says what the owner has taken: nothing if one of the calls was refused.
// So while the answer to one is missing nobody knows, and then none counts as taken:
// what might never have been taken must not be given back.
func conclude(calls []owner.Call, results []owner.Result) {
	known := true
	for i := range results {
		if results[i].Err == errUnknownRule {
			results[i].Err = forward.ErrRejected // it would not learn it
		}
		known = known && results[i].Err == nil
	}
	taken := known && !owner.Refused(calls, results)
	for i := range results {
		results[i].Taken = taken && results[i].Verdict.Allowed && calls[i].Mode == limit.Take
	}
}

// explain is send with the bodies of the rules.
func (s *sent) explain() {
	for i := range s.records {
		if s.records[i].body = s.calls[i].Rule.Encode(); len(s.records[i].body) > maxBody {
			failAll(s.results, forward.ErrRejected)
			return
		}
	}
	s.send()
}

func (s *sent) send() {
	b := s.conn.batch
	for range s.records {
		s.waiters = append(s.waiters, b.waiters.Get(s.deadline))
	}
	leads, err := b.addGroup(s.records, s.waiters)
	if err != nil {
		for _, w := range s.waiters {
			b.waiters.Put(w)
		}
		s.waiters = s.waiters[:0]
		failAll(s.results, err)
		return
	}
	if leads {
		b.lead()
	}
}

// receive waits for all answers, if there are any to come.
func (s *sent) receive(ctx context.Context) {
	for i, w := range s.waiters {
		a, err := s.conn.batch.waiters.Await(ctx, w)
		s.results[i] = owner.Result{Verdict: a.verdict, Err: cmp.Or(err, a.err)}
	}
	s.waiters = s.waiters[:0]
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
	case len(records) > 1 && (!b.groups || len(records) > limit.MaxLimits || bytes > frameBytes):
		return false, forward.ErrNoGroup
	case b.pending+len(records) > maxPending, b.queued+bytes > maxQueued:
		return false, forward.ErrOverloaded
	case records[0].age > 0 && !b.takesAges(): // of a Refund, which is sent alone
		return false, b.noAges()
	}
	f := b.open(len(records), bytes)
	for i := range records {
		b.queued += f.add(&records[i], seatOf(waiters[i]))
	}
	b.pending += len(records)
	b.due(waiters[0].Deadline)
	return b.claimLead(), nil
}
