package front_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"github.com/ringlimit/ringlimit/front"
	"github.com/ringlimit/ringlimit/limit"
)

// noting is a Checker that notes the costs it was asked for, by key. Those of odd cost
// are bad input.
type noting struct {
	mu    sync.Mutex
	costs map[string][]int64
}

func (n *noting) Check(_ context.Context, req limit.Request) (limit.Verdict, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.costs[req.Key] = append(n.costs[req.Key], req.Cost)
	if req.Cost%2 == 1 {
		return limit.Verdict{}, &limit.InputError{Field: "cost"}
	}
	return limit.Verdict{Limit: req.Cost}, nil
}

func (n *noting) Refund(context.Context, limit.Request) (limit.Verdict, error) {
	panic("nobody refunds")
}

// all is a BatchChecker that counts how often it is asked for many.
type all struct {
	noting
	batches int
}

func (a *all) CheckAll(ctx context.Context, reqs []limit.Request, answer func(int, *limit.Verdict, error)) {
	a.batches++
	for i := range slices.Backward(reqs) {
		v, err := a.Check(ctx, reqs[i])
		answer(i, &v, err)
	}
}

// A Checker without CheckAll keeps the promises of one that has it.
func TestCheckAllOfAnyChecker(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		keys := rapid.SliceOfN(rapid.IntRange(0, 5), 0, 300).Draw(t, "keys")
		reqs := make([]limit.Request, len(keys))
		want := map[string][]int64{}
		for i, k := range keys {
			reqs[i] = limit.Request{Key: fmt.Sprint(k), Cost: int64(i + 1)}
			want[reqs[i].Key] = append(want[reqs[i].Key], reqs[i].Cost)
		}
		c := &noting{costs: map[string][]int64{}}
		answers := make([]int, len(reqs))
		var answering atomic.Int32
		front.CheckAll(context.Background(), c, reqs, func(i int, v *limit.Verdict, err error) {
			if answering.Add(1) != 1 {
				t.Error("two answers at once")
			}
			answers[i]++
			if bad := reqs[i].Cost%2 == 1; bad != (err != nil) || !bad && v.Limit != reqs[i].Cost {
				t.Errorf("check %d: %v, %v", i, v, err)
			}
			answering.Add(-1)
		})
		for i, n := range answers {
			if n != 1 {
				t.Errorf("check %d was answered %d times", i, n)
			}
		}
		for key, costs := range want {
			if got := c.costs[key]; !slices.Equal(got, costs) {
				t.Errorf("key %s was asked %v, want %v", key, got, costs)
			}
		}
	})
}

func TestCheckAllOfABatchChecker(t *testing.T) {
	c := &all{noting: noting{costs: map[string][]int64{}}}
	var order []int
	front.CheckAll(t.Context(), c, make([]limit.Request, 3), func(i int, _ *limit.Verdict, _ error) { order = append(order, i) })
	if c.batches != 1 || !slices.Equal(order, []int{2, 1, 0}) {
		t.Errorf("%d batches, answered %v", c.batches, order)
	}
}

// yes is a Checker that answers at once.
type yes struct{ noting }

func (*yes) Check(context.Context, limit.Request) (limit.Verdict, error) {
	return limit.Verdict{Allowed: true}, nil
}

// A check of a batch costs no more than the goroutine that it is asked on.
func TestCheckAllOfAnyCheckerAllocatesLittle(t *testing.T) {
	reqs := make([]limit.Request, front.MaxAsking)
	for i := range reqs {
		reqs[i].Key = fmt.Sprint(i)
	}
	c, ctx, answer := new(yes), t.Context(), func(int, *limit.Verdict, error) {}
	a := testing.AllocsPerRun(100, func() { front.CheckAll(ctx, c, reqs, answer) })
	if most := 1.5 * float64(len(reqs)); a > most {
		t.Errorf("%v allocations for %d checks, want at most %v", a, len(reqs), most)
	}
}
