package rival

import (
	"context"
	"sync"

	"golang.org/x/time/rate"

	"github.com/ringlimit/ringlimit/bench/load"
)

// timeRate is golang.org/x/time/rate with a limiter for each key in a sync.Map: it
// has no keys of its own, and this is the fastest map for keys that exist.
type timeRate struct {
	limit    Limit
	limiters sync.Map // of string to *rate.Limiter
}

func (t *timeRate) Start(context.Context, *Env) error { return nil }

func (t *timeRate) Caller(int) load.Ask {
	return one(func(_ context.Context, key string) (bool, error) { return t.of(key).Allow(), nil })
}

func (t *timeRate) of(key string) *rate.Limiter {
	if l, ok := t.limiters.Load(key); ok {
		return l.(*rate.Limiter)
	}
	l, _ := t.limiters.LoadOrStore(key, rate.NewLimiter(rate.Limit(float64(t.limit.Count)/t.limit.Window.Seconds()), int(t.limit.Count)))
	return l.(*rate.Limiter)
}

func (t *timeRate) Stop() {}

func (t *timeRate) Used(context.Context) (int64, error) { return heap(), nil }
