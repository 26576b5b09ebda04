package ringlimit

import (
	"context"
	"encoding/json"

	"github.com/ringlimit/ringlimit/limit"
	"github.com/ringlimit/ringlimit/membership"
	"github.com/ringlimit/ringlimit/owner"
	"github.com/ringlimit/ringlimit/rules"
)

// Check judges req by the rules that match it and, unless req.Peek is set, charges
// them: all, or none if one refuses. A denial is a verdict, not an error. The
// verdict is that of the limit that binds; Verdict.Limits has the others. Errors
// are *limit.InputError for a bad request, which changes no counter,
// context.Canceled, and ErrLeft. A deadline of ctx that passes is answered by the
// rule's on_failure.
func (n *Node) Check(ctx context.Context, req Request) (v Verdict, err error) {
	err = n.charge(ctx, n.Rules(), &req, modeOf(&req), &v)
	return v, err
}

func modeOf(req *Request) limit.Mode {
	if req.Peek {
		return limit.Peek
	}
	return limit.Take
}

// CheckExplained is Check, and says by the same rules what ExplainJSON says: between
// two calls they may change. What cannot be explained is not charged.
func (n *Node) CheckExplained(ctx context.Context, req Request) (Verdict, []byte, error) {
	set := n.Rules()
	explanation, err := explain(set, &req)
	if err != nil {
		return Verdict{}, nil, err
	}
	var v Verdict
	err = n.charge(ctx, set, &req, modeOf(&req), &v)
	return v, explanation, err
}

// Refund gives back req.Cost of what an earlier Check took, to each limit of the
// request and never above it. It is sent once. If an owner cannot be asked, its
// refund is lost, and a *limit.RefundError says so, and how many limits were given
// it: do not send it again, for those would get it twice. What a fallback admitted
// was never charged at the owner: give back only what a verdict of the owner took
// (see Verdict.Source). So it is with a limit in shadow that has refused: it has
// charged nothing, and its Verdict in Verdict.Limits of the check says so; a Refund
// gives it back the cost all the same, so that it counts too little from then on,
// which refuses nobody.
func (n *Node) Refund(ctx context.Context, req Request) (v Verdict, err error) {
	err = n.charge(ctx, n.Rules(), &req, limit.Refund, &v)
	return v, err
}

// charge answers req into v. Both stay on the caller's stack: what is behind an
// interface, and so on the heap, is the scratch.
func (n *Node) charge(ctx context.Context, set *rules.Set, req *Request, mode limit.Mode, v *Verdict) error {
	if n.gone.Load() {
		return ErrLeft
	}
	s := n.scratch.Get().(*scratch)
	s.req = *req
	err := n.judge(ctx, set, s, mode)
	if err == nil {
		n.metrics.decided(&s.verdict, s.stripe)
		*v = s.verdict
	}
	n.release(s)
	return err
}

// release keeps the room of the counters' names and lets go of what is the
// caller's, and of rules, which may change.
func (n *Node) release(s *scratch) {
	s.req = Request{}
	s.verdict = Verdict{}
	s.call = owner.Call{}
	if len(s.calls) > 0 {
		clear(s.calls)
		s.calls = s.calls[:0]
	}
	s.matches.Forget()
	n.scratch.Put(s)
}

// judge answers s.req into s.verdict.
func (n *Node) judge(ctx context.Context, set *rules.Set, s *scratch, mode limit.Mode) error {
	if err := s.req.Validate(); err != nil {
		return err
	}
	if err := set.Match(&s.req, &s.matches); err != nil {
		return err
	}
	switch winners := s.matches.Winners; {
	case len(winners) == 0:
		s.verdict = Verdict{Allowed: true}
		return nil
	case len(winners) == 1 && !winners[0].Rule.Shadow:
		return n.judgeOne(ctx, s, &winners[0], mode)
	}
	return n.judgeAll(ctx, s, mode)
}

func (n *Node) judgeOne(ctx context.Context, s *scratch, w *rules.Winner, mode limit.Mode) error {
	if w.Missing != "" {
		s.verdict = lacking(w)
		return nil
	}
	s.charge(&s.call.Charge, w, mode)
	return n.router.Decide(ctx, &s.call, &s.verdict)
}

