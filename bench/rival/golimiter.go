package rival

import (
	"context"

	"github.com/sethvargo/go-limiter"
	"github.com/sethvargo/go-limiter/memorystore"

	"github.com/ringlimit/ringlimit/bench/load"
)

// goLimiter is sethvargo/go-limiter's store in memory, at its defaults. When an
// interval is over it gives back interval/tokens of its tokens, in nanoseconds, which
// is all of them only up to 31,622 a second. No interval ends while a load runs.
type goLimiter struct {
	limit Limit
	store limiter.Store
}

func (g *goLimiter) Start(context.Context, *Env) (err error) {
	g.store, err = memorystore.New(&memorystore.Config{Tokens: uint64(g.limit.Count), Interval: g.limit.Window})
	return err
}

func (g *goLimiter) Caller(int) load.Ask {
	return one(func(ctx context.Context, key string) (bool, error) {
		_, _, _, ok, err := g.store.Take(ctx, key)
		return ok, err
	})
}

func (g *goLimiter) Stop() { _ = g.store.Close(context.Background()) }

func (g *goLimiter) Used(context.Context) (int64, error) { return heap(), nil }
