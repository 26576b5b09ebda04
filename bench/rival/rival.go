// Package rival holds the contenders, one file each: ringlimit by its doors, other
// limiters, and what the wire alone costs.
package rival

import (
	"context"
	"runtime"
	"time"

	"github.com/ringlimit/ringlimit/bench/load"
)

// Rival is one contender. A worker process starts it once, puts loads on it one
// after the other, and stops it.
type Rival interface {
	// Start makes it ready to answer; an error says why it cannot be had. What it
	// starts through env is ended with env.
	Start(ctx context.Context, env *Env) error
	// Caller is what caller number i asks with.
	Caller(i int) load.Ask
	// Stop ends what runs in this process.
	Stop()
}

// Sized is a Rival that can tell what its counters take.
type Sized interface {
	// Used is the bytes that are allocated now; not what the process holds, which
	// for a Go heap is up to twice as much.
	Used(ctx context.Context) (int64, error)
}

// Limit is what every counter has: a token bucket of Count in Window, burst Count.
type Limit struct {
	Count  int64
	Window time.Duration
}

// Limits of the loads. Nobody is ever refused by the first over a network. Within a
// process one key is asked for more often than that; there a bucket is so large that no
// run empties it, and a token takes a second to come back, so that a counter stays in
// use. The third is for counters that stay for hours.
var (
	overNetwork = Limit{1_000_000, time.Second}
	inProcess   = Limit{1_000_000_000, 30 * 365 * 24 * time.Hour}
	forMemory   = Limit{10, 24 * time.Hour}
)

// Entry is a line of the list of contenders.
type Entry struct {
	Name string // short, for the table and --only
	What string // one line for people
	// Kind sorts the table: what is compared is done at the same distance.
	Kind Kind
	// Batch is how many keys are asked for at once; 0 is 1.
	Batch int
	// Refused says that the load is on a counter that is used up.
	Refused bool
	// Only lists the cells that it runs in; nil: those of the plan.
	Only []load.Cell
	// Narrow says that a plan may spare it all but the first kind of keys: its kind is
	// about where the two ends are, and another one has all the keys.
	Narrow bool
	// Also lists cells that it runs in besides those of the plan.
	Also []load.Cell
	// Memory says that its bytes per counter are measured.
	Memory bool

	make func(Limit) Rival
}

// Kind is how far away the counter is.
type Kind string

// The kinds.
const (
	InProcess Kind = "in process"               // the limiter is in the caller's process
	Inside    Kind = "one hop, all inside"      // … and so is another node, which decides
	OneServer Kind = "one hop to one server"    // the caller's process asks another one, which decides
	TwoOwners Kind = "one hop to two owners"    // … or two, which share the counters
	TenNodes  Kind = "ten nodes in one process" // of which each asks each
	Service   Kind = "service"                  // a client asks a cluster or server, which may ask on
	Batched   Kind = "batch"                    // the same with many checks in one question
)

// ForLoad makes the rival for the loads.
func (e *Entry) ForLoad() Rival {
	if e.Kind == InProcess {
		return e.make(inProcess)
	}
	return e.make(overNetwork)
}

// ForMemory makes it to be filled with counters.
func (e *Entry) ForMemory() Rival { return e.make(forMemory) }

// Timed is every how many questions the load times one.
func (e *Entry) Timed() int {
	if e.Kind == InProcess {
		return 64
	}
	return 1
}

// Slices is how many times as long as others it is measured: few batches end in one
// slice.
func (e *Entry) Slices() int {
	if e.Kind == Batched {
		return 4
	}
	return 1
}

// Keys is how many keys a question has.
func (e *Entry) Keys() int { return max(1, e.Batch) }

// heap is what is allocated in this process.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what the first one finalized is gone now
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// one is an Ask for rivals that take one key at a time.
func one(check func(ctx context.Context, key string) (bool, error)) load.Ask {
	return func(ctx context.Context, keys []string) (admitted int, err error) {
		for _, key := range keys {
			allowed, err := check(ctx, key)
			if err != nil {
				return 0, err
			}
			if allowed {
				admitted++
			}
		}
		return admitted, nil
	}
}
