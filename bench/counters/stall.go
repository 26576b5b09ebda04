package counters

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/ringlimit/ringlimit/limit"
	"github.com/ringlimit/ringlimit/owner"
)

// Stall is how long a caller waits for a frame, at p99.99 and at most.
type Stall struct{ Idle, Growth, Expiry Wait }

// Wait is two quantiles.
type Wait struct{ P9999, Most time.Duration }

// Beyond is the longer of what growth and expiry add at p99.99.
func (s Stall) Beyond() time.Duration {
	return max(0, s.Growth.P9999-s.Idle.P9999, s.Expiry.P9999-s.Idle.P9999)
}

// stallPartitions is what one of sixteen nodes holds: partitions of ten million
// counters together are large then.
const stallPartitions = 64

// stalls fills four fifths of n counters. Two callers ask for them in frames: first
// nothing else happens; then others make the last fifth; then all have expired, and
// the sweep drops them without a pause. Each lasts so long, or until all is made.
func stalls(ctx context.Context, n int, lasts time.Duration) (s Stall, err error) {
	t, err := newTable(stallPartitions, true)
	if err != nil {
		return s, err
	}
	old := n * 4 / 5
	if err := t.fill(0, old); err != nil {
		return s, err
	}
	calls := t.random(old)
	idle := func(stop context.CancelFunc) error { return sleep(ctx, lasts, stop) }
	grow := func(stop context.CancelFunc) error { defer stop(); return t.fill(old, n) }
	expire := func(stop context.CancelFunc) error { defer stop(); t.Sweep(start+later, stallPartitions); return nil }
	if s.Idle, err = t.ask(ctx, calls, 0, idle); err != nil {
		return s, err
	}
	if s.Growth, err = t.ask(ctx, calls, 0, grow); err != nil {
		return s, err
	}
	s.Expiry, err = t.ask(ctx, calls, later, expire)
	return s, err
}

// later is when every counter equals a fresh one.
const later = int64(48 * time.Hour)

func sleep(ctx context.Context, d time.Duration, stop context.CancelFunc) error {
	defer stop()
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
	return ctx.Err()
}

// ask keeps two callers asking while something is done.
func (t *table) ask(ctx context.Context, calls []owner.Call, after int64, do func(stop context.CancelFunc) error) (Wait, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var all, asking sync.WaitGroup
	var failed atomic.Pointer[error]
	waits := make([]*hdrhistogram.Histogram, min(2, runtime.GOMAXPROCS(0)))
	for i := range waits {
		waits[i] = hdrhistogram.New(1, int64(time.Minute), 3)
		asking.Add(1)
		all.Go(func() {
			if err := t.askOne(ctx, calls, start+after, waits[i], uint64(i), asking.Done); err != nil {
				failed.CompareAndSwap(nil, &err)
				stop()
			}
		})
	}
	asking.Wait()
	err := do(stop)
	all.Wait()
	if p := failed.Load(); err == nil && p != nil {
		err = *p
	}
	for _, w := range waits[1:] {
		waits[0].Merge(w)
	}
	return Wait{time.Duration(waits[0].ValueAtQuantile(99.99)), time.Duration(waits[0].Max())}, err
}

// look makes the calls peeks: what has expired is not to be made anew.
func look(calls []owner.Call) {
	for i := range calls {
		calls[i].Mode = limit.Peek
	}
}

// askOne is one caller, until ctx ends; it says when it has asked once. It lets others go first after each frame: on
// two processors, of which one is at work, callers would else starve each other.
func (t *table) askOne(ctx context.Context, calls []owner.Call, now int64, waits *hdrhistogram.Histogram, seed uint64, asked func()) error {
	first := sync.OnceFunc(asked)
	defer first()
	rng := rand.New(rand.NewPCG(seed, 3))
	mine, results := make([]owner.Call, frame), make([]owner.Result, frame)
	for ctx.Err() == nil {
		at := rng.IntN(len(calls) - frame)
		copy(mine, calls[at:at+frame])
		if now > start {
			look(mine)
		}
		begin := time.Now()
		t.DecideFrame(now, mine, results)
		_ = waits.RecordValue(int64(time.Since(begin)))
		for i := range results {
			if results[i].Err != nil {
				return results[i].Err
			}
		}
		first()
		runtime.Gosched()
	}
	return nil
}
