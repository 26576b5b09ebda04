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
	c, replaced, err := p.conn(m)
	if replaced != nil {
		replaced.close()
	}
	if err != nil {
		p.cfg.Logger.Warn("peer cannot be connected to", "peer", string(m.ID), "addr", m.Peer, "error", err)
		return unreachable{}
	}
	return c
}

func (p *Pool) conn(m membership.Member) (c, replaced *conn, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, nil, net.ErrClosed
	}
	old := p.conns[m.ID]
	if old != nil && old.peer.Boot == m.Boot && old.peer.Peer == m.Peer {
		old.hurry()
		return old, nil, nil
	}
	delete(p.conns, m.ID)
	if c, err = connect(m, &p.cfg); err == nil {
		p.conns[m.ID] = c
	}
	return c, old, err
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

// unreachable is a peer whose address is of no use.
type unreachable struct{}

func (unreachable) Check(context.Context, *owner.Call, int64) (limit.Verdict, error) {
	return limit.Verdict{}, forward.ErrUnreachable
}
