package rival

import (
	"context"
	"errors"
	"time"

	"github.com/ringlimit/ringlimit"
	"github.com/ringlimit/ringlimit/bench/load"
	"github.com/ringlimit/ringlimit/limit"
)

// forward is a node in the caller's process that owns nothing, so that every check
// takes the hop, and owners in processes of their own.
type forward struct {
	fleet  fleet
	owners int
	tier   string
	node   *ringlimit.Node
}

func (f *forward) Start(ctx context.Context, env *Env) (err error) {
	if err := f.fleet.start(ctx, env, f.owners, 0); err != nil {
		return err
	}
	f.node, err = start(ctx, f.fleet.limit, ringlimit.Config{Name: "gateway", Forwarder: true, Join: []string{f.fleet.nodes[0].Gossip}})
	if err != nil {
		return err
	}
	return errors.Join(seesAll(ctx, f.owners+1, f.node), f.fleet.settle(ctx, f.owners+1))
}

// seesAll waits until each node sees so many members.
func seesAll(ctx context.Context, members int, nodes ...*ringlimit.Node) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for _, n := range nodes {
		for len(n.Members()) < members {
			select {
			case <-ctx.Done():
				return errors.New("the nodes do not find each other")
			case <-time.After(20 * time.Millisecond):
			}
		}
	}
	return nil
}

func (f *forward) Caller(int) load.Ask {
	return one(func(ctx context.Context, key string) (bool, error) {
		v, err := f.node.Check(ctx, ringlimit.Request{Key: key, Tier: f.tier})
		return v.Allowed, expect(&v, limit.SourceForwarded, err)
	})
}

func (f *forward) Stop() { leave(f.node) }

// denied is a forward whose one counter is used up: the node in the caller's process
// knows, and answers by itself. Every 5 s it asks again.
type denied struct{ forward }

func (d *denied) Start(ctx context.Context, env *Env) error {
	if err := d.forward.Start(ctx, env); err != nil {
		return err
	}
	_, err := d.node.Check(ctx, ringlimit.Request{Key: load.Name(0), Tier: "refused"})
	return err
}

func (d *denied) Caller(int) load.Ask {
	return one(func(ctx context.Context, key string) (bool, error) {
		v, err := d.node.Check(ctx, ringlimit.Request{Key: key, Tier: "refused"})
		if v.Source == limit.SourceForwarded {
			return v.Allowed, err
		}
		return v.Allowed, expect(&v, limit.SourceDenyCache, err)
	})
}
