package counters

import (
	"errors"
	"math/bits"
	"math/rand/v2"
	"runtime"
	"time"

	"github.com/ringlimit/ringlimit/bench/cpu"
	"github.com/ringlimit/ringlimit/limit"
	"github.com/ringlimit/ringlimit/owner"
)

// frame is how many calls come together.
const frame = 64

// Frame is how long a decision takes in frames.
type Frame struct {
	Table, Floor float64   // ns a call, best round of each
	Ratios       []float64 // table over floor, by round
	Allocations  float64   // of the table, per call
}

// roundFrames is how many frames one of the two has before it is the other's turn:
// few, so that some rounds are not disturbed, and what disturbs one disturbs both.
const roundFrames = 200

// frames compares a filled table with the floor, on n counters.
func frames(t *table, n, rounds int) (Frame, error) {
	f := newFloor(n, t.rule)
	buf := make([]byte, 0, 64)
	for i := range n {
		var v limit.Verdict
		c := t.call(buf, i)
		f.decide(start, &c, &v)
	}
	calls := t.random(n)
	results := make([]owner.Result, frame)
	ours := func(calls []owner.Call) { t.DecideFrame(start, calls, results) }
	theirs := func(calls []owner.Call) { f.decideFrame(start, calls, results) }
	var got Frame
	var objects uint64
	for round := range rounds {
		at := round * 2 * roundFrames
		before := cpu.Allocations()
		o := timed(calls, at, ours)
		objects += cpu.Allocations() - before
		if results[0].Err != nil || results[0].Verdict.Limit == 0 {
			return got, errors.New("the table did not decide")
		}
		l := timed(calls, at+roundFrames, theirs)
		got.Ratios = append(got.Ratios, o/l)
		if round == 0 || o < got.Table {
			got.Table = o
		}
		if round == 0 || l < got.Floor {
			got.Floor = l
		}
	}
	got.Allocations = float64(objects) / float64(rounds*roundFrames*frame)
	runtime.KeepAlive(f)
	return got, nil
}

// timed is ns a call.
func timed(calls []owner.Call, from int, decide func([]owner.Call)) float64 {
	begin := time.Now()
	for i := from; i < from+roundFrames; i++ {
		at := i * frame & (len(calls) - 1)
		decide(calls[at : at+frame])
	}
	return float64(time.Since(begin).Nanoseconds()) / (roundFrames * frame)
}

// random is calls of counters below n, too many for a cache. Their names are cut
// off: a counter that exists does not look at it.
func (t *table) random(n int) []owner.Call {
	rng := rand.New(rand.NewPCG(1, 2))
	calls := make([]owner.Call, 1<<min(20, bits.Len(uint(n))))
	buf := make([]byte, 0, 64)
	for i := range calls {
		calls[i] = t.call(buf, rng.IntN(n))
		calls[i].Counter = nil
	}
	return calls
}
