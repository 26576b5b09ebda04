package grpcfront

import (
	"context"
	"io"
	"net/http"
	"time"

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
	calls   []wire.Call // the reader's, kept from message to message
}

// task is a call that waits for a worker.
type task struct {
	wire.Call
	message *asked
}

// asked is one message of the client's.
type asked struct {
	left int       // calls without a reply; replies counts them
	due  time.Time // when the callers have given up; zero: nobody knows
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
	st.workers = newWorkers(st.ask)
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
	for {
		var message wire.In
		switch err := s.in.RecvMsg(&message); {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
		calls, timeout, err := wire.ReadCalls(string(message), s.calls[:0])
		if err != nil {
			return s.server.failure(err).status()
		}
		s.take(calls, timeout)
		clear(calls) // they keep the message
		s.calls = calls
	}
}

// take queues the calls of one message, once there is room for their replies.
func (s *stream) take(calls []wire.Call, timeout time.Duration) {
	message := &asked{left: len(calls)}
	if timeout != 0 {
		message.due = s.server.cfg.Now().Add(timeout)
	}
	if s.replies.admit(calls) {
		s.workers.add(calls, message)
		s.replies.acknowledge()
	}
}

// ask has a call judged, on a worker's goroutine.
func (s *stream) ask(t *task) {
	v, err := s.judge(t)
	if err != nil {
		s.replies.addError(t, (*wire.Error)(s.server.failure(err)))
		return
	}
	s.replies.add(t, &v)
}

func (s *stream) judge(t *task) (v limit.Verdict, err error) {
	var c wire.Check
	switch {
	case !t.message.due.IsZero() && s.server.cfg.Now().After(t.message.due):
		return v, context.DeadlineExceeded // it is charged to nobody
	case t.Refund:
		if err = s.server.readRefund(t.Body, &c); err == nil {
			v, err = s.server.giveRefund(s.ctx, &c)
		}
	default:
		if err = s.server.readCheck(t.Body, &c); err == nil {
			v, err = s.check(&c)
		}
	}
	return v, err
}

// check refuses what would let one call make a message large.
func (s *stream) check(c *wire.Check) (limit.Verdict, error) {
	if c.Explain {
		return limit.Verdict{}, &limit.InputError{Field: "explain", Problem: "is not given on a stream; ask with Check"}
	}
	return s.server.cfg.Checker.Check(s.ctx, c.Request)
}
