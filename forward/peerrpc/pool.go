package peerrpc

import (
	"context"
	"log/slog"
	"net"
	"sync"

	"github.com/ringlimit/ringlimit/forward"
	"github.com/ringlimit/ringlimit/limit"
	"github.com/ringlimit/ringlimit/membership"
	"github.com/ringlimit/ringlimit/owner"
	"github.com/ringlimit/ringlimit/owner/transfer"
)

// PoolConfig is what a Pool needs. All fields but Dial are required.
type PoolConfig struct {
	Self  membership.NodeID
	Boot  membership.BootID
	Token string                                                   // shown to every peer; from the cluster's secret
	Now   func() int64                                             // Unix nanoseconds, the clock that deadlines are given in
	Dial  func(ctx context.Context, addr string) (net.Conn, error) // nil: TCP
	// Refused hears each time that a peer's process refuses a connection. A peer
	// that does not answer is none of these. It is called from goroutines of the
	// pool, and may call all methods of the Pool but Close.
	Refused func(membership.NodeID)
	Logger  *slog.Logger
}

// Pool holds the way to each peer.
type Pool struct {
	cfg    PoolConfig
	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	wg     sync.WaitGroup // probes, and connections that are being closed

	mu       sync.Mutex
	conns    map[membership.NodeID]*conn
	replaced []*conn // until Retain
	probed   map[membership.NodeID]struct{}
	closed   bool
}

// NewPool makes a pool without connections. Close it.
func NewPool(cfg PoolConfig) *Pool {
	if cfg.Dial == nil {
		cfg.Dial = dialTCP
	}
	p := &Pool{cfg: cfg, conns: map[membership.NodeID]*conn{}, probed: map[membership.NodeID]struct{}{}}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p
}

// Peer is the way to a member. It is the same for the same run of a node at the
// same address. For another one the old connection stays open until Retain:
// whoever has not heard of the new one uses it, and it may still answer.
// Connecting goes on in the background; asking again for a peer that was out of
// reach cuts the pause between attempts short.
func (p *Pool) Peer(m membership.Member) forward.Peer {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return closed{}
	}
	if c := p.conns[m.ID]; c != nil && c.leadsTo(m) {
		c.hurry()
	}
	return p.to(m)
}

// Post sends a message to a member, and never blocks. The message is lost when
// too many wait for that member, when the connection is down, and when it breaks
// before the message is through. Those of one kind arrive in order, Acquire and
// Answers counting as one kind and all others as another.
func (p *Pool) Post(m membership.Member, msg transfer.Message) {
	p.mu.Lock()
	if c := p.conns[m.ID]; p.closed || c != nil && m.Boot < c.peer.Boot {
		p.mu.Unlock() // that run is over
		return
	}
	c := p.to(m)
	p.mu.Unlock()
	c.post(msg)
}

// to is the connection to a member. p.mu is held.
func (p *Pool) to(m membership.Member) *conn {
	c := p.conns[m.ID]
	if c != nil && c.leadsTo(m) {
		return c
	}
	if c != nil {
		p.replaced = append(p.replaced, c)
	}
	c = connect(m, &p.cfg)
	p.conns[m.ID] = c
	return c
}

// Retain closes the connections to all others than these members. What was asked
// on them is still answered, within two seconds; nothing else is. It does not
// wait. It is called once nobody is given them any more: after the router has the
// ring of that view.
func (p *Pool) Retain(members []membership.Member) {
	p.mu.Lock()
	defer p.mu.Unlock()
	gone := p.replaced
	p.replaced = nil
	stays := make(map[*conn]bool, len(members))
	for _, m := range members {
		if c := p.conns[m.ID]; c != nil && c.leadsTo(m) {
			stays[c] = true
		}
	}
	for id, c := range p.conns {
		if !stays[c] {
			gone = append(gone, c)
			delete(p.conns, id)
		}
	}
	for _, c := range gone {
		p.wg.Go(func() { c.retire(p.ctx) }) // it may wait for Refused, and that for the caller
	}
}

// Close closes all connections and waits for every goroutine of the pool.
func (p *Pool) Close() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.cancel()
	p.Retain(nil)
	p.wg.Wait()
	return nil
}

// closed is a peer of a pool that is closed.
type closed struct{}

func (closed) Check(context.Context, *owner.Call, int64) (limit.Verdict, error) {
	return limit.Verdict{}, forward.ErrAbsent
}

func (closed) SendEach(calls []owner.Call, _ int64, to *forward.Inbox, first int) {
	for i := range calls {
		to.Put(first+i, &owner.Result{Err: forward.ErrAbsent})
	}
	to.Ring()
}

func (closed) Send(_ []owner.Call, results []owner.Result, _ int64) forward.Sent {
	failAll(results, forward.ErrAbsent)
	return closed{}
}

func (closed) Await(context.Context) {}