// judgeAll asks for several limits, or for one in shadow. A request that lacks what
// one of them counts by is refused, and only shown the others.
func (n *Node) judgeAll(ctx context.Context, s *scratch, mode limit.Mode) error {
	winners, refused := s.matches.Winners, false
	for i := range winners {
		if w := &winners[i]; w.Missing == "" {
			s.calls = append(s.calls, owner.Call{})
			s.charge(&s.calls[len(s.calls)-1].Charge, w, mode)
		} else {
			refused = refused || !w.Rule.Shadow
		}
	}
	limits := make([]Verdict, len(winners))
	asked := limits[len(winners)-len(s.calls):]
	if err := n.decideAll(ctx, s.calls, asked, refused); err != nil {
		return err
	}
	insertLacking(limits, asked, winners)
	s.verdict = limit.Combine(limits)
	return nil
}

func (n *Node) decideAll(ctx context.Context, calls []owner.Call, verdicts []Verdict, refused bool) error {
	if refused {
		return n.router.ViewAll(ctx, calls, verdicts)
	}
	return n.router.DecideAll(ctx, calls, verdicts)
}

// insertLacking brings the verdicts asked for, which are the end of limits, to the
// places of their winners, and gives one to each of the others.
func insertLacking(limits, asked []Verdict, winners []rules.Winner) {
	for i := range winners {
		if w := &winners[i]; w.Missing != "" {
			limits[i] = lacking(w)
		} else {
			limits[i], asked = asked[0], asked[1:]
		}
	}
}

// charge fills in a charge that is empty. To copy one that was just made would cost
// as much as to make three: the processor waits for what it has not stored yet.
func (s *scratch) charge(c *limit.Charge, w *rules.Winner, mode limit.Mode) {
	c.Counter, c.Rule, c.Cost, c.Mode = w.Counter, w.Rule, s.req.Units(), mode
}

// lacking is the verdict of a limit whose counter the request does not name.
func lacking(w *rules.Winner) Verdict {
	return Verdict{Rule: w.Rule, Reason: limit.MissingDimension, Limit: w.Rule.Capacity()}
}

// Location says where a request's counter lives and what is left of it. Of several
// limits it is the one that binds.
type Location struct {
	Partition int
	Owner     membership.NodeID // empty while no node serves, and when there is no counter
	Verdict   Verdict           // of a peek; Verdict.Rule is nil when no rule limits the request
}

// Locate finds the owner of req's counter and asks it what is left, without
// taking anything.
func (n *Node) Locate(ctx context.Context, req Request) (Location, error) {
	if n.gone.Load() {
		return Location{}, ErrLeft
	}
	s := n.scratch.Get().(*scratch)
	defer n.release(s)
	s.req = req
	if err := n.judge(ctx, n.Rules(), s, limit.Peek); err != nil {
		return Location{}, err
	}
	at := Location{Verdict: s.verdict}
	for _, w := range s.matches.Winners {
		if w.Rule == at.Verdict.Rule && w.Missing == "" {
			at.Partition, at.Owner, _ = n.router.Locate(w.Counter)
		}
	}
	return at, nil
}

// ExplainJSON says of each rule that could apply to req whether it does, and why
// not: the list that a check with "explain" shows. See rules.Consideration.
func (n *Node) ExplainJSON(req Request) ([]byte, error) { return explain(n.Rules(), &req) }

func explain(set *rules.Set, req *Request) ([]byte, error) {
	if err := req.Validate(); err != nil {
		return nil, err
	}
	x, err := set.Explain(req)
	if err != nil {
		return nil, err
	}
	return json.Marshal(x.Rules)
}

// LimitsJSON is the rules in force, as GET /v1/limits shows them.
func (n *Node) LimitsJSON() []byte { return n.Rules().LimitsJSON() }

// TierJSON is the rules of one tier, as GET /v1/limits/{tier} shows them; false
// when there is no such tier.
func (n *Node) TierJSON(tier string) ([]byte, bool) { return n.Rules().TierJSON(tier) }
