package httpfront

import (
	"context"
	"net/http"
	"time"

	"github.com/ringlimit/ringlimit/front"
	"github.com/ringlimit/ringlimit/limit"
)

const (
	refundFields = fieldKey | fieldRoute | fieldCost | fieldTier | fieldIP | fieldAttributes
	checkFields  = refundFields | fieldPeek | fieldExplain
)

// decision is Checker.Check or Checker.Refund.
type decision func(context.Context, limit.Request) (limit.Verdict, error)

func (s *server) check(w http.ResponseWriter, r *http.Request) {
	s.decide(w, r, checkFields, s.Checker.Check)
}

func (s *server) refund(w http.ResponseWriter, r *http.Request) {
	s.decide(w, r, refundFields, s.giveRefund)
}

// giveRefund says 503 when no refund was sent, for the node is about to go: that is
// nobody's bug. For one that was sent and may be lost, see front.ProblemOf.
func (s *server) giveRefund(ctx context.Context, req limit.Request) (limit.Verdict, error) {
	v, err := s.Checker.Refund(ctx, req)
	if err != nil && front.ProblemOf(err).Status == http.StatusInternalServerError {
		err = front.NewProblem(http.StatusServiceUnavailable, "", "the refund was not sent")
	}
	return v, err
}

func (s *server) decide(w http.ResponseWriter, r *http.Request, fields field, ask decision) {
	x := s.borrow()
	defer s.giveBack(x)
	req, err := s.readCheck(x, w, r, fields)
	var a reply
	if err == nil {
		a, err = s.answer(r.Context(), &req, ask)
	}
	if err != nil {
		s.problem(err).Write(w)
		return
	}
	x.reply = a.append(x.reply[:0], s.Now())
	s.writeJSON(w, http.StatusOK, x.reply)
}

func (s *server) readCheck(x *exchange, w http.ResponseWriter, r *http.Request, fields field) (asked, error) {
	if err := x.read(w, r, maxCheckBytes); err != nil {
		return asked{}, err
	}
	req, err := x.decoder.check("body", fields)
	if err == nil {
		err = x.decoder.end()
	}
	req.IP = s.Identity.Network(req.IP)
	return req, err
}

// reply is the answer to one check.
type reply struct {
	verdict     limit.Verdict
	explanation []byte // JSON; nil if nobody asked for it
}

// answer has a request decided. Only a check may ask to be explained.
func (s *server) answer(ctx context.Context, req *asked, ask decision) (a reply, err error) {
	if req.explain {
		a.verdict, a.explanation, err = s.Explainer.CheckExplained(ctx, req.Request)
		return a, err
	}
	a.verdict, err = ask(ctx, req.Request)
	return a, err
}

func (a *reply) append(b []byte, now time.Time) []byte {
	b = front.AppendVerdict(b, &a.verdict, now)
	if a.explanation == nil {
		return b
	}
	b = append(b[:len(b)-1], `,"explain":`...)
	b = append(b, a.explanation...)
	return append(b, '}')
}
