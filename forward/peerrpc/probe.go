package peerrpc

import (
	"context"

	"github.com/ringlimit/ringlimit/membership"
)

// Probe finds out in the background whether the member's process refuses
// connections, whatever the pool's own connection to it is like: one that stands
// may lead to a process that is about to end. While a member is being probed it
// is not probed again.
func (p *Pool) Probe(m membership.Member) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, underWay := p.probed[m.ID]; underWay || p.closed {
		return
	}
	p.probed[m.ID] = struct{}{}
	p.wg.Go(func() {
		if p.refuses(m) {
			p.cfg.Refused(m.ID)
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.probed, m.ID)
	})
}

func (p *Pool) refuses(m membership.Member) bool {
	ctx, cancel := context.WithTimeout(p.ctx, connectTimeout)
	defer cancel()
	c, err := p.cfg.Dial(ctx, m.Peer)
	if err != nil {
		return isRefused(err)
	}
	_ = c.Close() // it has done its work
	return false
}
