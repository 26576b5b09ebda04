package owner

import (
	"flag"
	"fmt"
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
		if _, err := tab.Decide(start, on(tab, benchKey(i), rule)); err != nil {
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

func fillFloor(n int, calls []Call) *floor {
	f := &floor{at: map[string]*limit.State{}}
	for i := range n {
		f.at[benchKey(i)] = &limit.State{A: start}
	}
	return f
}

// perOp is the time of one call of fn, in nanoseconds.
func perOp(n int, fn func(i int)) float64 {
	begin := time.Now()
	for i := range n {
		fn(i)
	}
	return float64(time.Since(begin).Nanoseconds()) / float64(n)
}

func benchmarkDecide(b *testing.B, n int) {
	tab, calls := fill(b, n)
	f := fillFloor(n, calls)
	floorNs := perOp(1<<19, func(i int) { f.take(start+int64(i), &calls[i&(len(calls)-1)]) })
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		if _, err := tab.Decide(start+int64(i), &calls[i&(len(calls)-1)]); err != nil {
			b.Fatal(err)
		}
		i++
	}
	b.ReportMetric(float64(tab.Stats().Bytes)/float64(n), "bytes/counter")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/floorNs, "map+Take/ratio")
}

// BenchmarkFrame compares a frame with its calls decided one by one.
func benchmarkFrame(b *testing.B, n int) {
	const frame = 64
	tab, calls := fill(b, n)
	results := make([]Result, frame)
	at := func(i int) []Call { k := i * frame & (len(calls) - 1); return calls[k : k+frame] }
	single := perOp(1<<14, func(i int) {
		for k, c := range at(i) {
			results[k].Verdict, results[k].Err = tab.Decide(start, &c)
		}
	})
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		tab.DecideFrame(start, at(i), results)
		i++
	}
	ns := float64(b.Elapsed().Nanoseconds()) / float64(b.N)
	b.ReportMetric(ns/frame, "ns/call")
	b.ReportMetric(ns/single, "one-by-one/ratio")
}

// benchmarkGC compares a collection with a table alive to one with a map of the
// same counters alive.
func benchmarkGC(b *testing.B, n int) {
	f := fillFloor(n, nil)
	runtime.GC()
	mapNs := perOp(3, func(int) { runtime.GC() })
	runtime.KeepAlive(f)
	f = nil
	tab, _ := fill(b, n)
	runtime.GC()
	for b.Loop() {
		runtime.GC()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/mapNs, "map/ratio")
	runtime.KeepAlive(tab)
}
