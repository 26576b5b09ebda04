package owner

import (
	"math"
	"math/rand/v2"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/ringlimit/ringlimit/limit"
)

// The benchmarks with ten million counters are in tenmillion_bench_test.go.

func BenchmarkDecideTenThousand(b *testing.B) { benchmarkDecide(b, 10_000) }
func BenchmarkDecideMillion(b *testing.B)     { benchmarkDecide(b, 1_000_000) }
func BenchmarkFrameTenThousand(b *testing.B)  { benchmarkFrame(b, fill(b, 10_000), 10_000) }
func BenchmarkFrameMillion(b *testing.B)      { benchmarkFrame(b, fill(b, 1_000_000), 1_000_000) }
func BenchmarkGCMillion(b *testing.B)         { benchmarkGC(b, fill(b, 1_000_000), 1_000_000) }

// floor is what a table cannot beat by much: a locked map of pointers to states.
type floor struct {
	mu sync.Mutex
	at map[string]*limit.State
}

func (f *floor) take(now int64, c *Call) limit.Verdict {
	f.mu.Lock()
	defer f.mu.Unlock()
	s, ok := f.at[string(c.Counter)]
	if !ok {
		s = new(limit.State)
		f.at[string(c.Counter)] = s
	}
	var v limit.Verdict
	*s, v = c.Rule.Take(*s, now, c.Cost)
	return v
}

const benchPartitions = 1024

func benchRule(b *testing.B) *limit.Rule {
	return mustRule(b, limit.Spec{Algorithm: limit.TokenBucket, Limit: 1_000_000, Window: time.Hour})
}

// fill is a table of n counters.
func fill(b *testing.B, n int) *Table {
	tab := holding(Config{Partitions: benchPartitions, Memory: 4 << 30})
	create(b, tab, 0, n, benchRule(b))
	return tab
}

// create makes the counters from the first to before the last.
func create(b *testing.B, tab *Table, first, last int, rule *limit.Rule) {
	var v limit.Verdict
	var name []byte
	for i := first; i < last; i++ {
		name = benchName(name[:0], i)
		c := callOf(tab, name, rule)
		if err := tab.Decide(start, &c, &v); err != nil {
			b.Fatal(err)
		}
	}
}

// benchName appends the name of a counter: 26 bytes.
func benchName(to []byte, i int) []byte {
	to = append(to, "\x04free\x07charges\x0ccust_"...)
	return strconv.AppendInt(to, int64(10_000_000+i), 10)
}

func callOf(tab *Table, name []byte, rule *limit.Rule) Call {
	id := Seed(7).ID(name)
	return Call{ID: id, Partition: int(id.Hi % uint64(len(tab.partitions))), Charge: limit.Charge{Counter: name, Rule: rule, Cost: 1}}
}

// randomCalls are more than a cache can hold, to some of n counters.
func randomCalls(tab *Table, n int, rule *limit.Rule, seed uint64) []Call {
	rng := rand.New(rand.NewPCG(1, seed))
	calls := make([]Call, 1<<18)
	for i := range calls {
		calls[i] = callOf(tab, benchName(nil, rng.IntN(n)), rule)
	}
	return calls
}

func fillFloor(n int) *floor {
	f := &floor{at: map[string]*limit.State{}}
	for i := range n {
		f.at[string(benchName(nil, i))] = &limit.State{A: start}
	}
	return f
}

// race runs the two in turn, n calls of each a round, and returns the time of a
// call of each in its best round. Rounds are short, so that on a busy machine some
// of each are not disturbed; and it is processor time, which leaves out that of
// other programs.
func race(n int, first, second func(i int)) (firstNs, secondNs float64) {
	firstNs, secondNs = math.Inf(1), math.Inf(1)
	for round := range 100 {
		firstNs = min(firstNs, perOp(round*n, n, first))
		secondNs = min(secondNs, perOp(round*n, n, second))
	}
	return firstNs, secondNs
}

