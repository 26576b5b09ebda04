package ringlimit

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// charge is what a client asks for, answer what it hears: the zero answer is
// that no owner decided.
type charge struct {
	refund bool
	cost   int64
}

type answer struct {
	decided, allowed bool
	remaining        int64
}

// oneCounter is the law: a single counter of 20 that nobody else touches. Its
// state is the set of what may be used, one bit for each amount: without an
// owner's verdict a charge may have been counted or not. Where refunds may be
// undone, more may be used at any time, and never less.
func oneCounter(undone bool) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return uint32(1) },
		Step: func(state, input, output any) (bool, any) {
			may, next := state.(uint32), uint32(0)
			if undone {
				may = -(may & -may) // all from the lowest bit on
			}
			for used := range int64(frozenLimit + 1) {
				if may>>used&1 != 0 {
					next |= step(used, input.(charge), output.(answer))
				}
			}
			return next != 0, next
		},
	}
}

// step is the set of what is used after a charge that was answered so; empty if
// it cannot have been.
func step(used int64, c charge, a answer) uint32 {
	after, passes := used+c.cost, used+c.cost <= frozenLimit
	if c.refund {
		after, passes = max(0, used-c.cost), true
	}
	if !passes {
		after = used
	}
	switch {
	case !a.decided:
		return 1<<used | 1<<after
	case a.allowed == passes && a.remaining == frozenLimit-after:
		return 1 << after
	}
	return 0
}

// counter is which one was charged, and whether its clients give back as well.
type counter struct {
	tier, key string
	givesBack bool
}

// history is what each counter was asked, and what it answered.
type history struct {
	clock atomic.Int64 // orders calls and returns: a bubble's clock stands still meanwhile

	mu   sync.Mutex
	asks map[counter][]porcupine.Operation
}

func (h *history) record(client int, at counter, c charge, ask func() answer) answer {
	op := porcupine.Operation{ClientId: client, Input: c, Call: h.clock.Add(1)}
	a := ask()
	h.note(at, op, a)
	return a
}

// note ends an operation.
func (h *history) note(at counter, op porcupine.Operation, a answer) {
	op.Output, op.Return = a, h.clock.Add(1)
	if !a.decided {
		op.Return = math.MaxInt64 // it may be counted whenever it arrives
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asks[at] = append(h.asks[at], op)
}

// judge fails the test for counters whose history no order explains. moved says
// that counters have changed hands.
func (h *history) judge(t *testing.T, moved bool) {
	t.Helper()
	failed := 0
	for at, ops := range h.asks {
		result, info := porcupine.CheckOperationsVerbose(oneCounter(moved && at.givesBack), ops, time.Minute)
		if result == porcupine.Ok {
			continue
		}
		if failed++; failed <= 3 { // one would do; the rest only repeats it
			t.Errorf("%v: %s: no order explains its %d charges\n%s", at, result, len(ops), unexplained(ops, &info))
		}
	}
	t.Logf("%d of %d counters failed", failed, len(h.asks))
}

// unexplained lists what the longest explanation leaves out, in the order of the
// calls, with what came before.
func unexplained(ops []porcupine.Operation, info *porcupine.LinearizationInfo) (text string) {
	longest := slices.MaxFunc(append(info.PartialLinearizations()[0], nil), func(a, b []int) int { return cmp.Compare(len(a), len(b)) })
	const context = 8
	for _, i := range longest[max(0, len(longest)-context):] {
		text += describe("explained", ops[i])
	}
	rest := 0
	for i, op := range ops {
		if !slices.Contains(longest, i) && rest < context {
			text += describe("not", op)
			rest++
		}
	}
	return text
}

func describe(what string, op porcupine.Operation) string {
	return fmt.Sprintf("%9s [%d, %d] client %d: %+v -> %+v\n", what, op.Call, op.Return, op.ClientId, op.Input, op.Output)
}

// The judge itself: what one counter could have answered, and what it could not.
func TestOneCounter(t *testing.T) {
	took := func(remaining int64) answer { return answer{true, true, remaining} }
	refused := func(remaining int64) answer { return answer{true, false, remaining} }
	type ask struct {
		c      charge
		a      answer
		called int64
	}
	const ok, illegal = porcupine.Ok, porcupine.Illegal
	for name, test := range map[string]struct {
		asks         []ask // each returns 10 after it was called
		want, undone porcupine.CheckResult
	}{
		"one after the other":    {[]ask{{charge{cost: 15}, took(5), 0}, {charge{cost: 6}, refused(5), 20}, {charge{cost: 5}, took(0), 40}}, ok, ok},
		"at once, either order":  {[]ask{{charge{cost: 1}, took(18), 0}, {charge{cost: 1}, took(19), 5}}, ok, ok},
		"out of order":           {[]ask{{charge{cost: 1}, took(18), 0}, {charge{cost: 1}, took(19), 20}}, illegal, illegal},
		"counted twice":          {[]ask{{charge{cost: 1}, took(19), 0}, {charge{cost: 1}, took(17), 20}}, illegal, ok},
		"forgotten":              {[]ask{{charge{cost: 1}, took(19), 0}, {charge{cost: 1}, took(19), 20}}, illegal, illegal},
		"over the limit":         {[]ask{{charge{cost: 20}, took(0), 0}, {charge{cost: 1}, took(0), 20}}, illegal, illegal},
		"refused below it":       {[]ask{{charge{cost: 19}, took(1), 0}, {charge{cost: 1}, refused(1), 20}}, illegal, illegal},
		"a refund":               {[]ask{{charge{cost: 9}, took(11), 0}, {charge{true, 4}, took(15), 20}, {charge{true, 9}, took(20), 40}}, ok, ok},
		"a refund undone":        {[]ask{{charge{cost: 9}, took(11), 0}, {charge{true, 4}, took(15), 20}, {charge{cost: 1}, took(10), 40}}, illegal, ok},
		"a refund too large":     {[]ask{{charge{cost: 9}, took(11), 0}, {charge{true, 4}, took(16), 20}}, illegal, illegal},
		"undecided, counted":     {[]ask{{charge{cost: 9}, answer{}, 0}, {charge{cost: 1}, took(10), 20}}, ok, ok},
		"undecided, not counted": {[]ask{{charge{cost: 9}, answer{}, 0}, {charge{cost: 1}, took(19), 20}}, ok, ok},
		"undecided, counted late": {[]ask{{charge{cost: 9}, answer{}, 0}, {charge{cost: 1}, took(19), 20}, {charge{cost: 1}, took(9), 40},
			{charge{cost: 1}, took(8), 60}}, ok, ok},
		"undecided, counted twice": {[]ask{{charge{cost: 9}, answer{}, 0}, {charge{cost: 1}, took(1), 20}}, illegal, ok},
	} {
		h := history{asks: map[counter][]porcupine.Operation{}}
		for _, ask := range test.asks {
			h.clock.Store(ask.called)
			h.record(0, counter{}, ask.c, func() answer { h.clock.Add(9); return ask.a })
		}
		for undone, want := range map[bool]porcupine.CheckResult{false: test.want, true: test.undone} {
			if got := porcupine.CheckOperationsTimeout(oneCounter(undone), h.asks[counter{}], 0); got != want {
				t.Errorf("%s (refunds may be undone: %v): %s", name, undone, got)
			}
		}
	}
}
