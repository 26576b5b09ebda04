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
	s.decide(w, r, refundFields, s.Checker.Refund)
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
