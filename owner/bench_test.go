package owner

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ringlimit/ringlimit/limit"
)

// The benchmarks with a million counters run by default; the same with ten
// million need 3 GB, and run when they are named:
//
//	go test -run - -bench TenMillion ./owner

func BenchmarkDecideMillion(b *testing.B)     { benchmarkDecide(b, 1_000_000) }
func BenchmarkFrameMillion(b *testing.B)      { benchmarkFrame(b, 1_000_000) }
func BenchmarkGCMillion(b *testing.B)         { benchmarkGC(b, 1_000_000) }
func BenchmarkDecideTenMillion(b *testing.B)  { named(b); benchmarkDecide(b, 10_000_000) }
func BenchmarkFrameTenMillion(b *testing.B)   { named(b); benchmarkFrame(b, 10_000_000) }
func BenchmarkGCTenMillion(b *testing.B)      { named(b); benchmarkGC(b, 10_000_000) }
func BenchmarkDecideTenThousand(b *testing.B) { benchmarkDecide(b, 10_000) }
func BenchmarkFrameTenThousand(b *testing.B)  { benchmarkFrame(b, 10_000) }

func named(b *testing.B) {
	if !strings.Contains(flag.Lookup("test.bench").Value.String(), "TenMillion") {
		b.Skip("too large to run by the way; use -bench TenMillion")
	}
}

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

// fill makes n counters, and calls to random ones of them, more than a cache
// can hold.
func fill(b *testing.B, n int) (*Table, []Call) {
	tab := holding(Config{Partitions: benchPartitions, Memory: 4 << 30})
	rule := benchRule(b)
	for i := range n {
		if _, err := answer(tab, start, on(tab, benchKey(i), rule)); err != nil {
			b.Fatal(err)
		}
	}
	return tab, randomCalls(tab, n, rule)
}

func benchKey(i int) string { return fmt.Sprintf("\x04free\x07charges\x0bcust_%06d", i) }

func randomCalls(tab *Table, n int, rule *limit.Rule) []Call {
	rng := rand.New(rand.NewPCG(1, 2))
	calls := make([]Call, 1<<18)
	for i := range calls {
		calls[i] = *on(tab, benchKey(rng.IntN(n)), rule)
	}
	return calls
}

func fillFloor(n int) *floor {
	f := &floor{at: map[string]*limit.State{}}
	for i := range n {
		f.at[benchKey(i)] = &limit.State{A: start}
	}
	return f
}

// race runs the two in turn, n calls of each a round, and returns the time of a
// call of each in its best round. Rounds are short, so that on a busy machine some
// of each are not disturbed.
func race(n int, first, second func(i int)) (firstNs, secondNs float64) {
	firstNs, secondNs = math.Inf(1), math.Inf(1)
	for round := range 100 {
		firstNs = min(firstNs, perOp(round*n, n, first))
		secondNs = min(secondNs, perOp(round*n, n, second))
	}
	return firstNs, secondNs
}

func perOp(from, n int, fn func(i int)) float64 {
	begin := time.Now()
	for i := from; i < from+n; i++ {
		fn(i)
	}
	return float64(time.Since(begin).Nanoseconds()) / float64(n)
}

func benchmarkDecide(b *testing.B, n int) {
	tab, calls := fill(b, n)
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

// benchmarkFrame compares a frame with its calls decided one by one.
func benchmarkFrame(b *testing.B, n int) {
	const frame = 64
	tab, calls := fill(b, n)
	results := make([]Result, frame)
	at := func(i int) []Call { k := i * frame & (len(calls) - 1); return calls[k : k+frame] }
	together := func(i int) { tab.DecideFrame(start, at(2*i), results) }
	single := func(i int) {
		cs := at(2*i + 1)
		for k := range cs {
			results[k].Err = tab.Decide(start, &cs[k], &results[k].Verdict)
		}
	}
	ours, singles := race(20, together, single)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		together(i)
	}
	b.ReportMetric(ours/frame, "best-ns/call")
	b.ReportMetric(ours/singles, "one-by-one/ratio")
}

// benchmarkGC compares a collection with a table alive to one with a map of the
// same counters alive.
func benchmarkGC(b *testing.B, n int) {
	f := fillFloor(n)
	runtime.GC()
	mapNs := perOp(0, 3, func(int) { runtime.GC() })
	runtime.KeepAlive(f)
	tab, _ := fill(b, n)
	runtime.GC()
	for b.Loop() {
		runtime.GC()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/mapNs, "map/ratio")
	runtime.KeepAlive(tab)
}

// BenchmarkSweepMillion compares a step of the sweep in which nothing is fresh
// with a plain look at the same slots.
func BenchmarkSweepMillion(b *testing.B) {
	const n = 1_000_000
	tab, _ := fill(b, n)
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
