package load

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/ringlimit/ringlimit/chaos/history"
)

// Filling is fast, but must not starve the nodes: a check that waits for the
// processor longer than its deadline has no owner's verdict, and that would be
// the harness's fault.
const (
	perBatch = 250 // /v1/checks takes 1,000
	perKey   = 100 // … of them for one key, at most
	fillers  = 2   // batches at once
	pause    = 100 * time.Millisecond
)

// open is a key that its owner has not refused yet.
type open struct {
	key  uint32
	want int // how many checks its next batch holds
}

// Fill asks for each key until its owner itself refuses it. A deny cache does not
// count: it would hide a counter that was lost. Afterwards totals tell what
// each key was admitted.
func (c *Clients) Fill(ctx context.Context, keys []uint32) error {
	var left []*open
	for _, k := range keys {
		left = append(left, &open{k, 10})
	}
	for len(left) > 0 {
		before := len(left)
		admitted := c.round(ctx, left)
		left = stillOpen(left)
		if ctx.Err() != nil {
			return fmt.Errorf("%d of %d keys were not refused by their owner in time; the last error: %s", len(left), len(keys), c.LastError())
		}
		if len(left) == before && !admitted {
			wait(ctx, pause)
		}
	}
	return nil
}

func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

func stillOpen(all []*open) (left []*open) {
	for _, o := range all {
		if o.want > 0 {
			left = append(left, o)
		}
	}
	return left
}

// round asks for every open key and says whether anything was admitted.
func (c *Clients) round(ctx context.Context, left []*open) (admitted bool) {
	var workers sync.WaitGroup
	var mu sync.Mutex
	todo := make(chan []*open)
	for range fillers {
		workers.Go(func() {
			for batch := range todo {
				any := c.fillBatch(ctx, batch)
				mu.Lock()
				admitted = admitted || any
				mu.Unlock()
			}
		})
	}
	for len(left) > 0 {
		n, size := 0, 0
		for n < len(left) && size+left[n].want <= perBatch {
			size += left[n].want
			n++
		}
		todo <- left[:n]
		left = left[n:]
	}
	close(todo)
	workers.Wait()
	return admitted
}

// fillBatch asks for keys as often as each wants and decides what each wants
// next: 0 when its owner refused it.
func (c *Clients) fillBatch(ctx context.Context, batch []*open) (admitted bool) {
	var keys []uint32
	for _, o := range batch {
		for range o.want {
			keys = append(keys, o.key)
		}
	}
	answers := c.batch(ctx, keys)
	if answers == nil {
		return false
	}
	for _, o := range batch {
		mine := answers[:o.want]
		answers = answers[o.want:]
		admitted = o.learn(mine) || admitted
	}
	return admitted
}

func (o *open) learn(answers []answer) (admitted bool) {
	last := &answers[len(answers)-1]
	o.want = int(min(max(last.Remaining+1, 1), perKey))
	for i := range answers {
		a := &answers[i]
		admitted = admitted || a.Allowed
		if !a.Allowed && a.Source == history.Owner.String() {
			o.want = 0
		}
	}
	return admitted
}

// Resets asks, without taking anything, when each key's whole budget is back.
func (c *Clients) Resets(ctx context.Context, keys []uint32) (map[uint32]time.Time, error) {
	at := map[uint32]time.Time{}
	for _, key := range keys {
		a := c.ask(key)
		a.Peek = true
		var got answer
		_, fault, ok := c.call(ctx, func(ctx context.Context, d *Door) (err error) {
			got, err = d.check(ctx, a)
			return err
		})
		if !ok || fault != history.Answered || got.Source == history.Fallback.String() {
			return nil, fmt.Errorf("%s could not be asked for: %s", a.Key, c.LastError())
		}
		at[key] = got.ResetAt
	}
	return at, nil
}
