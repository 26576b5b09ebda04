package httpfront

import (
	"context"
	"net/http"

	"github.com/ringlimit/ringlimit/front"
	"github.com/ringlimit/ringlimit/limit"
)

const (
	refundFields = fieldKey | fieldRoute | fieldCost | fieldTier | fieldIP | fieldAttributes
	checkFields  = refundFields | fieldPeek
)

// decision is Checker.Check or Checker.Refund.
type decision func(context.Context, limit.Request) (limit.Verdict, error)

func (s *server) check(w http.ResponseWriter, r *http.Request) {
	s.decide(w, r, checkFields, s.Checker.Check)
}

func (s *server) refund(w http.ResponseWriter, r *http.Request) {
	s.decide(w, r, refundFields, s.giveRefund)
}

// giveRefund says 503 when the refund could not be delivered: that is nobody's
// bug. It may have arrived, so the caller should not send it again.
func (s *server) giveRefund(ctx context.Context, req limit.Request) (limit.Verdict, error) {
	v, err := s.Checker.Refund(ctx, req)
	if err != nil && front.ProblemOf(err).Status == http.StatusInternalServerError {
		err = front.NewProblem(http.StatusServiceUnavailable, "", "the refund could not be delivered; it may be lost")
	}
	return v, err
}

func (s *server) decide(w http.ResponseWriter, r *http.Request, fields field, ask decision) {
	x := s.borrow()
	defer s.giveBack(x)
	req, err := s.readCheck(x, w, r, fields)
	var v limit.Verdict
	if err == nil {
		v, err = ask(r.Context(), req)
	}
	if err != nil {
		s.problem(err).Write(w)
		return
	}
	x.reply = front.AppendVerdict(x.reply[:0], &v, s.Now())
	writeJSON(w, http.StatusOK, x.reply)
}

func (s *server) readCheck(x *exchange, w http.ResponseWriter, r *http.Request, fields field) (limit.Request, error) {
	if err := x.read(w, r, maxCheckBytes); err != nil {
		return limit.Request{}, err
	}
	req, err := x.decoder.check("body", fields)
	if err == nil {
		err = x.decoder.end()
	}
	req.IP = s.Identity.Network(req.IP)
	return req, err
}
