// Package grpcfront is the gRPC door: the service ringlimit.v1.RateLimiter of
// api/ringlimit/v1, grpc.health.v1 and reflection.
//
// The life of a call on a stream:
//
//	1  stream.read     reads a message and queues it (stream.go)
//	2  asked.check     asks the Checker for all its checks, on a worker (message.go, workers.go)
//	3  replies.add     puts each verdict into the open message, as it comes (replies.go)
//	4  replies.send    who finds nobody sending sends it, with what came meanwhile
//
// A call that has to wait, for its owner or for a copy, holds up no other: its message
// keeps one worker, of which there are many. Refunds go to workers one by one.
package grpcfront

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"

	"github.com/ringlimit/ringlimit/front"
	"github.com/ringlimit/ringlimit/internal/wire"
	"github.com/ringlimit/ringlimit/limit"
)

// Explainer checks as a front.Checker does, and says by the same rules which there
// are for the request, and which of them apply, as JSON.
type Explainer interface {
	CheckExplained(ctx context.Context, req limit.Request) (v limit.Verdict, explanation []byte, err error)
}

// Config is what the door needs. Checker and Explainer are required.
type Config struct {
	// Checker answers within a time of its own: what was read from a stream is
	// judged to its end, also when the stream breaks.
	Checker   front.Checker
	Explainer Explainer
	Ready     func() error                // why no stream may begin here; nil: one always may
	Network   func(netip.Addr) netip.Addr // whom an address stands for; nil: itself
	Now       func() time.Time            // nil: time.Now
	Logger    *slog.Logger                // what a client is not told; nil: nowhere
	Options   []grpc.ServerOption         // added last: credentials, stats handlers
}

func (c Config) withDefaults() Config {
	if c.Ready == nil {
		c.Ready = func() error { return nil }
	}
	if c.Network == nil {
		c.Network = func(a netip.Addr) netip.Addr { return a }
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// Bounds on what a client may hold on to.
const (
	headerTimeout  = 5 * time.Second
	idleTimeout    = 2 * time.Minute // of a connection without calls
	maxHeaderBytes = 64 << 10
	maxConcurrent  = 1000             // calls of one connection, a stream being one
	pingAfter      = 30 * time.Second // of a client's silence
	pingTimeout    = 5 * time.Second
	minPings       = 5 * time.Second // clients may ping as often
	watchGrace     = time.Second     // for those who watch the health to read their last message
	// Windows that never fill, of fixed size: gRPC's dynamic ones cost a probe for
	// each message.
	window = 1 << 20
)

func (c *Config) options() []grpc.ServerOption {
	return append([]grpc.ServerOption{
		grpc.ForceServerCodecV2(wire.Codec()),
		grpc.ConnectionTimeout(headerTimeout),
		grpc.MaxRecvMsgSize(wire.MaxBatchBytes),
		grpc.MaxHeaderListSize(maxHeaderBytes),
		grpc.MaxConcurrentStreams(maxConcurrent),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: idleTimeout, Time: pingAfter, Timeout: pingTimeout}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: minPings, PermitWithoutStream: true}),
		grpc.StaticStreamWindowSize(window),
		grpc.StaticConnWindowSize(window),
		grpc.WaitForHandlers(true), // who stops a server may free what it uses
	}, c.Options...)
}

// Server is the door. Make one with New.
type Server struct {
	cfg    Config
	grpc   *grpc.Server
	health *health.Server
	calls  calls

	messages messages
}

// New makes a door that listens to nobody yet. Its health is NOT_SERVING.
func New(cfg Config) *Server {
	s := &Server{cfg: cfg.withDefaults(), health: health.NewServer()}
	s.grpc = grpc.NewServer(s.cfg.options()...)
	s.grpc.RegisterService(s.service(), s)
	healthpb.RegisterHealthServer(s.grpc, s.health)
	reflection.Register(s.grpc)
	s.SetReady(false) // the library begins with "serving"
	return s
}

// SetReady says to those who ask for the health, of the server or of the service,
// whether the node should be sent requests. It answers them in any case.
func (s *Server) SetReady(ready bool) {
	status := healthpb.HealthCheckResponse_NOT_SERVING
	if ready {
		status = healthpb.HealthCheckResponse_SERVING
	}
	s.health.SetServingStatus("", status)
	s.health.SetServingStatus(serviceName, status)
}

// Serve answers on l until Stop, and then returns nil. It closes l.
func (s *Server) Serve(l net.Listener) error {
	if err := s.grpc.Serve(l); !errors.Is(err, grpc.ErrServerStopped) {
		return err
	}
	return nil
}

// Stop says farewell on all streams of checks, answers what was asked, and returns
// when every goroutine has ended. It cuts off those who watch the health, which would
// never end themselves, and when ctx ends what is left.
func (s *Server) Stop(ctx context.Context) {
	s.health.Shutdown()
	s.calls.farewell()
	ctx, cut := context.WithCancel(ctx)
	var ending sync.WaitGroup
	ending.Go(func() {
		s.calls.ended(ctx)
		cut()
	})
	ending.Go(func() {
		<-ctx.Done()
		s.grpc.Stop()
	})
	s.grpc.GracefulStop()
	cut()
	ending.Wait()
}
