package rival

import (
	"context"

	"github.com/ringlimit/ringlimit"
	"github.com/ringlimit/ringlimit/bench/load"
	"github.com/ringlimit/ringlimit/limit"
)

// inside is a node that owns all counters and one that owns none, which is asked, both
// in the caller's process: its figures are of both ends of the hop.
type inside struct {
	limit          Limit
	owner, gateway *ringlimit.Node
}

func (b *inside) Start(ctx context.Context, _ *Env) (err error) {
	if b.owner, err = start(ctx, b.limit, ringlimit.Config{Name: "owner"}); err != nil {
		return err
	}
	b.gateway, err = start(ctx, b.limit, ringlimit.Config{Name: "gateway", Forwarder: true, Join: []string{b.owner.GossipAddr()}})
	if err != nil {
		leave(b.owner)
		return err
	}
	return seesAll(ctx, 2, b.owner, b.gateway)
}

func (b *inside) Caller(int) load.Ask {
	return one(func(ctx context.Context, key string) (bool, error) {
		v, err := b.gateway.Check(ctx, ringlimit.Request{Key: key})
		return v.Allowed, expect(&v, limit.SourceForwarded, err)
	})
}

func (b *inside) Stop() {
	leave(b.gateway)
	leave(b.owner)
}
