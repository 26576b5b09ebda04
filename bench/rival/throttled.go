package rival

import (
	"context"

	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/memstore"

	"github.com/ringlimit/ringlimit/bench/load"
)

// gcra is throttled with its own store in memory, without a bound on its keys.
type gcra struct {
	limit   Limit
	limiter *throttled.GCRARateLimiterCtx
}

func (g *gcra) Start(context.Context, *Env) error {
	store, err := memstore.NewCtx(0)
	if err != nil {
		return err
	}
	quota := throttled.RateQuota{MaxRate: throttled.PerDuration(int(g.limit.Count), g.limit.Window), MaxBurst: int(g.limit.Count) - 1}
	if g.limiter, err = throttled.NewGCRARateLimiterCtx(store, quota); err != nil {
		return err
	}
	g.limiter.SetMaxCASAttemptsLimit(1 << 30) // callers that collide are to try on, not to fail
	return nil
}

func (g *gcra) Caller(int) load.Ask {
	return one(func(ctx context.Context, key string) (bool, error) {
		limited, _, err := g.limiter.RateLimitCtx(ctx, key, 1)
		return !limited, err
	})
}

func (g *gcra) Stop() {}

func (g *gcra) Used(context.Context) (int64, error) { return heap(), nil }
