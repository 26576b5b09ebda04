package peerrpc

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"

	"github.com/ringlimit/ringlimit/forward"
	"github.com/ringlimit/ringlimit/forward/peerrpc/peerpb"
	"github.com/ringlimit/ringlimit/limit"
	"github.com/ringlimit/ringlimit/membership"
	"github.com/ringlimit/ringlimit/owner"
)

// conn is the way to one run of one node: a connection and the one stream on
// it, renewed for as long as it takes.
type conn struct {
	self  membership.NodeID
	peer  membership.Member
	token string
	log   *slog.Logger
	cc    *grpc.ClientConn
	batch *batcher
	scans *time.Timer
	retry chan struct{} // ends a pause between attempts
	told  string        // what was last logged; of run

	cancel context.CancelFunc
	wg     sync.WaitGroup
}

// connect starts to connect, and to keep the connection. The caller owns the
// conn and has to close it.
func connect(peer membership.Member, cfg *PoolConfig) (*conn, error) {
	// passthrough: the dialer resolves names, each time anew.
	cc, err := grpc.NewClient("passthrough:///"+peer.Peer, dialOptions(cfg.Dial)...)
	if err != nil {
		return nil, err
	}
	c := &conn{
		self: cfg.Self, peer: peer, token: cfg.Token, cc: cc,
		log:   cfg.Logger.With("peer", string(peer.ID), "addr", peer.Peer),
		scans: time.NewTimer(time.Hour),
		retry: make(chan struct{}, 1),
	}
	c.batch = newBatcher(cfg.Now, func(in time.Duration) { c.scans.Reset(in) })
	ctx, cancel := context.WithCancel(context.Background())
	c.cancel = cancel
	c.wg.Go(func() { c.run(ctx) })
	c.wg.Go(func() { c.expire(ctx) })
	return c, nil
}

// close fails all checks under way and waits for every goroutine.
func (c *conn) close() {
	c.cancel()
	_ = c.cc.Close() // fails only when called twice
	c.wg.Wait()
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
			c.batch.scan(c.batch.now())
		}
	}
}

// run keeps a stream open. After one that answered nothing checks fail at once
// and there is a pause, which grows: the peer refuses us, or is about to go.
func (c *conn) run(ctx context.Context) {
	defer c.batch.fail(down)
	pause := firstPause
	for c.awaitReady(ctx) {
		answered, err := c.stream(ctx)
		if ctx.Err() != nil {
			return
		}
		c.tell(err)
		if answered {
			c.batch.fail(connecting)
			pause = firstPause
			continue
		}
		c.batch.fail(down)
		c.sleep(ctx, pause)
		pause = min(2*pause, maxBackoff)
	}
}

// tell logs why a stream ended, once for the same reason.
func (c *conn) tell(err error) {
	if reason := err.Error(); reason != c.told {
		c.told = reason
		c.log.Warn("the stream to a peer ended", "error", err)
	}
}

const firstPause = 20 * time.Millisecond

func (c *conn) sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-c.retry:
	case <-ctx.Done():
	}
}

// hurry cuts pauses between attempts short: the peer is known to be there.
func (c *conn) hurry() {
	c.cc.ResetConnectBackoff()
	select {
	case c.retry <- struct{}{}:
	default:
	}
}

// awaitReady returns true once the connection stands, and false when ctx ends.
// After a failed attempt checks fail at once, until one succeeds.
func (c *conn) awaitReady(ctx context.Context) bool {
	for {
		state := c.cc.GetState()
		switch state {
		case connectivity.Ready:
			return true
		case connectivity.Idle:
			c.cc.Connect()
		case connectivity.TransientFailure:
			c.batch.fail(down)
		}
		if !c.cc.WaitForStateChange(ctx, state) {
			return false
		}
	}
}

// stream opens a stream and reads it to its end. It says whether a check was
// answered on it.
func (c *conn) stream(ctx context.Context) (answered bool, err error) {
	ctx, cancel := context.WithCancel(hello(ctx, c.self, c.peer.ID, c.token))
	defer cancel()
	stream, err := c.open(ctx, cancel)
	if err != nil {
		return false, err
	}
	s := &session{stream: stream}
	c.batch.start(s)
	for leaving := false; ; {
		packet, err := stream.Recv()
		if err != nil {
			return answered, err
		}
		if packet.Id == farewell {
			leaving = true
		} else if err := c.batch.answer(packet); err != nil {
			return answered, err
		}
		answered = answered || !leaving
		if leaving && c.batch.pause() == 0 {
			s.close()
		}
	}
}

// open waits for the owner's welcome, so that no check is sent on a stream that
// is then refused.
func (c *conn) open(ctx context.Context, cancel func()) (grpc.BidiStreamingClient[peerpb.Frame, peerpb.Frame], error) {
	patience := time.AfterFunc(connectTimeout, cancel)
	defer patience.Stop()
	stream, err := peerpb.NewPeerClient(c.cc).Checks(ctx)
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
