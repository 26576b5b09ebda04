package client

import (
	"sync"

	"google.golang.org/grpc"
)

// line is the connection that a node has at the moment, for calls besides the
// stream. It is closed when nobody uses it any more: a node that says farewell
// still answers what it was asked.
type line struct {
	mu sync.Mutex
	cc *shared // nil: none
}

type shared struct {
	*grpc.ClientConn
	users int // the line itself among them
}

func (l *line) set(cc *grpc.ClientConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cc = &shared{cc, 1}
}

// get is nil when there is no connection. Else it has to be given back.
func (l *line) get() *shared {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cc != nil {
		l.cc.users++
	}
	return l.cc
}

func (l *line) put(cc *shared) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if cc.users--; cc.users == 0 {
		_ = cc.Close() // fails only when called twice
	}
}

// hangUp ends what set began.
func (l *line) hangUp() {
	l.mu.Lock()
	cc := l.cc
	l.cc = nil
	l.mu.Unlock()
	l.put(cc)
}
