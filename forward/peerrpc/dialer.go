package peerrpc

import (
	"context"
	"errors"
	"net"
	"sync"
	"syscall"
)

// dialer notes whether the peer's process refuses connections: gRPC tells only
// that there is none.
type dialer struct {
	dial func(context.Context, string) (net.Conn, error)

	mu      sync.Mutex
	refused error
}

func (d *dialer) connect(ctx context.Context, addr string) (net.Conn, error) {
	c, err := d.dial(ctx, addr)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.refused = nil; isRefused(err) {
		d.refused = err
	}
	return c, err
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