func perOp(from, n int, fn func(i int)) float64 {
	begin := processCPU()
	for i := from; i < from+n; i++ {
		fn(i)
	}
	return float64(processCPU()-begin) / float64(n)
}

func benchmarkDecide(b *testing.B, n int) {
	tab := fill(b, n)
	calls := randomCalls(tab, n, benchRule(b), 2)
	f := fillFloor(n)
	at := func(i int) *Call { return &calls[i&(len(calls)-1)] }
	var v limit.Verdict
	one := func(i int) {
		if err := tab.Decide(start+int64(i), at(i), &v); err != nil {
			b.Fatal(err)
		}
	}
	ours, floors := race(2_000, one, func(i int) { f.take(start+int64(i), at(i)) })
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		one(i)
	}
	b.ReportMetric(float64(tab.Stats().Bytes)/float64(n), "bytes/counter")
	b.ReportMetric(ours, "best-ns")
	b.ReportMetric(ours/floors, "map+Take/ratio")
}

// benchmarkFrame compares a frame with the same without locks, and with its calls
// decided one by one.
func benchmarkFrame(b *testing.B, tab *Table, n int) {
	const frame = 64
	calls := randomCalls(tab, n, benchRule(b), 2)
	results := make([]Result, frame)
	at := func(i int) []Call { k := i * frame & (len(calls) - 1); return calls[k : k+frame] }
	together := func(i int) { tab.DecideFrame(start, at(2*i), results) }
	unlocked := func(i int) {
		for k, cs := 0, at(2*i+1); k < frame; k++ {
			if k%ahead == 0 {
				tab.touch(cs[k : k+ahead])
			}
			tab.decideOne(start, &cs[k], &results[k])
		}
	}
	single := func(i int) {
		cs := at(2*i + 1)
		for k := range cs {
			results[k].Err = tab.Decide(start, &cs[k], &results[k].Verdict)
		}
	}
	ours, floors := race(20, together, unlocked)
	framed, singles := race(20, together, single)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		together(i)
	}
	b.ReportMetric(ours/frame, "best-ns/call")
	b.ReportMetric(ours/floors, "unlocked/ratio")
	b.ReportMetric(framed/singles, "one-by-one/ratio")
}

// benchmarkGC compares the processor time of a collection with a table alive to
// one with a map of the same counters alive.
func benchmarkGC(b *testing.B, tab *Table, n int) {
	ours := collection()
	runtime.KeepAlive(tab)
	f := fillFloor(n)
	maps := collection()
	runtime.KeepAlive(f)
	for b.Loop() {
	}
	b.ReportMetric(ours/1e6, "ms/collection")
	b.ReportMetric(maps/1e6, "map-ms/collection")
	b.ReportMetric(maps/ours, "map/ratio")
}

// collection is the processor time of the best of some collections. What they
// sweep is gone with the first.
func collection() (ns float64) {
	runtime.GC()
	ns = math.Inf(1)
	for range 3 {
		begin := processCPU()
		runtime.GC()
		ns = min(ns, float64(processCPU()-begin))
	}
	return ns
}

// BenchmarkSweepMillion compares a step of the sweep in which nothing is fresh
// with a plain look at the same slots.
func BenchmarkSweepMillion(b *testing.B) {
	const n = 1_000_000
	tab := fill(b, n)
	var sum int64
	plain := func(i int) {
		p := &tab.partitions[i%benchPartitions]
		for s := range p.directory().all() {
			for k := range s.slots.at {
				sum += s.slots.at[k].words[0]
			}
		}
	}
	ours, plains := race(benchPartitions/8, func(int) { tab.Sweep(start, 1) }, plain)
	for b.Loop() {
		tab.Sweep(start, 1)
	}
	if s := tab.Stats(); s.Counters != n || sum == 0 {
		b.Fatalf("%+v", s)
	}
	b.ReportMetric(ours*benchPartitions/n, "ns/counter")
	b.ReportMetric(ours/plains, "plain-pass/ratio")
}
