package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
)

// Bounds on what a client may hold on to. A check's body has a bound of its own.
const (
	headerTimeout  = 5 * time.Second
	readTimeout    = 15 * time.Second
	writeTimeout   = 30 * time.Second // /v1/authorize adds what it waits for a queue
	profileTimeout = 6 * time.Minute  // admin: a CPU profile takes up to five
	idleTimeout    = 2 * time.Minute
	maxHeaderBytes = 64 << 10
	maxMessage     = 64 << 10    // of gRPC: health requests are a few bytes
	maxStreams     = 100         // of gRPC, a connection
	watchGrace     = time.Second // for gRPC streams to read their last message
)

// doors are the listeners of one node that face its users.
type doors struct {
	http, grpc, admin net.Listener
}

// openDoors takes every address, or none. It comes before the node joins: a
// port in use must not cost the cluster a member that comes and goes.
func openDoors(s *settings, from origins) (*doors, error) {
	d := &doors{}
	for _, door := range []struct {
		address
		at *net.Listener
	}{
		{address{"http", s.http}, &d.http},
		{address{"grpc", s.grpc}, &d.grpc},
		{address{"admin", s.admin}, &d.admin},
	} {
		l, err := net.Listen("tcp", door.address.address)
		if err != nil {
			d.close()
			return nil, from.unopened(door.setting, err)
		}
		*door.at = l
	}
	return d, nil
}

func (d *doors) close() {
	for _, l := range []net.Listener{d.http, d.grpc, d.admin} {
		if l != nil {
			l.Close()
		}
	}
}

// server is one door with somebody behind it.
type server interface {
	serve() error             // returns nil after stop
	stop(ctx context.Context) // lets requests finish, until ctx ends
}

type httpServer struct {
	*http.Server
	l net.Listener
}

func newHTTPServer(l net.Listener, h http.Handler, write time.Duration, log *slog.Logger) httpServer {
	return httpServer{l: l, Server: &http.Server{
		Handler:           h,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      write,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}}
}

func (s httpServer) serve() error {
	if err := s.Serve(s.l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func (s httpServer) stop(ctx context.Context) {
	if s.Shutdown(ctx) != nil {
		_ = s.Close() // what Shutdown could not end in time
	}
}

// grpcServer answers grpc.health.v1 about the whole server, named "".
type grpcServer struct {
	*grpc.Server
	health *health.Server
	l      net.Listener
}

func newGRPCServer(l net.Listener) grpcServer {
	s := grpcServer{
		l:      l,
		health: health.NewServer(),
		Server: grpc.NewServer(
			grpc.ConnectionTimeout(headerTimeout),
			grpc.MaxRecvMsgSize(maxMessage),
			grpc.MaxHeaderListSize(maxHeaderBytes),
			grpc.MaxConcurrentStreams(maxStreams),
			grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: idleTimeout}),
		),
	}
	s.setReady(false) // the library begins with "serving"
	healthpb.RegisterHealthServer(s.Server, s.health)
	return s
}

func (s grpcServer) setReady(ready bool) {
	status := healthpb.HealthCheckResponse_NOT_SERVING
	if ready {
		status = healthpb.HealthCheckResponse_SERVING
	}
	s.health.SetServingStatus("", status)
}

func (s grpcServer) serve() error {
	if err := s.Serve(s.l); !errors.Is(err, grpc.ErrServerStopped) {
		return err
	}
	return nil
}

// stop cuts off the streams that watch the health: they would never end
// themselves.
func (s grpcServer) stop(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, watchGrace)
	defer cancel()
	defer context.AfterFunc(ctx, s.Stop)()
	s.GracefulStop()
}
