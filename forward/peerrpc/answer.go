package peerrpc

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/ringlimit/ringlimit/forward"
	"github.com/ringlimit/ringlimit/limit"
	"github.com/ringlimit/ringlimit/membership"
	"github.com/ringlimit/ringlimit/owner"
	"github.com/ringlimit/ringlimit/owner/transfer"
)

// An answer as it travels: a byte for its outcome, and then
//
//	admitted, denied  byte: the reason; uvarints: limit, remaining, and in
//	                  nanoseconds retry after, delay, reset after
//	notMine           uvarint: the length of the hint, and the hint;
//	                  8 bytes: the ring's fingerprint, little-endian
//	any other         nothing
type outcome byte

const (
	admitted outcome = iota + 1
	denied
	notMine
	unknownRule
	full
	rejected
	later      // the answer follows in a frame of late ones
	overloaded // too many answers are put off on this stream
)

const maxHint = 256 // bytes in a node's name

// errUnknownRule asks for the rule's body. It does not leave this package.
var errUnknownRule = errors.New("the counter's owner does not know the rule")

// kinds is the error table: which outcome stands for which error.
func kinds() [5]struct {
	outcome outcome
	err     error
} {
	return [...]struct {
		outcome outcome
		err     error
	}{
		{later, owner.ErrLater}, // first, for it is frequent
		{unknownRule, errUnknownRule},
		{full, owner.ErrFull},
		{rejected, forward.ErrRejected},
		{overloaded, forward.ErrOverloaded},
	}
}

// appendResult writes what was decided.
func appendResult(b []byte, r *owner.Result) []byte {
	if r.Err == nil {
		return appendVerdict(b, &r.Verdict)
	}
	if elsewhere, ok := errors.AsType[*transfer.NotMine](r.Err); ok {
		return appendNotMine(b, elsewhere.Hint, elsewhere.Ring)
	}
	return appendError(b, r.Err)
}

func appendVerdict(b []byte, v *limit.Verdict) []byte {
	s := denied
	if v.Allowed {
		s = admitted
	}
	b = append(b, byte(s), byte(v.Reason))
	for _, n := range [...]int64{v.Limit, v.Remaining, int64(v.RetryAfter), int64(v.Delay), int64(v.ResetAfter)} {
		b = binary.AppendUvarint(b, uint64(n))
	}
	return b
}

// appendError writes an error of the table; one that is not in it is a
// rejection.
func appendError(b []byte, err error) []byte {
	for _, k := range kinds() {
		if errors.Is(err, k.err) {
			return append(b, byte(k.outcome))
		}
	}
	return append(b, byte(rejected))
}

func appendNotMine(b []byte, hint membership.NodeID, ring uint64) []byte {
	if len(hint) > maxHint {
		hint = "" // a hint is advice; a cut one would be another node's name
	}
	b = append(b, byte(notMine))
	b = binary.AppendUvarint(b, uint64(len(hint)))
	b = append(b, hint...)
	return binary.LittleEndian.AppendUint64(b, ring)
}

// answer is what a check comes to: a verdict or an error.
type answer struct {
	verdict limit.Verdict
	err     error
}

// cutAnswer reads the first answer of b and returns the rest. Its error is that
// of the frame; the check's own error is in a.
func cutAnswer(b []byte, a *answer) (rest []byte, err error) {
	*a = answer{}
	if len(b) == 0 {
		return nil, errBadFrame
	}
	switch s := outcome(b[0]); s {
	case admitted, denied:
		return cutVerdict(b[1:], s, &a.verdict)
	case notMine:
		return cutNotMine(b[1:], a)
	default:
		for _, k := range kinds() {
			if k.outcome == s {
				a.err = k.err
				return b[1:], nil
			}
		}
		return nil, fmt.Errorf("%w: an answer has the unknown outcome %d", errBadFrame, s)
	}
}

func cutVerdict(b []byte, s outcome, v *limit.Verdict) (rest []byte, err error) {
	if len(b) == 0 {
		return nil, errBadFrame
	}
	v.Allowed, v.Reason = s == admitted, limit.Reason(b[0])
	b = b[1:]
	for _, field := range [...]*int64{
		&v.Limit, &v.Remaining, (*int64)(&v.RetryAfter), (*int64)(&v.Delay), (*int64)(&v.ResetAfter),
	} {
		var n uint64
		if n, b, err = cutUvarint(b); err != nil || n > uint64(maxDuration) {
			return nil, errBadFrame
		}
		*field = int64(n)
	}
	return b, nil
}

const maxDuration = time.Duration(1<<63 - 1)

func cutNotMine(b []byte, a *answer) (rest []byte, err error) {
	hint, b, err := cutBytes(b, maxHint)
	if err != nil || len(b) < 8 {
		return nil, errBadFrame
	}
	a.err = &transfer.NotMine{Hint: membership.NodeID(hint), Ring: binary.LittleEndian.Uint64(b)}
	return b[8:], nil
}
