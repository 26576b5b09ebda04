package client

import (
	"sync"

	"github.com/ringlimit/ringlimit/internal/wire"
)

// session is one stream to a node.
type session struct {
	mu     sync.Mutex // leaders may overlap; a stream takes one message at a time
	stream sender
}

// sender is the half of a gRPC stream that a session needs.
type sender interface {
	SendMsg(m any) error
	CloseSend() error
}

// write sends one packet. Its error says only that the stream is over: the stream's
// reader learns why, and fails what is in flight.
func (s *session) write(packet *wire.Out) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.stream.SendMsg(packet)
}

// close says that no more packets come.
func (s *session) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.stream.CloseSend() // never fails
}
