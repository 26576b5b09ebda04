package main

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"

	"github.com/ringlimit/ringlimit"
	"github.com/ringlimit/ringlimit/front"
	"github.com/ringlimit/ringlimit/limit"
	"github.com/ringlimit/ringlimit/rules"
)

// standIn is a node to its doors, which open before it: while it joins, probes
// must find the process alive, and not ready.
type standIn struct {
	node     atomic.Pointer[ringlimit.Node]
	draining atomic.Bool
}

// Without CheckAll the doors would ask for each check of a batch by itself.
var _ front.BatchChecker = (*standIn)(nil)

var (
	errJoining  = errors.New("joining")
	errDraining = errors.New("draining")
)

// ready says why /readyz is 503, or nil.
func (s *standIn) ready() error {
	n := s.node.Load()
	switch {
	case s.draining.Load():
		return errDraining
	case n == nil:
		return errJoining
	}
	return n.Ready()
}

func (s *standIn) get() (*ringlimit.Node, error) {
	if n := s.node.Load(); n != nil {
		return n, nil
	}
	return nil, front.NewProblem(http.StatusServiceUnavailable, "", "the node is joining its cluster; ask again, or ask another node")
}

// Check is front.Checker's.
func (s *standIn) Check(ctx context.Context, req limit.Request) (limit.Verdict, error) {
	n, err := s.get()
	if err != nil {
		return limit.Verdict{}, err
	}
	v, err := n.Check(ctx, req)
	return v, gone(err)
}

// CheckAll is front.BatchChecker's.
func (s *standIn) CheckAll(ctx context.Context, reqs []limit.Request, answer func(i int, v *limit.Verdict, err error)) {
	n, err := s.get()
	if err != nil {
		for i := range reqs {
			answer(i, nil, err)
		}
		return
	}
	n.CheckAll(ctx, reqs, func(i int, v *limit.Verdict, err error) { answer(i, v, gone(err)) })
}

// Refund is front.Checker's.
func (s *standIn) Refund(ctx context.Context, req limit.Request) (limit.Verdict, error) {
	n, err := s.get()
	if err != nil {
		return limit.Verdict{}, err
	}
	v, err := n.Refund(ctx, req)
	return v, gone(err)
}

// gone says of a node that has left that another one can be asked.
func gone(err error) error {
	if errors.Is(err, ringlimit.ErrLeft) {
		return front.NewProblem(http.StatusServiceUnavailable, "", "the node has left its cluster; ask another node")
	}
	return err
}

// CheckExplained is both doors' Explainer's.
func (s *standIn) CheckExplained(ctx context.Context, req limit.Request) (limit.Verdict, []byte, error) {
	n, err := s.get()
	if err != nil {
		return limit.Verdict{}, nil, err
	}
	v, explanation, err := n.CheckExplained(ctx, req)
	return v, explanation, gone(err)
}

// inForce is the rules as the HTTP door shows them: the node's, and until there is
// one those that it will begin with.
type inForce struct {
	*standIn
	first *rules.Set
}

func (f inForce) rules() *rules.Set {
	if n := f.node.Load(); n != nil {
		return n.Rules()
	}
	return f.first
}

// LimitsJSON is httpfront.Limits'.
func (f inForce) LimitsJSON() []byte { return f.rules().LimitsJSON() }

// TierJSON is httpfront.Limits'.
func (f inForce) TierJSON(tier string) ([]byte, bool) { return f.rules().TierJSON(tier) }
