package grpcfront

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	ringlimitv1 "github.com/ringlimit/ringlimit/api/ringlimit/v1"
)

// A stop says farewell on the streams. What was asked before is answered, so is what
// was on its way, and the stream ends in order.
func TestFarewell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		counters := limited(t, 100)
		g := gate{[]string{"slow"}, make(chan struct{})}
		counters.before = g.pass
		server, cc := serve(t, config(counters))
		s := converse(t, ringlimitv1.NewRateLimiterClient(cc))
		s.ask(1, "slow")
		synctest.Wait()
		stopped := make(chan struct{})
		go func() { server.Stop(context.Background()); close(stopped) }()
		for !s.farewell {
			if err := s.hear(); err != nil {
				t.Fatal(err)
			}
		}
		s.ask(2, "a")
		s.verdict(2)
		close(g.open)
		s.verdict(1)
		s.end()
		<-stopped
	})
}

// A client that does not go is cut off when the time for the stop is over.
func TestStopDoesNotWaitForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, cc := serve(t, config(limited(t, 2)))
		s := converse(t, ringlimitv1.NewRateLimiterClient(cc))
		s.ask(1, "a")
		s.verdict(1)
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		defer cancel()
		began := time.Now()
		server.Stop(ctx)
		if took := time.Since(began); took != 3*time.Second {
			t.Errorf("took %v", took)
		}
	})
}

// Where a node should not be sent requests it takes no new streams; unary calls it
// answers as long as it can.
func TestUnready(t *testing.T) {
	cfg := config(limited(t, 2))
	cfg.Ready = func() error { return errors.New("draining") }
	c := client(t, cfg)
	stream, err := c.CheckStream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "draining") {
		t.Errorf("a stream gives %v", err)
	}
	if _, err := c.Check(t.Context(), &ringlimitv1.CheckRequest{Key: "a"}); err != nil {
		t.Error(err)
	}
}
