package peerrpc

import (
	"context"
	"sync"

	"google.golang.org/grpc"
)

// line is the connection that a conn has at the moment, for calls that wait for
// one.
type line struct {
	mu      sync.Mutex
	cc      *grpc.ClientConn // nil: none
	changed chan struct{}    // closed with the next set; nil: nobody waits
}

func (l *line) set(cc *grpc.ClientConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cc = cc
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
}

// get waits for a connection until ctx ends. It may break at any moment.
func (l *line) get(ctx context.Context) (*grpc.ClientConn, error) {
	for {
		cc, changed := l.look()
		if cc != nil {
			return cc, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (l *line) look() (*grpc.ClientConn, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.changed == nil {
		l.changed = make(chan struct{})
	}
	return l.cc, l.changed
}
