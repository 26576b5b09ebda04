package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"

	"github.com/ringlimit/ringlimit/internal/wire"
	"github.com/ringlimit/ringlimit/limit"
)

// gRPC's own defaults suit clients of a distant service: 20 s to connect, 120 s
// between attempts. A node that is back must be used at once.
const (
	connectTimeout = 2 * time.Second       // for the connection and the node's welcome
	firstPause     = 10 * time.Millisecond // between attempts
	maxPause       = time.Second
	spacing        = 20 * time.Millisecond // at least, of attempts after streams that broke
	pingAfter      = 10 * time.Second      // of silence
	pingTimeout    = 2 * time.Second
	// Windows that never fill, of fixed size: gRPC's dynamic ones cost a probe for
	// each message.
	window = 1 << 20
	// maxReceived is more than a node puts into a message.
	maxReceived = 16 << 20
)

// node is the way to one node: a connection and a stream on it, made anew whenever
// they break.
type node struct {
	*batcher
	cfg     *Config
	isUp    func() // is told whenever a stream stands
	address string
	log     *slog.Logger
	scans   *time.Timer
	line    line   // for batches
	told    string // what was last logged; of run
}

func newNode(address string, cfg *Config, now func() int64, isUp func()) *node {
	n := &node{cfg: cfg, isUp: isUp, address: address, log: cfg.Logger.With("addr", address), scans: time.NewTimer(time.Hour)}
	n.batcher = newBatcher(now, func(in time.Duration) { n.scans.Reset(in) })
	return n
}

func (n *node) ask(ctx context.Context, req *limit.Request, refund bool, deadline int64) answer {
	w := n.waiters.Get(deadline)
	leads, err := n.add(req, refund, w)
	if err != nil {
		n.waiters.Put(w)
		return answer{err: err}
	}
	if leads {
		n.lead()
	}
	a, err := n.waiters.Await(ctx, w)
	if err != nil {
		return answer{err: err}
	}
	return a
}

// expire fails overdue calls. It sleeps until the earliest deadline it was told of,
// and is not woken while none comes sooner.
func (n *node) expire(ctx context.Context) {
	defer n.scans.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-n.scans.C:
			n.scan()
		}
	}
}

// run keeps the stream open until ctx ends. One that stood and broke is made anew at
// once. After a farewell or a failed attempt calls go elsewhere, until an attempt
// succeeds, and there is a pause, which grows and differs from client to client: all
// of them lose a node that restarts at the same time.
func (n *node) run(ctx context.Context) {
	defer n.fail(down)
	for between := firstPause; ; {
		began := time.Now()
		stood, err := n.attempt(ctx)
		if ctx.Err() != nil {
			return
		}
		if stood {
			between = firstPause
		}
		next := connecting
		wait := spacing - time.Since(began)
		if !stood || err == errFarewell {
			next = down
			wait = between/2 + rand.N(between/2)
			between = min(2*between, maxPause)
		}
		n.fail(next)
		n.tell(err)
		pause(ctx, wait)
	}
}

// tell logs why an attempt ended, once in a row for the same reason: an answer ends
// the row. A farewell is no fault.
func (n *node) tell(err error) {
	if err == errFarewell {
		n.told = ""
		n.log.Debug("a node said farewell")
		return
	}
	if reason := err.Error(); reason != n.told {
		n.told = reason
		n.log.Warn("no stream to a node", "error", err)
	}
}

var errFarewell = errors.New("the node said farewell")

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

func (n *node) dialOptions() []grpc.DialOption {
	return append([]grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: pingAfter, Timeout: pingTimeout}),
		grpc.WithConnectParams(grpc.ConnectParams{MinConnectTimeout: connectTimeout}),
		grpc.WithStaticStreamWindowSize(window),
		grpc.WithStaticConnWindowSize(window),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxReceived), grpc.WaitForReady(false), grpc.ForceCodecV2(wire.Codec())),
		grpc.WithDisableRetry(), // a check must not be sent twice
		grpc.WithIdleTimeout(0),
		grpc.WithNoProxy(),
		grpc.WithDisableServiceConfig(),
	}, n.cfg.DialOptions...)
}

// attempt connects, opens the stream and serves it to its end. It says whether it
// stood, and why it ended.
func (n *node) attempt(ctx context.Context) (stood bool, err error) {
	cc, err := grpc.NewClient(n.address, n.dialOptions()...)
	if err != nil {
		return false, err
	}
	n.line.set(cc)
	defer n.line.hangUp()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stream, err := open(ctx, cancel, cc)
	if err != nil {
		return false, err
	}
	return true, n.converse(stream)
}

// converse reads the stream to its end.
func (n *node) converse(stream grpc.ClientStream) error {
	n.start(&session{stream: stream})
	n.isUp()
	var rules wire.Rules
	var r wire.Response
	for leaving := false; ; {
		var message wire.In
		switch err := stream.RecvMsg(&message); {
		case leaving && err == io.EOF:
			return errFarewell
		case err == io.EOF:
			return io.ErrUnexpectedEOF // nobody has asked it to end
		case err != nil:
			return err
		}
		if err := r.Read(string(message), &rules); err != nil {
			return fmt.Errorf("a message of the node %w", err)
		}
		if err := n.answer(&r); err != nil {
			return err
		}
		if r.Farewell && !leaving {
			leaving = true
			n.leave()
		}
		n.told = ""
	}
}

const (
	streamMethod = "/ringlimit.v1.RateLimiter/CheckStream"
	batchMethod  = "/ringlimit.v1.RateLimiter/CheckBatch"
)

// open waits for the node's welcome, so that no call is sent on a stream that is
// then refused.
func open(ctx context.Context, cancel context.CancelCauseFunc, cc *grpc.ClientConn) (grpc.ClientStream, error) {
	patience := time.AfterFunc(connectTimeout, func() { cancel(errSilent) })
	defer patience.Stop()
	stream, err := welcomed(ctx, cc)
	if err != nil && context.Cause(ctx) == errSilent {
		err = errSilent
	}
	return stream, err
}

var errSilent = fmt.Errorf("no connection and welcome within %v", connectTimeout)

func welcomed(ctx context.Context, cc *grpc.ClientConn) (grpc.ClientStream, error) {
	desc := &grpc.StreamDesc{StreamName: "CheckStream", ServerStreams: true, ClientStreams: true}
	stream, err := cc.NewStream(ctx, desc, streamMethod)
	if err != nil {
		return nil, err
	}
	header, err := stream.Header()
	if err == nil && header == nil { // refused; the status says why
		err = stream.RecvMsg(new(wire.In))
	}
	return stream, err
}
