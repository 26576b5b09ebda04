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
	"github.com/ringlimit/ringlimit/owner/transfer"
)

// conn is the way to one run of one node: a connection and the streams on it, one
// of checks and two of mail, made anew whenever they break.
type conn struct {
	cfg   *PoolConfig
	peer  membership.Member
	log   *slog.Logger
	batch *batcher
	sends sends
	scans *time.Timer
	retry chan struct{} // ends a pause between attempts
	told  string        // what was last logged; of run
	// laneless: the next stream does without a lane; of run
	laneless bool

	// bulk is the hand-over, which would hold up the rest: copies, for which
	// replies wait, and signs of life.
	bulk, mail *outbox

	line line // for calls of their own

	cancel context.CancelFunc
	wg     sync.WaitGroup
	ran    chan struct{} // closed when run has ended
}

// connect starts to connect, and to keep the connection. The caller owns the
// conn and has to close it.
func connect(peer membership.Member, cfg *PoolConfig) *conn {
	c := &conn{
		cfg: cfg, peer: peer,
		log:   cfg.Logger.With("peer", string(peer.ID), "addr", peer.Peer),
		scans: time.NewTimer(time.Hour),
		retry: make(chan struct{}, 1),
		bulk:  newOutbox(), mail: newOutbox(),
		ran: make(chan struct{}),
	}
	c.batch = newBatcher(cfg.Now, func(in time.Duration) { c.scans.Reset(in) })
	ctx, cancel := context.WithCancel(context.Background())
	c.cancel = cancel
	c.wg.Go(func() { defer close(c.ran); c.run(ctx) })
	c.wg.Go(func() { c.expire(ctx) })
	return c
}

// close fails all checks under way, drops the mail and waits for every goroutine.
func (c *conn) close() {
	c.cancel()
	c.wg.Wait()
}

// retire closes the connection once nobody waits for an answer on it: the node may
// be running, and only be called otherwise by now. Nothing new is asked. After a
// while, or when ctx ends, it is closed all the same.
func (c *conn) retire(ctx context.Context) {
	if c.batch.retire() {
		cut := context.AfterFunc(ctx, c.cancel)
		defer cut()
		patience := time.AfterFunc(farewellTime, c.cancel)
		defer patience.Stop()
		<-c.ran
	}
	c.close()
}

// post sends a message, or loses it.
func (c *conn) post(m transfer.Message) {
	switch m.(type) {
	case *transfer.Acquire, *transfer.Answers:
		c.bulk.post(m)
	default:
		c.mail.post(m)
	}
}

// leadsTo says whether m is the run of the node that c is for, at its address.
func (c *conn) leadsTo(m membership.Member) bool {
	return c.peer.ID == m.ID && c.peer.Boot == m.Boot && c.peer.Peer == m.Peer
}

