package load

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Ask takes one unit of each key and returns how many of them were admitted. One
// caller uses it, and does not keep keys.
type Ask func(ctx context.Context, keys []string) (admitted int, err error)

// Spec is one piece of load.
type Spec struct {
	Callers int
	Batch   int // keys in one question
	Keys    *Keys
	Warm    time.Duration // is not measured
	Slice   time.Duration // is
	// Every so many questions of a caller one is timed: to read the clock twice
	// takes longer than the fastest limiters do.
	Timed int
	// Refused says that every check has to be refused, not admitted.
	Refused bool
}

// Outcome is what was answered within the slice.
type Outcome struct {
	Checks int64
	Took   time.Duration
	Waits  *hdrhistogram.Histogram // of whole questions, in nanoseconds
}

// Run puts the load on, and calls mark where the slice begins and where it ends.
// An error of one question, or one wrong verdict at any time, fails it as a whole:
// a limiter that does not answer is fast.
func Run(ctx context.Context, s Spec, caller func(i int) Ask, mark func()) (Outcome, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	callers := make([]*asker, s.Callers)
	var phase atomic.Int32
	var all sync.WaitGroup
	for i := range callers {
		callers[i] = &asker{spec: &s, ask: caller(i), phase: &phase, place: i * (draws / s.Callers), waits: newHistogram()}
		all.Go(func() {
			if err := callers[i].run(ctx); err != nil {
				cancel(err)
			}
		})
	}
	pause(ctx, s.Warm)
	mark()
	began := time.Now()
	phase.Store(measuring)
	pause(ctx, s.Slice)
	phase.Store(over)
	took := time.Since(began)
	mark()
	all.Wait()
	if err := context.Cause(ctx); err != nil {
		return Outcome{}, err
	}
	return sum(callers, took), nil
}

const (
	warming int32 = iota
	measuring
	over
)

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// newHistogram reaches from 1 ns to a minute, to 1 %.
func newHistogram() *hdrhistogram.Histogram { return hdrhistogram.New(1, int64(time.Minute), 2) }

// asker is one caller.
type asker struct {
	spec   *Spec
	ask    Ask
	phase  *atomic.Int32
	place  int // in the sequence of keys
	checks int64
	waits  *hdrhistogram.Histogram
}

func (a *asker) run(ctx context.Context) error {
	keys := make([]string, a.spec.Batch)
	want := len(keys)
	if a.spec.Refused {
		want = 0
	}
	var began time.Time
	for i := 0; a.phase.Load() != over; i++ {
		a.next(keys)
		timed := i%a.spec.Timed == 0
		if timed {
			began = time.Now()
		}
		admitted, err := a.ask(ctx, keys)
		if err != nil {
			return err
		}
		if admitted != want {
			return fmt.Errorf("%d of %d checks were admitted, where %d had to be", admitted, len(keys), want)
		}
		if a.phase.Load() != measuring {
			continue
		}
		a.checks += int64(len(keys))
		if timed {
			_ = a.waits.RecordValue(int64(time.Since(began))) // over a minute there is no slice left
		}
	}
	return nil
}

func (a *asker) next(keys []string) {
	for i := range keys {
		keys[i] = a.spec.Keys.at(a.place)
		a.place++
	}
}

func sum(callers []*asker, took time.Duration) Outcome {
	o := Outcome{Took: took, Waits: newHistogram()}
	for _, c := range callers {
		o.Checks += c.checks
		o.Waits.Merge(c.waits)
	}
	return o
}
