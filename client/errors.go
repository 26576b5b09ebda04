package client

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"

	"github.com/ringlimit/ringlimit/internal/wire"
	"github.com/ringlimit/ringlimit/limit"
)

// Why a call has no verdict, besides a *[limit.InputError] for bad input, a
// *[NodeError] and the error of the caller's context. That a refund may have been
// given back a *[limit.RefundError] says, which wraps one of them.
var (
	// ErrUnavailable means that no node could be asked. The call was not counted.
	ErrUnavailable error = &failure{text: "no node can be reached"}
	// ErrOverloaded means that too many calls already wait for the node. The call
	// was not counted.
	ErrOverloaded error = &failure{text: "too many calls wait for a node"}
	// ErrLost means that the connection broke while the answer was awaited. The call
	// may have been counted, so it is never sent again.
	ErrLost error = &failure{text: "the connection to the node broke; the call may have been counted"}
	// ErrTimeout means that no answer came in time. The call may have been counted,
	// unless the error says that it was not sent. It is a context.DeadlineExceeded,
	// too.
	ErrTimeout error = &failure{text: "the node did not answer in time; the call may have been counted", is: context.DeadlineExceeded}
	// ErrClosed means that the client is closed. The call was not counted.
	ErrClosed = errors.New("ringlimit: the client is closed")
)

// errOverdue is the ErrTimeout of a call that was still here.
var errOverdue error = &failure{text: "no node took the call in time; it was not counted", is: ErrTimeout}

// errNotSent means that the node is gone and that another one may be asked.
var errNotSent = errors.New("not sent")

// failure is one that another moment, or another node, may not have.
type failure struct {
	text string
	is   error
}

func (f *failure) Error() string     { return "ringlimit: " + f.text }
func (f *failure) Unwrap() error     { return f.is }
func (f *failure) Unavailable() bool { return true } // doors answer 503, not 500

// NodeError is what a node says instead of a verdict.
type NodeError struct {
	Code    codes.Code
	Message string
}

func (e *NodeError) Error() string {
	return fmt.Sprintf("ringlimit: the node says %v: %s", e.Code, e.Message)
}

// Unavailable says whether another moment, or another node, may do better.
func (e *NodeError) Unavailable() bool { return e.Code == codes.Unavailable }

// refundError says of a refund that had this error whether it may be sent again. How
// many limits it was for the client does not know: it takes them for one.
func refundError(err error) error {
	if err == nil || refused(err) {
		return err
	}
	return &limit.RefundError{Of: 1, Err: err}
}

// refused says whether a call with this error has certainly changed no counter.
func refused(err error) bool {
	switch e := err.(type) {
	case *limit.InputError:
		return true
	case *NodeError:
		return e.Unavailable()
	}
	return err == ErrOverloaded || err == errOverdue
}

// errorOf is the error of an answer.
func errorOf(e *wire.Error) error {
	switch {
	case e == nil:
		return nil
	case e.Code == codes.InvalidArgument:
		return &limit.InputError{Field: e.Field, Problem: strings.TrimPrefix(e.Message, e.Field+": ")}
	case e.Code == codes.DeadlineExceeded:
		return ErrTimeout
	}
	return &NodeError{e.Code, e.Message}
}
