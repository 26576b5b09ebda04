package forward

import (
	"context"
	"errors"

	"github.com/ringlimit/ringlimit/owner"
)

// Why a counter's owner gave no verdict. Besides these there are
// owner.ErrNotHolder and owner.ErrFull, which an owner that is this very node
// gives, and the error of a context.
var (
	// ErrTimeout means that no answer came in time. The check may have been
	// counted all the same, so it is never sent again.
	ErrTimeout = errors.New("the counter's owner did not answer in time")
	// ErrUnreachable means that there is no way to the owner, or that the
	// connection broke while the answer was awaited. In the latter case too the
	// check may have been counted.
	ErrUnreachable = errors.New("the counter's owner cannot be reached")
	// ErrOverloaded means that too many checks already wait for this owner. The
	// check was not sent.
	ErrOverloaded = errors.New("too many checks wait for the counter's owner")
	// ErrRejected means that the owner cannot judge such a check, nor could it
	// if it were asked again. The check was not counted.
	ErrRejected = errors.New("the counter's owner rejects the check")
	// ErrAbsent means that there is no process at the other end, and that the
	// check was not sent: another node may be asked.
	ErrAbsent = errors.New("the counter's owner is gone")
	// ErrNoGroup means that the owner cannot judge these checks together. None was
	// counted: it may be asked for each.
	ErrNoGroup = errors.New("the counters' owner does not judge these checks together")
	// ErrNoOwner means that the ring has no members: the check was not sent.
	ErrNoOwner = errors.New("no node owns counters")
)

// uncounted says whether nobody has counted the call, and somebody else may hold
// its counter, or the same node a moment later.
func uncounted(err error) bool {
	return errors.Is(err, owner.ErrNotHolder) || errors.Is(err, ErrAbsent) || errors.Is(err, ErrNoOwner)
}

// divisible says whether nobody has counted any call of a group, and each may be
// asked for by itself.
func divisible(err error) bool {
	return uncounted(err) || errors.Is(err, owner.ErrFull) || errors.Is(err, ErrRejected) || errors.Is(err, ErrNoGroup)
}

// Reason is an error in one word, for a metric's label.
func Reason(err error) string {
	for _, k := range [...]struct {
		err    error
		reason string
	}{
		{ErrTimeout, "timeout"},
		{context.DeadlineExceeded, "timeout"},
		{ErrUnreachable, "unreachable"},
		{ErrAbsent, "absent"},
		{ErrOverloaded, "overloaded"},
		{ErrRejected, "rejected"},
		{ErrNoOwner, "no_owner"},
		{owner.ErrFull, "full"},
		{owner.ErrNotHolder, "not_holder"},
	} {
		if errors.Is(err, k.err) {
			return k.reason
		}
	}
	return "other"
}
