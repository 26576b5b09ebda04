package peerrpc

import (
	"sync"

	"github.com/ringlimit/ringlimit/forward/peerrpc/peerpb"
)

// link is the state of the way to the peer.
type link uint8

const (
	connecting link = iota // checks wait, within their deadlines; little mail does
	up
	down // checks fail at once; mail is dropped
)

// session is one stream to the peer.
type session struct {
	mu     sync.Mutex // a frame may be answered before write returns, and close called
	stream sender
	groups bool // the peer's version knows groups and ages
}

// sender is the half of a gRPC stream that a session needs.
type sender interface {
	Send(*peerpb.Frame) error
	CloseSend() error
}

// write sends one packet. Its error says only that the stream is over: the
// stream's reader learns why, and fails what is in flight.
func (s *session) write(packet *peerpb.Frame) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.stream.Send(packet)
}

// close says that no more packets come.
func (s *session) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.stream.CloseSend() // never fails
}
