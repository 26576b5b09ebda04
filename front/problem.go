package front

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/ringlimit/ringlimit/limit"
)

const typeBlank = "about:blank"

// Problem is an error as a client reads it: application/problem+json, RFC 9457.
type Problem struct {
	Type       string   `json:"type"`
	Title      string   `json:"title"`
	Status     int      `json:"status"`
	Policies   []string `json:"violated-policies,omitempty"`
	Limit      *int64   `json:"limit,omitempty"`
	Window     string   `json:"window,omitempty"`
	RetryAfter int64    `json:"retry_after,omitzero"` // seconds, not jittered
	Detail     string   `json:"detail,omitempty"`     // what is wrong, and what would be right
	Field      string   `json:"field,omitempty"`      // which part of the request is wrong
}

// NewProblem is a problem that its status says all about but the detail. Long
// texts are cut: they quote names that the client chose.
func NewProblem(status int, field, detail string) *Problem {
	return &Problem{
		Type: typeBlank, Title: http.StatusText(status), Status: status,
		Detail: detail[:min(len(detail), 300)], Field: field[:min(len(field), 100)],
	}
}

func (p *Problem) Error() string { return p.Detail }

// unavailable is an error of a Checker that another moment, or another node, may
// not have.
type unavailable interface {
	error
	Unavailable() bool
}

// ProblemOf says how an error is told to the client: a *Problem as it is, bad
// input as 400, a refund that was not delivered whole as 424, which nobody sends
// again by himself, a caller who gave up and a Checker that says so itself as 503, and
// anything else as 500, without its text, which may hold what is none of the
// client's business.
func ProblemOf(err error) *Problem {
	var problem *Problem
	var input *limit.InputError
	var refund *limit.RefundError
	switch {
	case errors.As(err, &problem):
		return problem
	case errors.As(err, &input):
		return NewProblem(http.StatusBadRequest, input.Field, input.Error())
	case errors.As(err, &refund):
		return NewProblem(http.StatusFailedDependency, "", fmt.Sprintf(
			"the cost was given back to %d of %d limits, and may be lost to the others; do not send the refund again: some would get it twice",
			refund.Returned, refund.Of))
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return NewProblem(http.StatusServiceUnavailable, "", "the request ended before it was decided")
	}
	if u, ok := errors.AsType[unavailable](err); ok && u.Unavailable() {
		return NewProblem(http.StatusServiceUnavailable, "", "nobody could be asked to decide the request")
	}
	return NewProblem(http.StatusInternalServerError, "", "the request could not be decided")
}

// JSON is the problem's body. Text that is not UTF-8 is mended, not refused: it
// is the client's own, quoted back.
func (p *Problem) JSON() []byte {
	body, _ := json.Marshal(p, jsontext.AllowInvalidUTF8(true))
	return body
}

// Write answers with the problem. No cache may keep it: RFC 6585 forbids it for
// a 429, and the next request may well be fine.
func (p *Problem) Write(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(p.Status)
	w.Write(p.JSON())
}
