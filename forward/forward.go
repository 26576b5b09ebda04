// Package forward takes a charge to the node that owns its counter. It is
// policy without sockets: whom to ask, for how long, and what to answer when
// nobody can be asked.
//
//	ours       the owner's table decides
//	not ours   the deny cache, then the owner, one hop away
//	otherwise  the rule's on_failure: this node's share of the limit, allow, deny
//
// A check is sent at most once to a node that may have counted it. The only
// answer after which it is sent again is "not mine", for then it was not.
package forward

import (
	"context"
	"time"

	"github.com/ringlimit/ringlimit/limit"
	"github.com/ringlimit/ringlimit/owner"
)

// Local decides for the counters that this node holds: an *owner.Table. Its
// errors are owner.ErrNotHolder and owner.ErrFull.
type Local interface {
	Decide(now int64, c *owner.Call, v *limit.Verdict) error
}

// Peer is the way to one other node.
type Peer interface {
	// Check asks the node to decide. The deadline is in Unix nanoseconds of
	// this node's clock. The error is a *transfer.NotMine, owner.ErrFull, one of this
	// package's, or the context's. Check does not keep c.
	Check(ctx context.Context, c *owner.Call, deadline int64) (limit.Verdict, error)
}

// Observer is told what goes wrong, and how long a hop takes. Its methods must
// be safe for concurrent use and quick.
type Observer interface {
	// ForwardFailed counts a check that no owner decided, and a refund that was
	// lost. The reason is one of a few words: see Reason.
	ForwardFailed(reason string)
	// FallbackActive says that on_failure has begun to answer (true), or that
	// owners answer again (false).
	FallbackActive(active bool)
	// Forwarded times a check that another node has decided.
	Forwarded(took time.Duration)
}
