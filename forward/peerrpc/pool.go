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

	mu     sync.Mutex
	conns  map[membership.NodeID]*conn
	closed bool
}

// NewPool makes a pool without connections. Close it.
func NewPool(cfg PoolConfig) *Pool {
	return &Pool{cfg: cfg, conns: map[membership.NodeID]*conn{}}
}

// Peer is the way to a member. It is the same for the same run of a node at the
// same address; for another one the old connection is closed, and checks that
// wait on it fail. Connecting goes on in the background; asking again for a
// peer that was out of reach cuts the pause between attempts short.
func (p *Pool) Peer(m membership.Member) forward.Peer {
	c, replaced := p.conn(m)
	if replaced != nil {
		replaced.close()
	}
	if c == nil {
		return closed{}
	}
	return c
}

// conn returns nil when the pool is closed.
func (p *Pool) conn(m membership.Member) (c, replaced *conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, nil
	}
	c = p.conns[m.ID]
	if c != nil && c.peer.Boot == m.Boot && c.peer.Peer == m.Peer {
		c.hurry()
		return c, nil
	}
	replaced, c = c, connect(m, &p.cfg)
	p.conns[m.ID] = c
	return c, replaced
}

// Retain closes the connections to nodes that are not in the view.
func (p *Pool) Retain(v membership.View) {
	var gone []*conn
	p.mu.Lock()
	for id, c := range p.conns {
		if _, ok := v.Find(id); !ok {
			gone = append(gone, c)
			delete(p.conns, id)
		}
	}
	p.mu.Unlock()
	closeAll(gone)
}

// Close closes all connections and waits for every goroutine of the pool.
func (p *Pool) Close() error {
	var all []*conn
	p.mu.Lock()
	p.closed = true
	for id, c := range p.conns {
		all = append(all, c)
		delete(p.conns, id)
	}
	p.mu.Unlock()
	closeAll(all)
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
