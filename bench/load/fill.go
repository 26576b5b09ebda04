package load

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
)

// Fill asks for each of the first n keys once, so that there are n counters.
func Fill(ctx context.Context, callers, batch, n int, caller func(i int) Ask) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var all sync.WaitGroup
	for i := range callers {
		ask := caller(i)
		all.Go(func() {
			keys := make([]string, 0, batch)
			for ctx.Err() == nil {
				from := int(next.Add(int64(batch))) - batch
				if keys = names(keys[:0], from, min(from+batch, n)); len(keys) == 0 {
					return
				}
				if admitted, err := ask(ctx, keys); err != nil || admitted != len(keys) {
					cancel(fmt.Errorf("%d of %d new counters admit one: %w", admitted, len(keys), orNone(err)))
				}
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

func orNone(err error) error {
	if err == nil {
		return errRefused
	}
	return err
}

var errRefused = errors.New("the others were refused")

func names(keys []string, from, to int) []string {
	for i := from; i < to; i++ {
		keys = append(keys, Name(i))
	}
	return keys
}
