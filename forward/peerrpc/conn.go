package peerrpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/ringlimit/ringlimit/forward"
	"github.com/ringlimit/ringlimit/forward/peerrpc/peerpb"
	"github.com/ringlimit/ringlimit/limit"
	"github.com/ringlimit/ringlimit/membership"
	"github.com/ringlimit/ringlimit/owner"
)

// conn is the way to one run of one node: a connection and the one stream on
// it, made anew whenever they break.
type conn struct {
	cfg   *PoolConfig
	peer  membership.Member
	log   *slog.Logger
	batch *batcher
	scans *time.Timer
	retry chan struct{} // ends a pause between attempts
	told  string        // what was last logged; of run

	cancel context.CancelFunc
	wg     sync.WaitGroup
}

// connect starts to connect, and to keep the connection. The caller owns the
// conn and has to close it.
func connect(peer membership.Member, cfg *PoolConfig) *conn {
	c := &conn{
		cfg: cfg, peer: peer,
		log:   cfg.Logger.With("peer", string(peer.ID), "addr", peer.Peer),
		scans: time.NewTimer(time.Hour),
		retry: make(chan struct{}, 1),
	}
	c.batch = newBatcher(cfg.Now, func(in time.Duration) { c.scans.Reset(in) })
	ctx, cancel := context.WithCancel(context.Background())
	c.cancel = cancel
	c.wg.Go(func() { c.run(ctx) })
	c.wg.Go(func() { c.expire(ctx) })
	return c
}

// close fails all checks under way and waits for every goroutine.
func (c *conn) close() {
	c.cancel()
	c.wg.Wait()
}

// leadsTo says whether m is the run of the node that c is for, at its address.
func (c *conn) leadsTo(m membership.Member) bool {
	return c.peer.ID == m.ID && c.peer.Boot == m.Boot && c.peer.Peer == m.Peer
}

// Check implements forward.Peer.
func (c *conn) Check(ctx context.Context, call *owner.Call, deadline int64) (limit.Verdict, error) {
	r := record{mode: call.Mode, rule: call.Rule.ID(), cost: call.Cost, name: call.Counter}
	if !r.valid() || len(r.name) > maxName {
		return limit.Verdict{}, forward.ErrRejected
	}
	a := c.ask(ctx, &r, deadline)
	if a.err == errUnknownRule { // then it was not counted
		if r.body = call.Rule.Encode(); len(r.body) > maxBody {
			return limit.Verdict{}, forward.ErrRejected
		}
		a = c.ask(ctx, &r, deadline)
	}
	if a.err == errUnknownRule {
		a.err = forward.ErrRejected // it would not learn it
	}
	return a.verdict, a.err
}

func (c *conn) ask(ctx context.Context, r *record, deadline int64) answer {
	w := c.batch.waiters.get(deadline)
	leads, err := c.batch.add(r, w)
	if err != nil {
		c.batch.waiters.put(w)
		return answer{err: err}
	}
	if leads {
		c.batch.lead()
	}
	return c.batch.waiters.await(ctx, w)
}

// expire fails overdue checks. It sleeps until the earliest deadline it was
// told of, and is not woken while none comes sooner.
func (c *conn) expire(ctx context.Context) {
	defer c.scans.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.scans.C:
			c.batch.scan()
		}
	}
}

// run keeps a stream open. After a farewell, or an attempt that answered
// nothing, checks fail at once, until an attempt succeeds, and there is a pause,
// which grows. A stream that broke after answers is made anew at once, but no
// two such attempts begin within firstPause: a peer may answer one frame and
// break, again and again. The pauses are ours and not gRPC's: to cut those short
// means ClientConn's ResetConnectBackoff, which can crash the process
// (grpc-go#9155).
func (c *conn) run(ctx context.Context) {
	defer c.batch.fail(down)
	pause := firstPause
	for {
		began := time.Now()
		answered, err := c.attempt(ctx)
		if ctx.Err() != nil {
			return
		}
		c.tell(answered, err)
		if answered && err != errFarewell {
			c.batch.fail(connecting)
			c.sleep(ctx, firstPause-time.Since(began))
			pause = firstPause
			continue
		}
		c.batch.fail(down)
		c.sleep(ctx, pause)
		pause = min(2*pause, maxPause)
	}
}

// tell logs why an attempt ended, once in a row for the same reason. A farewell
// is no fault.
func (c *conn) tell(answered bool, err error) {
	if err == errFarewell {
		c.told = ""
		c.log.Debug("a peer said farewell")
		return
	}
	if reason := err.Error(); answered || reason != c.told {
		c.told = reason
		c.log.Warn("no stream to a peer", "error", err)
	}
}

var errFarewell = errors.New("the peer said farewell")

func (c *conn) sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-c.retry:
	case <-ctx.Done():
	}
}

// hurry cuts a pause between attempts short: the peer is known to be there.
func (c *conn) hurry() {
	select {
	case c.retry <- struct{}{}:
	default:
	}
}

// attempt connects, opens a stream and reads it to its end. It says whether a
// check was answered on it, and why it ended.
func (c *conn) attempt(ctx context.Context) (answered bool, err error) {
	// passthrough: the dialer resolves names, each time anew.
	cc, err := grpc.NewClient("passthrough:///"+c.peer.Peer, dialOptions(c.cfg.Dial)...)
	if err != nil {
		return false, err
	}
	defer func() { _ = cc.Close() }() // fails only when called twice
	ctx, cancel := context.WithCancelCause(hello(ctx, c.cfg.Self, c.peer.ID, c.cfg.Token))
	defer cancel(nil)
	stream, err := open(ctx, cancel, cc)
	if err != nil {
		return false, err
	}
	s := &session{stream: stream}
	defer c.batch.pause() // until run says what becomes of the checks that are left
	c.batch.start(s)
	for leaving := false; ; {
		packet, err := stream.Recv()
		switch {
		case leaving && err == io.EOF:
			return answered, errFarewell
		case err != nil:
			return answered, err
		}
		if packet.Id == farewell {
			leaving = true
		} else if err := c.batch.answer(packet); err != nil {
			return answered, err
		}
		answered = answered || packet.Id != farewell
		if leaving && c.batch.pause() == 0 {
			s.close() // the owner has answered all it was asked
		}
	}
}

// checks is the stream as the asker has it.
type checks = grpc.BidiStreamingClient[peerpb.Frame, peerpb.Frame]

// open waits for the owner's welcome, so that no check is sent on a stream that
// is then refused.
func open(ctx context.Context, cancel context.CancelCauseFunc, cc *grpc.ClientConn) (checks, error) {
	patience := time.AfterFunc(connectTimeout, func() { cancel(errSilent) })
	defer patience.Stop()
	stream, err := welcomed(ctx, cc)
	if err != nil && context.Cause(ctx) == errSilent {
		err = errSilent
	}
	return stream, err
}

var errSilent = fmt.Errorf("no connection and welcome within %v", connectTimeout)

func welcomed(ctx context.Context, cc *grpc.ClientConn) (checks, error) {
	stream, err := peerpb.NewPeerClient(cc).Checks(ctx)
	if err != nil {
		return nil, err
	}
	header, err := stream.Header()
	if err != nil {
		return nil, err
	}
	if header == nil { // refused; the status says why
		_, err := stream.Recv()
		return nil, err
	}
	return stream, checkVersion(header)
}
