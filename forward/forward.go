// Package forward takes a charge to the node that owns its counter. It is
// policy without sockets: whom to ask, for how long, and what to answer when
// nobody can be asked.
//
//	ours       decided here
//	not ours   the deny cache, then the owner, one hop away
//	elsewhere  while a counter changes hands: a hint is followed, then the search begins anew
//	otherwise  the rule's on_failure: this node's share of the limit, allow, deny
//	several    all or none: in one step at each owner, with refunds between them
//	many       independent of each other: one hand-over to each owner
//
// A check is sent at most once to a node that may have counted it. It is sent
// again only after an answer that says that it was not: "not mine", or no process
// at the other end.
package forward

import (
	"context"
	"time"

	"github.com/ringlimit/ringlimit/limit"
	"github.com/ringlimit/ringlimit/owner"
)

// Local decides for the counters that this node holds: an *owner/driver.Driver.
type Local interface {
	// Decide answers as of now. It waits while the counter is changing hands or
	// its charge needs a copy first, until the deadline or the end of ctx. Both
	// times are in Unix nanoseconds of this node's clock. The error is an
	// owner.ErrNotHolder, such as a *transfer.NotMine with a hint, or
	// owner.ErrFull: then the call was not counted; or context.DeadlineExceeded
	// or the context's: then it may have been, and it was if v says Allowed.
	Decide(ctx context.Context, now, deadline int64, c *owner.Call, v *limit.Verdict) error
	// DecideGroup answers joined calls, all or none: an error as above that means
	// "not counted" is that of all of them. A call with another error is Taken if it
	// was counted.
	DecideGroup(ctx context.Context, now, deadline int64, calls []owner.Call, results []owner.Result)
	// DecideFrame answers independent calls, in their order, and waits for nothing. An
	// error as above means "not counted"; owner.ErrLater, that late has the answer
	// later, or never, when the deadline has passed before. It keeps nothing of calls
	// and results.
	DecideFrame(now, deadline int64, calls []owner.Call, results []owner.Result, late owner.Late, frame uint64)
}

// Fallback counts for on_failure: an *owner.Table that holds its one partition.
type Fallback interface {
	Decide(now int64, c *owner.Call, v *limit.Verdict) error
}

// Peer is the way to one other node.
type Peer interface {
	// Check asks the node to decide. The deadline is in Unix nanoseconds of
	// this node's clock. The error is a *transfer.NotMine, owner.ErrFull, one of this
	// package's, or the context's. Check does not keep c.
	Check(ctx context.Context, c *owner.Call, deadline int64) (limit.Verdict, error)
	// Send asks the node to decide joined calls, all or none, into results of the
	// same length, and does not wait for that. Calls and results are its own until
	// Await returns.
	Send(calls []owner.Call, results []owner.Result, deadline int64) Sent
	// SendEach asks the node to decide independent calls, those of one counter in
	// their order, and does not wait: the answer to calls[i] is put into the inbox at
	// first+i, once for each i, by the deadline. An error is as Check's, or ErrNoGroup:
	// that call was not counted, and is to be asked for by Check. It keeps nothing of
	// calls.
	SendEach(calls []owner.Call, deadline int64, to *Inbox, first int)
}

// Sent is calls that a Peer was asked to decide.
type Sent interface {
	// Await waits for the results, and is to be called once. An error that means that
	// a call was not counted is that of all of them; ErrNoGroup, of more than one, is
	// such an error too.
	Await(ctx context.Context)
}

// Observer is told what goes wrong, and how long a hop takes. Its methods must
// be safe for concurrent use and quick.
type Observer interface {
	// ForwardFailed counts a check that no owner decided, and a refund that was
	// lost. The reason is one of a few words: see Reason; and "refund" for one that
	// DecideAll has lost.
	ForwardFailed(reason string)
	// FallbackActive says that on_failure has begun to answer (true), or that
	// owners answer again (false).
	FallbackActive(active bool)
	// Forwarded times a check that another node has decided.
	Forwarded(took time.Duration)
	// Waited times a check of many that this node has decided after a while; Local
	// itself times others.
	Waited(took time.Duration)
	// RingMismatch counts an answer of a node that does not hold the counter and
	// whose ring is another than the one by which it was asked. Without a change
	// of members it should cease within seconds.
	RingMismatch()
}
