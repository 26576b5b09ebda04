package owner

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ringlimit/ringlimit/limit"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Many callers of one counter are admitted exactly as often as its limit says,
// one by one or in frames, with the sweep at work.
func TestExactlyTheLimitIsAdmitted(t *testing.T) {
	for _, a := range algorithms {
		tab := holding(Config{Partitions: 8})
		rule := mustRule(t, per(1000, 1000*time.Hour, a))
		if a == limit.LeakyBucket {
			rule = mustRule(t, limit.Spec{Algorithm: a, Limit: 1, Window: 10 * time.Hour, Burst: 999})
		}
		var admitted atomic.Int64
		var wg sync.WaitGroup
		for w := range 16 {
			wg.Go(func() {
				calls, results := make([]Call, 10), make([]Result, 10)
				for i := range 20 {
					for k := range calls {
						calls[k] = *on(tab, key(w*1000+i*10+k), rule)
					}
					calls[i%10] = *on(tab, "shared", rule)
					tab.DecideFrame(start, calls, results)
					if results[i%10].Verdict.Allowed {
						admitted.Add(1)
					}
					for range 9 {
						if v, _ := answer(tab, start, &calls[i%10]); v.Allowed {
							admitted.Add(1)
						}
					}
				}
			})
		}
		wg.Go(func() {
			for range 20 {
				tab.Sweep(start, 8)
				tab.Stats()
			}
		})
		wg.Wait()
		if admitted.Load() != 1000 {
			t.Errorf("%v: %d admitted; want 1000", a, admitted.Load())
		}
		check(t, tab)
	}
}

// Case B19, golang/go#45245: 10 a second with a capacity of one, 5,000 callers
// for a second.
func TestB19ManyCallersForASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tab := holding(Config{Partitions: 1})
		rule := mustRule(t, limit.Spec{Algorithm: limit.TokenBucket, Limit: 10, Window: time.Second, Burst: 1})
		end := time.Now().Add(time.Second)
		var admitted atomic.Int64
		var wg sync.WaitGroup
		for range 5000 {
			wg.Go(func() {
				c := on(tab, "a", rule)
				for now := time.Now(); !now.After(end); now = time.Now() {
					if v, _ := answer(tab, now.UnixNano(), c); v.Allowed {
						admitted.Add(1)
					}
					time.Sleep(time.Duration(1+rand.IntN(200)) * time.Millisecond)
				}
			})
		}
		wg.Wait()
		if n := admitted.Load(); n < 10 || n > 11 {
			t.Errorf("%d admitted; want at most 11, and no caller to be in vain", n)
		}
	})
}

// Counters that are dropped, made again and refused while others use them: in
// each window nobody gets more than the limit, and none is lost.
func TestChurnWithConcurrentSweep(t *testing.T) {
	const limited, clients, windows = 3, 50, 40
	tab := holding(Config{Partitions: 2, Memory: 1 << 20})
	rule := mustRule(t, per(limited, time.Second, limit.FixedWindow))
	var clock atomic.Int64
	clock.Store(start - start%int64(time.Second))
	var admitted [clients]atomic.Int64
	var callers, sweeper sync.WaitGroup
	var stop atomic.Bool
	sweeper.Go(func() {
		for !stop.Load() {
			tab.Sweep(clock.Load(), 1)
		}
	})
	for range 4 {
		callers.Go(func() {
			for range windows * clients {
				i := rand.IntN(clients)
				// The clock moves on while callers are on their way to the lock.
				now := clock.Add(int64(time.Second) / (4 * clients))
				if v, _ := answer(tab, now, on(tab, key(i), rule)); v.Allowed {
					admitted[i].Add(1)
				}
			}
		})
	}
	callers.Wait()
	stop.Store(true)
	sweeper.Wait()
	for i := range admitted {
		if n := admitted[i].Load(); n > limited*(windows+1) {
			t.Errorf("client %d: %d admitted in %d windows of %d", i, n, windows, limited)
		}
	}
	check(t, tab)
}

// Segments are split, built anew and merged, partitions frozen, copied out and merged
// with their own copy, all under callers of frames: long-lived counters admit exactly
// their limit.
func TestExactWhileSegmentsComeAndGo(t *testing.T) {
	const most, counters = 40, 50
	tab := holding(Config{Partitions: 2})
	tab.large = 32
	long, brief := mustRule(t, per(most, 1000*time.Hour, limit.SlidingWindowLog)), mustRule(t, per(5, time.Millisecond, limit.FixedWindow))
	var clock, admitted atomic.Int64
	clock.Store(start)
	var callers, others sync.WaitGroup
	for w := range 4 {
		callers.Go(func() {
			calls, results := make([]Call, 20), make([]Result, 20)
			for n := range 200 {
				for i := range calls {
					calls[i] = *on(tab, key((w*200+n)*20+i), brief)
				}
				for i := range 10 {
					calls[2*i] = *on(tab, "long"+key((n*10+i)%counters), long)
				}
				tab.DecideFrame(clock.Add(1000), calls, results)
				for i := range 10 {
					if results[2*i].Taken {
						admitted.Add(1)
					}
				}
			}
		})
	}
	var stop atomic.Bool
	for p := range 2 {
		others.Go(func() {
			for !stop.Load() {
				tab.Freeze(p)
				all := exported(t, tab, p, clock.Load(), 50)
				tab.Thaw(p)
				imported(t, tab, p, clock.Load(), all)
				clock.Add(int64(time.Millisecond))
				tab.Sweep(clock.Load(), 2)
			}
		})
	}
	callers.Wait()
	stop.Store(true)
	others.Wait()
	for i := range counters { // those of frames that met a frozen partition
		for range most {
			if v, err := answer(tab, clock.Load(), on(tab, "long"+key(i), long)); err == nil && v.Allowed {
				admitted.Add(1)
			}
		}
	}
	if n := admitted.Load(); n != most*counters {
		t.Errorf("%d admitted; want %d", n, most*counters)
	}
	if n := len(tab.partitions[0].directory()); n < 4 {
		t.Errorf("there were %d segments at once: this has tested little", n)
	}
	check(t, tab)
}
