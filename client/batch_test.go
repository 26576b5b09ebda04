package client_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ringlimit/ringlimit/client"
	"github.com/ringlimit/ringlimit/limit"
)

func TestCheckBatch(t *testing.T) {
	n := newNodes(t)
	n.start("a", perMinute(t, 2))
	c := n.client("a")
	got, err := c.CheckBatch(t.Context(), []limit.Request{{Key: "k"}, {}, {Key: "k"}, {Key: "x", Tier: "gold"}, {Key: "k"}})
	if err != nil || len(got) != 5 {
		t.Fatalf("%v, %v", got, err)
	}
	for i, remaining := range map[int]int64{0: 1, 2: 0, 4: 0} {
		v := got[i].Verdict
		if got[i].Err != nil || v.Remaining != remaining || v.Allowed != (i < 4) || v.Rule == nil || v.Rule.WindowSeconds(0) != 60 {
			t.Errorf("check %d: %+v", i, got[i])
		}
	}
	for i, field := range map[int]string{1: "key", 3: "tier"} {
		if bad, ok := errors.AsType[*limit.InputError](got[i].Err); !ok || bad.Field != field {
			t.Errorf("check %d: %v", i, got[i].Err)
		}
	}
	if _, err := c.CheckBatch(t.Context(), make([]limit.Request, 1001)); err == nil {
		t.Error("1,001 checks are taken")
	}
}

func TestCheckBatchFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNodes(t)
		counters := perMinute(t, 2)
		open := gate(counters)
		defer open()
		n.start("a", counters)
		c := n.client("a")
		slow := []limit.Request{{Key: "slow"}}
		began := time.Now()
		if _, err := c.CheckBatch(t.Context(), slow); !errors.Is(err, client.ErrTimeout) || time.Since(began) != time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := c.CheckBatch(ctx, slow); !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled: %v", err)
		}
		done := make(chan error)
		go func() {
			_, err := c.CheckBatch(t.Context(), slow)
			done <- err
		}()
		synctest.Wait()
		n.cut("a")
		if err := <-done; !errors.Is(err, client.ErrLost) {
			t.Errorf("broken: %v", err)
		}
		time.Sleep(time.Second)
		if _, err := c.CheckBatch(t.Context(), slow); !errors.Is(err, client.ErrUnavailable) {
			t.Errorf("without a node: %v", err)
		}
	})
}
