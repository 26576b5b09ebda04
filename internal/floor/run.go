package floor

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Run is what one contender did.
type Run struct {
	N      int           // checks
	Took   time.Duration // on the clock
	Used   time.Duration // of all processors, user and system
	Allocs uint64
	Waits  []time.Duration // of each check; with one caller only
}

// Measure makes n checks with so many callers at once. ask is told which caller asks,
// from 0 up, and the how-manieth check it is. The error is the first one of ask.
func Measure(callers, n int, ask func(caller, i int) error) (Run, error) {
	r := Run{N: n}
	if callers == 1 {
		r.Waits = make([]time.Duration, 0, n)
	}
	var next atomic.Int64
	var failed atomic.Pointer[failure]
	var all sync.WaitGroup
	allocs, used, began := allocated(), processors(), time.Now()
	for c := range callers {
		all.Go(func() {
			for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
				var asked time.Time
				if r.Waits != nil {
					asked = time.Now()
				}
				if err := ask(c, int(i)); err != nil {
					failed.CompareAndSwap(nil, &failure{err})
					return
				}
				if r.Waits != nil {
					r.Waits = append(r.Waits, time.Since(asked))
				}
			}
		})
	}
	all.Wait()
	r.Took, r.Used, r.Allocs = time.Since(began), processors()-used, allocated()-allocs
	if f := failed.Load(); f != nil {
		return r, f.err
	}
	return r, nil
}

type failure struct{ err error }

// Add counts another run of the same contender.
func (r *Run) Add(o Run) {
	r.N, r.Took, r.Used, r.Allocs = r.N+o.N, r.Took+o.Took, r.Used+o.Used, r.Allocs+o.Allocs
	r.Waits = append(r.Waits, o.Waits...)
}

// Rate is checks a second.
func (r *Run) Rate() float64 { return float64(r.N) / r.Took.Seconds() }

// CPU is processor time a check, in nanoseconds. On a machine with other work it says
// more than Rate does.
func (r *Run) CPU() float64 { return float64(r.Used) / float64(r.N) }

// AllocsPer is allocations a check.
func (r *Run) AllocsPer() float64 { return float64(r.Allocs) / float64(r.N) }

// P50 is the median wait in nanoseconds.
func (r *Run) P50() float64 {
	slices.Sort(r.Waits)
	return float64(r.Waits[len(r.Waits)/2])
}

func processors() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Mallocs
}
