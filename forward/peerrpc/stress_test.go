package peerrpc

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ringlimit/ringlimit/forward"
	"github.com/ringlimit/ringlimit/limit"
	"github.com/ringlimit/ringlimit/owner"
)

// However callers come and go, an answer reaches the one who asked. Each check
// has a cost of its own, and the owner sends it back. No time is 0: goroutines
// of a bubble that arm timers for now crash the race detector (Go 1.26).
func TestAnswersReachTheirAskers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rule := tokens(t, 1)
		table := holding(testPartitions)
		table.Learn(rule)
		p := newPair(t, &scripted{table, func(calls []owner.Call, results []owner.Result) {
			time.Sleep(time.Duration(rand.IntN(4)) * time.Millisecond)
			for i := range calls {
				results[i] = owner.Result{Verdict: limit.Verdict{Allowed: true, Remaining: calls[i].Cost}}
			}
		}})
		synctest.Wait()
		var cost, answers, overdue, cancelled atomic.Int64
		var wg sync.WaitGroup
		for g := range 100 {
			wg.Go(func() {
				for range 100 {
					mine := cost.Add(1)
					ctx, cancel := context.WithCancel(context.Background())
					if g%3 == 0 {
						time.AfterFunc(time.Duration(1+rand.IntN(8))*time.Millisecond, cancel)
					}
					v, err := p.peer.Check(ctx, callOf(rule, fmt.Sprint(mine), mine), within(time.Duration(1+rand.IntN(10))*time.Millisecond))
					cancel()
					switch {
					case err == nil && v.Remaining == mine:
						answers.Add(1)
					case errors.Is(err, forward.ErrTimeout):
						overdue.Add(1)
					case errors.Is(err, context.Canceled):
						cancelled.Add(1)
					default:
						t.Errorf("check %d: %+v, %v", mine, v, err)
					}
				}
			})
		}
		wg.Wait()
		if answers.Load() == 0 || overdue.Load() == 0 || cancelled.Load() == 0 {
			t.Errorf("%d answers, %d overdue, %d cancelled: the test tests nothing", answers.Load(), overdue.Load(), cancelled.Load())
		}
	})
}

// The same with the connection breaking under it again and again.
func TestAnswersReachTheirAskersOverBrokenConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rule := tokens(t, 1)
		table := holding(testPartitions)
		table.Learn(rule)
		p := newPair(t, &scripted{table, func(calls []owner.Call, results []owner.Result) {
			time.Sleep(time.Duration(rand.IntN(3)) * time.Millisecond)
			for i := range calls {
				results[i] = owner.Result{Verdict: limit.Verdict{Allowed: true, Remaining: calls[i].Cost}}
			}
		}})
		synctest.Wait()
		var cost, answers, broken atomic.Int64
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				for range 100 {
					mine := cost.Add(1)
					v, err := p.check(rule, fmt.Sprint(mine), mine, 20*time.Millisecond)
					switch {
					case err == nil && v.Remaining == mine:
						answers.Add(1)
					case errors.Is(err, forward.ErrUnreachable):
						broken.Add(1)
					case !errors.Is(err, forward.ErrTimeout):
						t.Errorf("check %d: %+v, %v", mine, v, err)
					}
					time.Sleep(time.Duration(rand.IntN(5)) * time.Millisecond)
				}
			})
		}
		cutting := true
		wg.Go(func() {
			for range 20 {
				time.Sleep(15 * time.Millisecond)
				p.net.cut()
			}
			cutting = false
		})
		wg.Wait()
		if answers.Load() == 0 || broken.Load() == 0 || cutting {
			t.Errorf("%d answers, %d broken: the test tests nothing", answers.Load(), broken.Load())
		}
		time.Sleep(time.Second) // answers that nobody waits for
		b := p.peer.(*conn).batch
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.pending != 0 || b.unanswered != 0 || len(b.queue) != 0 {
			t.Errorf("left behind: %d pending, %d unanswered, %d queued", b.pending, b.unanswered, len(b.queue))
		}
	})
}
