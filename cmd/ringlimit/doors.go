package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/ringlimit/ringlimit/front/grpcfront"
)

// Bounds on what a client may hold on to. A check's body has a bound of its own.
const (
	headerTimeout  = 5 * time.Second
	readTimeout    = 15 * time.Second
	writeTimeout   = 30 * time.Second // /v1/authorize adds what it waits for a queue
	profileTimeout = 6 * time.Minute  // admin: a CPU profile takes up to five
	idleTimeout    = 2 * time.Minute
	maxHeaderBytes = 64 << 10
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

// grpcServer is the gRPC door.
type grpcServer struct {
	*grpcfront.Server
	l net.Listener
}

func (s grpcServer) serve() error             { return s.Serve(s.l) }
func (s grpcServer) stop(ctx context.Context) { s.Stop(ctx) }
