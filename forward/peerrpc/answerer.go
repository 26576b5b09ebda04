package peerrpc

import (
	"io"
	"runtime"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/ringlimit/ringlimit/forward/peerrpc/peerpb"
)

// answerer serves one stream of checks.
type answerer struct {
	out   outgoing[peerpb.Frame]
	in    grpc.BidiStreamingServer[peerpb.Frame, peerpb.Frame]
	judge *judge
}

func newAnswerer(cfg *ServerConfig, stream grpc.BidiStreamingServer[peerpb.Frame, peerpb.Frame]) *answerer {
	return &answerer{out: outgoing[peerpb.Frame]{stream: stream}, in: stream, judge: newJudge(cfg)}
}

// run answers until the stream ends. What is promised then is given up: an asker
// that ends a stream in order waits for nothing any more.
func (a *answerer) run() error {
	var late sync.WaitGroup
	late.Go(a.keepPromises)
	defer late.Wait()
	defer a.judge.promises.end()
	var ask, reply peerpb.Frame
	for {
		switch err := a.in.RecvMsg(&ask); {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
		var laters int
		var err error
		reply.Id, reply.Era = ask.Id, a.judge.cfg.Decider.Era()
		if reply.Records, laters, err = a.judge.frame(&ask, reply.Records[:0]); err != nil {
			return status.Error(codes.InvalidArgument, err.Error())
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
func (a *answerer) farewell() { _ = a.out.send(&peerpb.Frame{Id: farewell}) } // fails only with the stream

func (a *answerer) end() { a.out.end() }
