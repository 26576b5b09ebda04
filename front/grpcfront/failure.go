package grpcfront

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/ringlimit/ringlimit/front"
	"github.com/ringlimit/ringlimit/internal/wire"
	"github.com/ringlimit/ringlimit/limit"
)

// failure is why there is no verdict, as the client reads it.
type failure wire.Error

// failure says of an error what [front.ProblemOf] says of it. What that hides is
// logged.
func (s *Server) failure(err error) *failure {
	_, refund := errors.AsType[*limit.RefundError](err)
	switch {
	case refund: // whatever it was lost to
	case errors.Is(err, context.Canceled):
		return &failure{Code: codes.Canceled, Message: "the call was cancelled before it was decided"}
	case errors.Is(err, context.DeadlineExceeded):
		return &failure{Code: codes.DeadlineExceeded, Message: "the call ended before it was decided"}
	}
	p := front.ProblemOf(err)
	f := &failure{
		Code:    codes.Internal, // both quote the client, and were cut
		Message: strings.ToValidUTF8(p.Detail, "\uFFFD"),
		Field:   strings.ToValidUTF8(p.Field, "\uFFFD"),
	}
	switch p.Status {
	case http.StatusBadRequest:
		f.Code = codes.InvalidArgument
	case http.StatusFailedDependency: // not to be sent again, as callers do what is unavailable
		f.Code = codes.FailedPrecondition
	case http.StatusServiceUnavailable:
		f.Code = codes.Unavailable
	default:
		s.cfg.Logger.Error("check failed", "error", err)
	}
	return f
}

// status is the failure of a whole call.
func (f *failure) status() error {
	st := status.New(f.Code, f.Message)
	if f.Code != codes.InvalidArgument {
		return st.Err()
	}
	bad := &errdetails.BadRequest{FieldViolations: []*errdetails.BadRequest_FieldViolation{{
		Field: f.Field, Description: f.Message,
	}}}
	detailed, err := st.WithDetails(bad)
	if err != nil {
		return st.Err()
	}
	return detailed.Err()
}