// Check implements forward.Peer.
func (c *conn) Check(ctx context.Context, call *owner.Call, deadline int64) (limit.Verdict, error) {
	r := record{mode: call.Mode, rule: call.Rule.ID(), cost: call.Cost, name: call.Counter, age: call.Age}
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
	w := c.batch.waiters.Get(deadline)
	leads, err := c.batch.add(r, w)
	if err != nil {
		c.batch.waiters.Put(w)
		return answer{err: err}
	}
	if leads {
		c.batch.lead()
	}
	a, err := c.batch.waiters.Await(ctx, w)
	if err != nil {
		return answer{err: err}
	}
	return a
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

// run keeps the streams open. One that stood and broke is made anew at once, so
// that a process that is no more is noticed at once; but no two such attempts
// begin within spacing, for a peer may take a stream and break it, again and
// again. After a farewell or a failed attempt checks fail at once and mail is
// dropped, until an attempt succeeds, and there is a pause, which grows. The
// pauses are ours and not gRPC's: to cut those short means ClientConn's
// ResetConnectBackoff, which can crash the process (grpc-go#9155).
func (c *conn) run(ctx context.Context) {
	defer c.fail(down)
	for between := firstPause; ; {
		began := time.Now()
		stood, err := c.attempt(ctx)
		if ctx.Err() != nil || c.batch.isRetired() {
			return
		}
		if stood {
			between = firstPause
		}
		if stood && err != errFarewell {
			c.fail(connecting)
			c.tell(err)
			pause(ctx, spacing-time.Since(began), nil)
			continue
		}
		if isRefused(err) {
			c.cfg.Refused(c.peer.ID) // first: who fails now may look for another node
		}
		c.fail(down)
		c.tell(err)
		// Whoever hurries us may do so with each check.
		_ = pause(ctx, firstPause, nil) && pause(ctx, between-firstPause, c.retry)
		between = min(2*between, maxPause)
	}
}

// fail ends what is under way. How a stream of mail ends, its carrier says.
func (c *conn) fail(l link) {
	c.batch.fail(l)
	if l == down {
		for _, box := range [...]*outbox{c.bulk, c.mail} {
			box.set(down)
			box.drop()
		}
	}
}

// tell logs why an attempt ended, once in a row for the same reason: an answer
// ends the row. A farewell is no fault.
func (c *conn) tell(err error) {
	if err == errFarewell {
		c.told = ""
		c.log.Debug("a peer said farewell")
		return
	}
	if reason := err.Error(); reason != c.told {
		c.told = reason
		c.log.Warn("no stream to a peer", "error", err)
	}
}

var errFarewell = errors.New("the peer said farewell")

// pause waits for d, or until cut receives. It says no when ctx ends.
func pause(ctx context.Context, d time.Duration, cut <-chan struct{}) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-cut:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

// hurry cuts a pause between attempts short: the peer is known to be there.
func (c *conn) hurry() {
	select {
	case c.retry <- struct{}{}:
	default:
	}
}

// attempt connects, opens the streams and serves them to their end. It says
// whether they stood, and why they ended.
func (c *conn) attempt(ctx context.Context) (stood bool, err error) {
	d := dialer{dial: c.cfg.Dial}
	// passthrough: the dialer resolves names, each time anew.
	cc, err := grpc.NewClient("passthrough:///"+c.peer.Peer, dialOptions(d.connect)...)
	if err != nil {
		return false, err
	}
	defer func() { _ = cc.Close() }() // fails only when called twice
	ctx, cancel := context.WithCancelCause(hello(ctx, c.cfg, c.peer.ID))
	defer cancel(nil)
	talk, err := c.open(ctx, cancel, cc)
	if err != nil {
		return false, d.reason(err)
	}
	defer talk.end()
	c.line.set(cc)
	defer c.line.set(nil)
	staying, leave := context.WithCancel(ctx)
	var mail sync.WaitGroup
	for _, box := range [...]*outbox{c.bulk, c.mail} {
		carrier := &carrier{box: box, log: c.log}
		mail.Go(func() { carrier.run(ctx, staying, cc) })
	}
	err = c.converse(talk)
	if leave(); err != errFarewell {
		cancel(nil)
	}
	mail.Wait() // after a farewell: until the peer has what was sent to it
	return true, err
}

// converse reads the stream of checks to its end.
func (c *conn) converse(talk *conversation) error {
	s := &session{stream: talk, groups: talk.groups}
	c.batch.start(s)
	packet := new(peerpb.Frame) // used again for each answer
	for leaving := false; ; {
		err := talk.Recv(packet)
		switch {
		case leaving && err == io.EOF:
			return errFarewell
		case err != nil:
			return err
		case packet.Id == farewell:
			leaving = true
			c.batch.leave(s)
			continue
		}
		if err := c.batch.answer(packet); err != nil {
			return err
		}
		c.told = ""
	}
}

// open waits for the owner's welcome, so that no check is sent on a stream that
// is then refused.
func (c *conn) open(ctx context.Context, cancel context.CancelCauseFunc, cc *grpc.ClientConn) (*conversation, error) {
	patience := time.AfterFunc(connectTimeout, func() { cancel(errSilent) })
	defer patience.Stop()
	talk, err := c.welcomed(ctx, cc)
	if err != nil && context.Cause(ctx) == errSilent {
		err = errSilent
	}
	return talk, err
}

var errSilent = fmt.Errorf("no connection and welcome within %v", connectTimeout)
