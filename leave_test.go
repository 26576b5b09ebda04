package ringlimit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ringlimit/ringlimit/forward"
	"github.com/ringlimit/ringlimit/front"
	"github.com/ringlimit/ringlimit/limit"
	"github.com/ringlimit/ringlimit/membership"
	"github.com/ringlimit/ringlimit/owner"
	"github.com/ringlimit/ringlimit/ring"
)

// halfway is an owner that takes for the first of two limits, and of the second does
// not say before it is let go; its caller has gone by then.
type halfway struct {
	let chan struct{}

	mu       sync.Mutex
	refunded int64
}

func (h *halfway) Decide(_ context.Context, _, _ int64, c *owner.Call, v *limit.Verdict) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if c.Mode == limit.Refund {
		h.refunded += c.Cost
	}
	*v = limit.Verdict{Allowed: true}
	return nil
}

func (h *halfway) DecideGroup(_ context.Context, _, _ int64, calls []owner.Call, results []owner.Result) {
	<-h.let
	results[0] = owner.Result{Taken: true, Verdict: limit.Verdict{Allowed: true}}
	results[1] = owner.Result{Err: context.Canceled}
}

func (h *halfway) DecideFrame(int64, int64, []owner.Call, []owner.Result, owner.Late, uint64) {
	panic("no batch is asked for")
}

// What a request has taken that is under way when the node leaves is given back; one
// that does not end does not keep the node, and none begins any more.
func TestRefundsOfRequestsUnderWayWhenANodeLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		local := &halfway{let: make(chan struct{})}
		n := start(t, newMemory().config(t, 0, nil))
		defer stop(t, n)
		r := newRouter(forward.NewRouter(forward.Config{
			Self: "self", Local: local, Fallback: n.fallback, Now: n.clock.Now, Observer: n.metrics, Logger: n.cfg.Logger,
		}))
		rg, err := ring.New(ring.Defaults(), []membership.NodeID{"self"})
		if err != nil {
			t.Fatal(err)
		}
		r.Publish(rg, "self", n.way)
		rule, _ := limit.NewRule(limit.Spec{Algorithm: limit.FixedWindow, Limit: 10, Window: time.Hour})
		decide := func() error {
			calls := []owner.Call{
				{Charge: limit.Charge{Counter: []byte("a"), Rule: rule, Cost: 3}},
				{Charge: limit.Charge{Counter: []byte("b"), Rule: rule, Cost: 3}},
			}
			return r.DecideAll(t.Context(), calls, make([]Verdict, 2))
		}
		var request sync.WaitGroup
		request.Go(func() {
			if err := decide(); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
		synctest.Wait()
		began := time.Now()
		leaving, cancel := context.WithTimeout(t.Context(), goodbye)
		defer cancel()
		r.end(leaving)
		if took := time.Since(began); took != goodbye {
			t.Errorf("waited %v for a request that does not end, want %v", took, goodbye)
		}
		if err := decide(); !errors.Is(err, ErrLeft) {
			t.Errorf("a request after the end: %v", err)
		}
		time.AfterFunc(time.Second, func() { close(local.let) })
		began = time.Now()
		r.end(t.Context())
		if took := time.Since(began); took != time.Second || local.refunded != 3 {
			t.Errorf("ended after %v with %d given back; the request ended after 1 s and had taken 3", took, local.refunded)
		}
		request.Wait()
	})
}

// A door of a node that has left says that another one may be asked: it is no fault
// of the program, and is not logged as one.
func TestDoorsOfANodeThatHasLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		cfg := newMemory().config(t, 0, parseRules(t, `tiers: {default: [{name: all, algorithm: fixed_window, limit: 5, window: 1h}]}`))
		cfg.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelError}))
		n := start(t, cfg)
		stop(t, n)
		served := n.Middleware(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it lets a request pass") }))
		w := httptest.NewRecorder()
		if served.ServeHTTP(w, httptest.NewRequest("GET", "/", nil)); w.Code != http.StatusServiceUnavailable || log.Len() > 0 {
			t.Errorf("Middleware: %d %s; logged %q", w.Code, w.Body, &log)
		}
		if p := front.ProblemOf(fmt.Errorf("a refund: %w", ErrLeft)); p.Status != http.StatusServiceUnavailable {
			t.Errorf("ErrLeft is a %d", p.Status)
		}
	})
}
