package ringlimit

import (
	"context"
	"errors"

	"github.com/ringlimit/ringlimit/limit"
	"github.com/ringlimit/ringlimit/membership"
	"github.com/ringlimit/ringlimit/owner"
	"github.com/ringlimit/ringlimit/rules"
)

// Check judges req by the rule that matches it and, unless req.Peek is set,
// charges it. A denial is a verdict, not an error. Errors are *limit.InputError
// for a bad request, which changes no counter, context.Canceled, and ErrLeft. A
// deadline of ctx that passes is answered by the rule's on_failure.
func (n *Node) Check(ctx context.Context, req Request) (Verdict, error) {
	mode := limit.Take
	if req.Peek {
		mode = limit.Peek
	}
	return n.charge(ctx, req, mode)
}

// Refund gives back req.Cost of what an earlier Check took, never above the
// limit. It is sent once: if the owner cannot be asked, the refund is lost and
// an error says so. What a fallback admitted was never charged at the owner: give
// back only what a verdict of the owner took (see Verdict.Source).
func (n *Node) Refund(ctx context.Context, req Request) (Verdict, error) {
	return n.charge(ctx, req, limit.Refund)
}

func (n *Node) charge(ctx context.Context, req Request, mode limit.Mode) (Verdict, error) {
	if n.gone.Load() {
		return Verdict{}, ErrLeft
	}
	s := n.scratch.Get().(*scratch)
	defer n.release(s)
	s.req = req
	w, err := n.match(&s.req, &s.matches)
	if err != nil {
		return Verdict{}, err
	}
	if v, settled := settled(&w); settled {
		n.metrics.decided(&v)
		return v, nil
	}
	s.call.Charge = limit.Charge{Counter: w.Counter, Rule: w.Rule, Cost: s.req.Units(), Mode: mode}
	if err := n.router.Decide(ctx, &s.call, &s.verdict); err != nil {
		return Verdict{}, err
	}
	n.metrics.decided(&s.verdict)
	return s.verdict, nil
}

// release keeps the room of the counter's name and lets go of what is the
// caller's.
func (n *Node) release(s *scratch) {
	s.req = Request{}
	n.scratch.Put(s)
}

var errSeveralLimits = errors.New("several limits on one request")

// match validates req and finds the limit that judges it; none is the zero
// Winner.
func (n *Node) match(req *Request, m *rules.Matches) (rules.Winner, error) {
	if err := req.Validate(); err != nil {
		return rules.Winner{}, err
	}
	if err := n.Rules().Match(req, m); err != nil {
		return rules.Winner{}, err
	}
	switch len(m.Winners) {
	case 0:
		return rules.Winner{}, nil
	case 1:
		return m.Winners[0], nil
	}
	return rules.Winner{}, errSeveralLimits
}

// settled is the verdict of a match that leaves no counter to ask: no rule
// applies, or the request lacks what the rule counts by.
func settled(w *rules.Winner) (v Verdict, ok bool) {
	switch {
	case w.Rule == nil:
		return Verdict{Allowed: true}, true
	case w.Missing != "":
		return Verdict{Rule: w.Rule, Reason: limit.MissingDimension, Limit: w.Rule.Capacity()}, true
	}
	return Verdict{}, false
}

// Location says where a request's counter lives and what is left of it.
type Location struct {
	Partition int
	Owner     membership.NodeID // empty while no node serves, and when there is no counter
	Verdict   Verdict           // of a peek; Verdict.Rule is nil when no rule matches
}

// Locate finds the owner of req's counter and asks it what is left, without
// taking anything.
func (n *Node) Locate(ctx context.Context, req Request) (Location, error) {
	if n.gone.Load() {
		return Location{}, ErrLeft
	}
	w, err := n.match(&req, new(rules.Matches))
	if err != nil {
		return Location{}, err
	}
	if v, settled := settled(&w); settled {
		return Location{Verdict: v}, nil
	}
	partition, id, _ := n.router.Locate(w.Counter)
	at := Location{Partition: partition, Owner: id}
	err = n.router.Decide(ctx, &owner.Call{Charge: limit.Charge{
		Counter: w.Counter, Rule: w.Rule, Cost: req.Units(), Mode: limit.Peek,
	}}, &at.Verdict)
	return at, err
}

// LimitsJSON is the rules in force, as GET /v1/limits shows them.
func (n *Node) LimitsJSON() []byte { return n.Rules().LimitsJSON() }

// TierJSON is the rules of one tier, as GET /v1/limits/{tier} shows them; false
// when there is no such tier.
func (n *Node) TierJSON(tier string) ([]byte, bool) { return n.Rules().TierJSON(tier) }
