package peerrpc

import (
	"context"
	"errors"
	"net"
	"sync"
	"syscall"
)

// dialer makes the one connection of an attempt. It notes whether the peer's
// process refuses it: gRPC tells only that there is none.
type dialer struct {
	dial func(context.Context, string) (net.Conn, error)

	mu      sync.Mutex
	made    bool
	refused error
}

// errMade keeps gRPC from making another connection behind our back: who opens a
// stream of mail on one that has just ended would wait for it.
var errMade = errors.New("the connection has ended")

func (d *dialer) connect(ctx context.Context, addr string) (net.Conn, error) {
	if d.hasMade() {
		return nil, errMade
	}
	c, err := d.dial(ctx, addr)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.made = err == nil; isRefused(err) {
		d.refused = err
	}
	return c, err
}

func (d *dialer) hasMade() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.made
}

// reason is why there is no connection: the refusal, if there was one, else err.
func (d *dialer) reason(err error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.refused != nil {
		return d.refused
	}
	return err
}

// isRefused tells a process that is not there from one that does not answer.
func isRefused(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }

func dialTCP(ctx context.Context, addr string) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, "tcp", addr)
}
