package grpcfront

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"

	ringlimitv1 "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/front"
	"github.com/ringlimit/ringlimit/internal/wire"
	"github.com/ringlimit/ringlimit/limit"
)

func TestHealth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, cc := serve(t, config(limited(t, 2)))
		h := healthpb.NewHealthClient(cc)
		for _, ready := range []bool{false, true, false} { // the library would begin with "serving"
			if ready {
				s.SetReady(ready)
			}
			want := healthpb.HealthCheckResponse_NOT_SERVING
			if ready {
				want = healthpb.HealthCheckResponse_SERVING
			}
			for _, service := range []string{"", serviceName} {
				got, err := h.Check(t.Context(), &healthpb.HealthCheckRequest{Service: service})
				if err != nil || got.Status != want {
					t.Errorf("ready %v: %q is %v, %v", ready, service, got, err)
				}
			}
			s.SetReady(false)
		}
		// One who watches hears of the stop, and does not hold it up.
		s.SetReady(true)
		watch, err := h.Watch(t.Context(), &healthpb.HealthCheckRequest{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := watch.Recv(); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		s.Stop(context.Background())
		if got, err := watch.Recv(); err != nil || got.Status != healthpb.HealthCheckResponse_NOT_SERVING {
			t.Errorf("the watch reads %v, %v", got, err)
		}
		if took := time.Since(began); took != watchGrace {
			t.Errorf("the stop took %v", took)
		}
	})
}

func TestReflection(t *testing.T) {
	_, cc := serve(t, config(limited(t, 2)))
	stream, err := reflectionpb.NewServerReflectionClient(cc).ServerReflectionInfo(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, ask := range []*reflectionpb.ServerReflectionRequest{
		{MessageRequest: &reflectionpb.ServerReflectionRequest_ListServices{}},
		{MessageRequest: &reflectionpb.ServerReflectionRequest_FileContainingSymbol{FileContainingSymbol: serviceName}},
	} {
		if err := stream.Send(ask); err != nil {
			t.Fatal(err)
		}
		got, err := stream.Recv()
		if err != nil || got.GetErrorResponse() != nil || !strings.Contains(got.String(), "RateLimiter") {
			t.Errorf("%v: %v, %v", ask, got, err)
		}
	}
	_ = stream.CloseSend()
}

// What is not UTF-8 the generated code would not even send.
func TestInvalidUTF8(t *testing.T) {
	_, cc := serve(t, config(limited(t, 2)))
	for ask, field := range map[string]string{
		"\x0a\x01\xff":                              "key",
		"\x0a\x01k\x12\x01\xff":                     "route",
		"\x0a\x01k\x22\x01\xff":                     "tier",
		"\x0a\x01k\x32\x06\x0a\x01a\x12\x01\xff":    "attributes.a",
		"\x0a\x01":                                  "request",
		"\x0a\x01k\x32\x06\x0a\x01\xff\x12\x01\xff": "attributes",
	} {
		message := wire.Out(ask)
		err := cc.Invoke(t.Context(), "/"+serviceName+"/Check", &message, new(wire.In), grpc.ForceCodecV2(wire.Codec()))
		if got, _ := violation(t, err); got != field {
			t.Errorf("%q: complains of %s, want %s: %v", ask, got, field, err)
		}
	}
}

// An address stands for its network, as at the other doors.
func TestNetwork(t *testing.T) {
	counters := limited(t, 2)
	cfg := config(counters)
	cfg.Network = func(a netip.Addr) netip.Addr {
		p, _ := a.Prefix(64)
		return p.Addr()
	}
	c := client(t, cfg)
	if _, err := c.Check(t.Context(), &ringlimitv1.CheckRequest{Key: "a", Ip: "2001:db8::1"}); err != nil {
		t.Fatal(err)
	}
	if got := counters.requests()[0].IP.String(); got != "2001:db8::" {
		t.Errorf("asked for %s", got)
	}
}

func TestFailures(t *testing.T) {
	for name, test := range map[string]struct {
		err           error
		check, refund codes.Code
		says          string
	}{
		"joining":   {front.NewProblem(503, "", "the node is joining"), codes.Unavailable, codes.Unavailable, "joining"},
		"a bug":     {errors.New("the password is 1234"), codes.Internal, codes.Unavailable, ""},
		"cancelled": {context.Canceled, codes.Canceled, codes.Canceled, ""},
		"too late":  {context.DeadlineExceeded, codes.DeadlineExceeded, codes.DeadlineExceeded, ""},
		"lost":      {&limit.RefundError{Returned: 1, Of: 2, Err: context.DeadlineExceeded}, codes.FailedPrecondition, codes.FailedPrecondition, "do not send"},
	} {
		var log strings.Builder
		counters := limited(t, 2)
		counters.before = func(limit.Request) error { return test.err }
		cfg := config(counters)
		cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
		c := client(t, cfg)
		_, err := c.Check(t.Context(), &ringlimitv1.CheckRequest{Key: "a"})
		if status.Code(err) != test.check || !strings.Contains(err.Error(), test.says) || strings.Contains(err.Error(), "1234") {
			t.Errorf("%s: %v", name, err)
		}
		if logged := strings.Contains(log.String(), "1234"); logged != (test.check == codes.Internal) {
			t.Errorf("%s: logged %q", name, &log)
		}
		if _, err := c.Refund(t.Context(), &ringlimitv1.RefundRequest{Key: "a"}); status.Code(err) != test.refund {
			t.Errorf("%s: a refund gives %v", name, err)
		}
	}
}

// A caller who gives up is not waited for.
func TestCallerGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		counters := limited(t, 2)
		g := gate{[]string{"slow"}, make(chan struct{})}
		counters.before = g.pass
		c := client(t, config(counters))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := c.Check(ctx, &ringlimitv1.CheckRequest{Key: "slow"})
		if status.Code(err) != codes.DeadlineExceeded {
			t.Errorf("%v", err)
		}
		close(g.open)
	})
}
