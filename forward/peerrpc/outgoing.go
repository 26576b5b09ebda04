package peerrpc

import (
	"errors"
	"sync"
)

// outgoing is the half of a stream that a server writes, from several
// goroutines. The stream is gRPC's again when its handler returns, which
// therefore has to call end first.
type outgoing[T any] struct {
	stream interface{ Send(*T) error }

	mu    sync.Mutex
	ended bool
}

var errEnded = errors.New("the stream has ended")

// divert sends what follows on another stream.
func (o *outgoing[T]) divert(to interface{ Send(*T) error }) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.stream = to
}

// send may be followed by a change of the message: gRPC has encoded it when Send
// returns, and no stats handler is installed that would look at it later.
func (o *outgoing[T]) send(m *T) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ended {
		return errEnded
	}
	return o.stream.Send(m)
}

// end waits for what is being sent, and forbids to send more.
func (o *outgoing[T]) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ended = true
}
