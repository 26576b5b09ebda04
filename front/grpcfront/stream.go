package grpcfront

import (
	"context"
	"io"
	"net/http"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/ringlimit/ringlimit/front"
	"github.com/ringlimit/ringlimit/internal/wire"
	"github.com/ringlimit/ringlimit/limit"
)

// stream serves one CheckStream.
type stream struct {
	server  *Server
	in      grpc.ServerStream
	ctx     context.Context // of the calls; it does not end with the stream
	workers *workers
	replies *replies
}

func (s *Server) checkStream(in grpc.ServerStream) error {
	if err := s.cfg.Ready(); err != nil {
		return s.failure(front.NewProblem(http.StatusServiceUnavailable, "", "the node takes no new streams: "+err.Error())).status()
	}
	s.calls.begin()
	defer s.calls.end()
	if err := in.SendHeader(metadata.MD{}); err != nil { // the client's sign that it may begin
		return err
	}
	st := &stream{server: s, in: in, ctx: context.WithoutCancel(in.Context()), replies: newReplies(in, s.cfg.Now)}
	st.workers = newWorkers()
	if s.calls.register(st) {
		st.replies.farewell()
	}
	defer s.calls.unregister(st)
	return st.run()
}

// run reads to the stream's end, and answers what it has read. When the client is
// gone, what nobody has begun to judge is not judged.
func (s *stream) run() error {
	err := s.read()
	s.workers.end(err == nil)
	s.replies.end()
	return err
}

// read returns nil when the client has ended its side in order.
func (s *stream) read() error {
	var text wire.In
	for {
		switch err := s.in.RecvMsg(&text); {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
		message := s.server.messages.borrow(s)
		if err := message.read(string(text)); err != nil {
			return s.server.failure(err).status()
		}
		text = "" // while we wait for the next, the calls alone keep it
		s.take(message)
	}
}

// take queues the calls of one message, once there is room for their replies.
func (s *stream) take(message *asked) {
	if s.replies.admit(message.calls) {
		s.workers.add(message)
		s.replies.acknowledge()
	}
}

// readCheck refuses what would let one call make a message large.
func (s *stream) readCheck(body string, c *wire.Check) error {
	err := s.server.readCheck(body, c)
	if err == nil && c.Explain {
		err = &limit.InputError{Field: "explain", Problem: "is not given on a stream; ask with Check"}
	}
	return err
}
