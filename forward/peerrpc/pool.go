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
)

// PoolConfig is what a Pool needs. All fields but Dial are required.
type PoolConfig struct {
	Self   membership.NodeID
	Token  string                                                   // shown to every peer; from the cluster's secret
	Now    func() int64                                             // Unix nanoseconds, the clock that deadlines are given in
	Dial   func(ctx context.Context, addr string) (net.Conn, error) // nil: TCP
	Logger *slog.Logger
}

// Pool holds one connection to each peer.
type Pool struct {
	cfg PoolConfig

	mu       sync.Mutex
	conns    map[membership.NodeID]*conn
	replaced []*conn // until Retain
	closed   bool
}

// NewPool makes a pool without connections. Close it.
func NewPool(cfg PoolConfig) *Pool {
	return &Pool{cfg: cfg, conns: map[membership.NodeID]*conn{}}
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
	c := p.conns[m.ID]
	if c != nil && c.leadsTo(m) {
		c.hurry()
		return c
	}
	if c != nil {
		p.replaced = append(p.replaced, c)
	}
	c = connect(m, &p.cfg)
	p.conns[m.ID] = c
	return c
}

// Retain closes the connections that do not lead to a member of the view, and
// checks that wait on them fail. It is called once nobody is given them any
// more: after the router has the ring of that view.
func (p *Pool) Retain(v membership.View) {
	p.mu.Lock()
	gone := p.replaced
	p.replaced = nil
	for id, c := range p.conns {
		if m, ok := v.Find(id); !ok || !c.leadsTo(m) {
			gone = append(gone, c)
			delete(p.conns, id)
		}
	}
	p.mu.Unlock()
	closeAll(gone)
}

// Close closes all connections and waits for every goroutine of the pool.
func (p *Pool) Close() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.Retain(membership.View{})
	return nil
}

func closeAll(conns []*conn) {
	for _, c := range conns {
		c.close()
	}
}

// closed is a peer of a pool that is closed.
type closed struct{}

func (closed) Check(context.Context, *owner.Call, int64) (limit.Verdict, error) {
	return limit.Verdict{}, forward.ErrUnreachable
}
