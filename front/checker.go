// Package front holds what every door of ringlimit shares: the Checker that a
// door asks, and how a verdict is told over HTTP. The doors themselves, which
// turn what a protocol carries into a [limit.Request], are in the folders below.
package front

import (
	"context"

	"github.com/ringlimit/ringlimit/limit"
)

// Checker judges requests: a node, or a client of one. It is safe for
// concurrent use.
//
// Both methods return a *[limit.InputError] for a request that is bad input (it
// counted nothing) and the context's error when the caller gave up. A denial is
// a verdict, not an error.
type Checker interface {
	Check(ctx context.Context, req limit.Request) (limit.Verdict, error)
	// Refund gives req.Cost back; never more than was taken. A *[limit.RefundError]
	// means that it may be lost, and must not be sent again; any other error that
	// none was sent.
	Refund(ctx context.Context, req limit.Request) (limit.Verdict, error)
}
