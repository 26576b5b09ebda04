package grpcfront

import (
	"context"
	"net/http"

	"github.com/ringlimit/ringlimit/front"
	"github.com/ringlimit/ringlimit/internal/wire"
	"github.com/ringlimit/ringlimit/limit"
)

// verdictBytes is enough for most of them.
const verdictBytes = 128

// readCheck reads what the Checker is to be asked.
func (s *Server) readCheck(ask string, c *wire.Check) error {
	return s.complete(c, wire.ReadCheck(ask, c))
}

func (s *Server) readRefund(ask string, c *wire.Check) error {
	return s.complete(c, wire.ReadRefund(ask, c))
}

// complete is the end of both.
func (s *Server) complete(c *wire.Check, err error) error {
	if err == nil && c.Key == "" {
		err = &limit.InputError{Field: "key", Problem: "is missing or empty; it must name who is limited"}
	}
	if err == nil && c.IP != "" {
		c.Request.IP, err = front.ParseIP("ip", c.IP)
		c.Request.IP = s.cfg.Network(c.Request.IP)
	}
	return err
}

func (s *Server) check(ctx context.Context, ask string) (wire.Out, error) {
	var c wire.Check
	if err := s.readCheck(ask, &c); err != nil {
		return nil, err
	}
	v, explanation, err := s.answer(ctx, &c)
	if err != nil {
		return nil, err
	}
	out := wire.AppendVerdict(make([]byte, 0, verdictBytes), &v, s.cfg.Now(), nil)
	return wire.AppendExplanation(out, explanation), nil
}

func (s *Server) answer(ctx context.Context, c *wire.Check) (v limit.Verdict, explanation []byte, err error) {
	if c.Explain {
		return s.cfg.Explainer.CheckExplained(ctx, c.Request)
	}
	v, err = s.cfg.Checker.Check(ctx, c.Request)
	return v, nil, err
}

func (s *Server) refund(ctx context.Context, ask string) (wire.Out, error) {
	var c wire.Check
	if err := s.readRefund(ask, &c); err != nil {
		return nil, err
	}
	v, err := s.giveRefund(ctx, &c)
	if err != nil {
		return nil, err
	}
	return wire.AppendVerdict(make([]byte, 0, verdictBytes), &v, s.cfg.Now(), nil), nil
}

// giveRefund says "unavailable" when no refund was sent, for the node is about to
// go: that is nobody's bug.
func (s *Server) giveRefund(ctx context.Context, c *wire.Check) (limit.Verdict, error) {
	v, err := s.cfg.Checker.Refund(ctx, c.Request)
	if err != nil && front.ProblemOf(err).Status == http.StatusInternalServerError {
		err = front.NewProblem(http.StatusServiceUnavailable, "", "the refund was not sent")
	}
	return v, err
}
