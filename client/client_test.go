package client_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/ringlimit/ringlimit/limit"
)

func TestCheck(t *testing.T) {
	n := newNodes(t)
	n.start("a", perMinute(t, 3))
	c := n.client("a")
	for _, want := range []struct {
		allowed   bool
		remaining int64
	}{{true, 2}, {true, 1}, {true, 0}, {false, 0}} {
		v, err := c.Check(t.Context(), limit.Request{Key: "k"})
		if err != nil || v.Allowed != want.allowed || v.Remaining != want.remaining || v.Limit != 3 {
			t.Errorf("%+v, %v; want %v", v, err, want)
		}
		if v.Rule == nil || v.Rule.Name != "global" || v.Rule.Tier != "default" || !v.Rule.Jitter || v.Rule.WindowSeconds(0) != 60 || v.Source != limit.SourceForwarded {
			t.Errorf("rule %+v, source %v", v.Rule, v.Source)
		}
	}
	v, err := c.Refund(t.Context(), limit.Request{Key: "k", Cost: 2})
	if err != nil || !v.Allowed || v.Remaining != 2 {
		t.Errorf("a refund gives %+v, %v", v, err)
	}
	v, err = c.Check(t.Context(), limit.Request{Key: "k", Peek: true})
	if err != nil || !v.Allowed || v.Remaining != 2 {
		t.Errorf("a peek gives %+v, %v", v, err)
	}
}

func TestBadInput(t *testing.T) {
	n := newNodes(t)
	n.start("a", perMinute(t, 3))
	c := n.client("a")
	for field, req := range map[string]limit.Request{
		"key":  {},
		"cost": {Key: "k", Cost: -1},
		"tier": {Key: "k", Tier: "gold"}, // the node finds this out
	} {
		_, err := c.Check(t.Context(), req)
		bad, ok := errors.AsType[*limit.InputError](err)
		if !ok || bad.Field != field || bad.Problem == "" || bad.Error() == field+": "+field+": "+bad.Problem {
			t.Errorf("%s: %v", field, err)
		}
	}
}

// Many callers share a stream and each gets its own answer.
func TestManyCallers(t *testing.T) {
	n := newNodes(t)
	one := perMinute(t, 10)
	n.start("a", one)
	n.start("b", one)
	c := n.client("a", "b")
	var callers sync.WaitGroup
	for i := range 100 {
		callers.Go(func() {
			for k := range 12 {
				v, err := c.Check(t.Context(), key(i))
				if err != nil || v.Allowed != (k < 10) || v.Remaining != max(0, int64(9-k)) {
					t.Errorf("caller %d, check %d: %+v, %v", i, k, v, err)
				}
			}
		})
	}
	callers.Wait()
}
