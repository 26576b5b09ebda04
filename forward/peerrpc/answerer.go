package peerrpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"sync"

	"google.golang.org/grpc"

	"github.com/ringlimit/ringlimit/forward/peerrpc/peerpb"
)

// answerer serves one stream of checks.
type answerer struct {
	out   outgoing[peerpb.Frame]
	in    grpc.BidiStreamingServer[peerpb.Frame, peerpb.Frame]
	judge *judge
	lane  <-chan net.Conn // on which the frames will go; nil: they go on the stream

	mu      sync.Mutex
	open    bool // frames may be sent
	leaving bool // and the first is a farewell
}

func newAnswerer(cfg *ServerConfig, stream grpc.BidiStreamingServer[peerpb.Frame, peerpb.Frame]) *answerer {
	return &answerer{out: outgoing[peerpb.Frame]{stream: stream}, in: stream, judge: newJudge(cfg), open: true}
}

// expect is called before the asker can know of the lane.
func (a *answerer) expect(lane <-chan net.Conn) { a.lane, a.open = lane, false }

// run answers until the stream ends. What is promised then is given up: an asker
// that ends a stream in order waits for nothing any more.
func (a *answerer) run() error {
	var late sync.WaitGroup
	late.Go(a.keepPromises)
	defer late.Wait()
	defer a.judge.promises.end()
	if a.lane != nil {
		return a.runLane()
	}
	return a.serve(func(f *peerpb.Frame) error { return a.in.RecvMsg(f) })
}

// runLane serves the lane while the stream stands. The asker ends it when the lane
// breaks.
func (a *answerer) runLane() error {
	ctx, over := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- a.serveLane(ctx) }()
	err := a.in.RecvMsg(new(peerpb.Frame))
	over()
	bad := <-served
	switch {
	case err == nil:
		return errOffLane
	case errors.Is(bad, errBadFrame):
		return bad
	case err == io.EOF:
		return nil
	}
	return err
}

// errOffLane is a bad frame, too.
var errOffLane = fmt.Errorf("%w: one came beside its lane", errBadFrame)

// serveLane waits for the lane, and serves it until it breaks or ctx ends.
func (a *answerer) serveLane(ctx context.Context) error {
	var conn net.Conn
	select {
	case conn = <-a.lane:
	case <-ctx.Done():
		return nil
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	if _, err := io.WriteString(conn, laneWelcome); err != nil {
		return err
	}
	a.out.divert(&sendingLane{conn: conn})
	if a.begin() {
		a.farewell()
	}
	return a.serve(newReceivingLane(conn, maxFrame+headBytes).Recv)
}

// begin allows frames to be sent, and says whether a farewell was due before.
func (a *answerer) begin() (leaving bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.open = true
	return a.leaving
}

// serve answers the frames that next reads.
func (a *answerer) serve(next func(*peerpb.Frame) error) error {
	var ask, reply peerpb.Frame
	for {
		switch err := next(&ask); {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
		var laters int
		var err error
		reply.Id, reply.Era = ask.Id, a.judge.cfg.Decider.Era()
		if reply.Records, laters, err = a.judge.frame(&ask, reply.Records[:0]); err != nil {
			return err
		}
		if err := a.out.send(&reply); err != nil {
			return err
		}
		if laters > 0 {
			a.judge.promises.follow(laters)
		}
	}
}

// keepPromises sends late answers. The yield lets more of them come, as in
// batcher.lead.
func (a *answerer) keepPromises() {
	var ready bundles
	for range a.judge.promises.wake {
		runtime.Gosched()
		ready = a.judge.promises.take(ready)
		for _, b := range ready {
			if a.out.send(&b.frame) != nil {
				return // the reader of the stream learns why
			}
		}
	}
}

// farewell asks the peer to send no more. When it has its answers it ends the
// stream, and so does run.
func (a *answerer) farewell() {
	a.mu.Lock()
	a.leaving = true
	open := a.open
	a.mu.Unlock()
	if open {
		_ = a.out.send(&peerpb.Frame{Id: farewell}) // fails only with the stream
	}
}

func (a *answerer) end() { a.out.end() }
