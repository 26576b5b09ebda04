package peerrpc

import (
	"errors"
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

// cutOne breaks one of the latest connections: a lane, or what it belongs to.
func (n *network) cutOne() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if last := min(2, len(n.conns)); last > 0 {
		n.conns[len(n.conns)-1-rand.IntN(last)].Close()
	}
}

// Whichever connection breaks, and whenever, each check ends within its deadline, and
// no more pass than the owner has admitted, who is asked once for each at most.
func TestChecksOverLanesThatBreak(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most, patience = 1500, 50 * time.Millisecond
		table := holding(testPartitions)
		rule, err := limit.NewRule(limit.Spec{Algorithm: limit.TokenBucket, Limit: most, Window: 24 * time.Hour}) // nothing comes back meanwhile
		if err != nil {
			t.Fatal(err)
		}
		var asked, counted atomic.Int64
		p := newPair(t, &scripted{table, func(calls []owner.Call, results []owner.Result) {
			time.Sleep(time.Duration(1+rand.IntN(3)) * time.Millisecond)
			table.DecideFrame(wall(), calls, results)
			for i := range results {
				asked.Add(1)
				if results[i].Err == nil && results[i].Verdict.Allowed {
					counted.Add(1)
				}
			}
		}})
		table.Learn(rule)
		time.Sleep(time.Second)
		var sent, passed, broken atomic.Int64
		var callers, cutter sync.WaitGroup
		for range 20 {
			callers.Go(func() {
				for range 150 {
					sent.Add(1)
					began := time.Now()
					v, err := p.check(rule, "k", 1, patience)
					switch {
					case err == nil && v.Allowed:
						passed.Add(1)
					case errors.Is(err, forward.ErrUnreachable):
						broken.Add(1)
					case err != nil && !errors.Is(err, forward.ErrTimeout) && !errors.Is(err, forward.ErrAbsent):
						t.Errorf("%+v, %v", v, err)
					}
					if took := time.Since(began); took > patience {
						t.Errorf("a check took %v", took)
					}
					time.Sleep(time.Duration(1+rand.IntN(5)) * time.Millisecond)
				}
			})
		}
		stop := make(chan struct{})
		cutter.Go(func() {
			for pause(t.Context(), time.Duration(1+rand.IntN(60))*time.Millisecond, nil) {
				select {
				case <-stop:
					return
				default:
					p.net.cutOne()
				}
			}
		})
		callers.Wait()
		close(stop)
		cutter.Wait()
		if passed.Load() == 0 || broken.Load() == 0 {
			t.Errorf("%d passed, %d broken: the test tests nothing", passed.Load(), broken.Load())
		}
		if passed.Load() > counted.Load() || counted.Load() > most || asked.Load() > sent.Load() {
			t.Errorf("of %d checks the owner was asked %d and admitted %d of %d, and %d passed", sent.Load(), asked.Load(), counted.Load(), most, passed.Load())
		}
		time.Sleep(2 * time.Second)
		if _, err := p.check(rule, "k", 1, time.Second); err != nil {
			t.Errorf("when nothing breaks any more: %v", err)
		}
		began := time.Now()
		p.pool.Close()
		p.stop()
		if took := time.Since(began); took > 100*time.Millisecond {
			t.Errorf("to close took %v", took)
		}
	})
}
