package owner

import (
	"flag"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ringlimit/ringlimit/limit"
)

// These need a few gigabytes and a minute or two of a quiet machine, so they run
// only when they are named:
//
//	go test -run - -bench TenMillion -benchtime 1x -timeout 1h ./owner

const tenMillion = 10_000_000

func named(b *testing.B) {
	if !strings.Contains(flag.Lookup("test.bench").Value.String(), "TenMillion") {
		b.Skip("too large to run by the way; use -bench TenMillion")
	}
}

// BenchmarkTenMillion is what ten million counters take: memory, as the table
// counts it and as the heap grows; a decision in frames; a collection of garbage.
func BenchmarkTenMillion(b *testing.B) {
	named(b)
	before := heap()
	tab := holding(Config{Partitions: benchPartitions, Memory: 4 << 30})
	rule, worst, worstNamed := benchRule(b), 0.0, 0.0
	for n := 0; n < tenMillion; n += tenMillion / 50 {
		create(b, tab, n, n+tenMillion/50, rule)
		if n >= tenMillion/2 { // in between, all segments grow once and are split once
			bare, all := perCounter(tab)
			worst, worstNamed = max(worst, bare), max(worstNamed, all)
		}
	}
	b.Run("Memory", func(b *testing.B) {
		for b.Loop() {
		}
		bare, all := perCounter(tab)
		b.ReportMetric(bare, "bytes/counter")
		b.ReportMetric(all, "named-bytes/counter")
		b.ReportMetric(worst, "worst-bytes/counter")
		b.ReportMetric(worstNamed, "worst-named-bytes/counter")
		b.ReportMetric(float64(heap()-before)/tenMillion, "heap-bytes/counter")
	})
	b.Run("Frame", func(b *testing.B) { benchmarkFrame(b, tab, tenMillion) })
	b.Run("GC", func(b *testing.B) {
		defer debug.SetGCPercent(debug.SetGCPercent(-1)) // to fill the map would take minutes
		benchmarkGC(b, tab, tenMillion)
	})
}

// perCounter is the table's bytes for each counter, without and with its name.
func perCounter(t *Table) (bare, all float64) {
	s, text := t.Stats(), int64(0)
	for p := range t.partitions {
		for seg := range t.partitions[p].directory().all() {
			text += seg.names.bytes()
		}
	}
	return float64(s.Bytes-text) / float64(s.Counters), float64(s.Bytes) / float64(s.Counters)
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// BenchmarkStallTenMillion is how long callers wait for a frame of 64 at most: idle,
// that is without new counters and without a sweep; while two million counters are
// added to eight; and while all that nobody uses any more are dropped at once. The
// node holds 64 partitions, as one of sixteen nodes would, so each has 160,000
// counters.
//
// On a busy machine the time of day says little. So the processor time of the
// slowest frames is reported as well, and that of the sweep's holds of a lock: what a
// caller spends, and what he waits for.
func BenchmarkStallTenMillion(b *testing.B) {
	named(b)
	const partitions, old = 64, tenMillion * 8 / 10
	tab := holding(Config{Partitions: partitions, Memory: 4 << 30})
	rule := mustRule(b, limit.Spec{Algorithm: limit.FixedWindow, Limit: 1_000_000, Window: time.Hour})
	create(b, tab, 0, old, rule)
	s := &stall{tab: tab, calls: randomCalls(tab, old, rule, 2)}

	var idle, growth, expiry took
	s.run(func(caller, frame int) bool { return frame < 100_000 }, &idle)
	next := atomic.Int64{}
	next.Store(old)
	s.fresh = func() int { return int(next.Add(1)) }
	s.run(func(caller, frame int) bool { return next.Load() < tenMillion }, &growth)
	s.fresh, s.now = nil, int64(time.Hour)
	var held []int64
	var swept atomic.Bool
	var sweeper sync.WaitGroup
	sweeper.Go(func() {
		held = sweepAll(tab, start+s.now)
		swept.Store(true)
	})
	s.run(func(caller, frame int) bool { return !swept.Load() }, &expiry)
	sweeper.Wait()
	for b.Loop() {
	}
	if n := tab.Stats(); n.Dropped < tenMillion/2 {
		b.Fatalf("%+v: this has swept little", n)
	}
	for _, q := range []struct {
		name string
		of   float64
	}{{"p99.9", 0.999}, {"p99.99", 0.9999}} {
		wall, cpu := ms(idle.wall, q.of), ms(idle.cpu, q.of)
		b.ReportMetric(wall, "idle-"+q.name+"-ms")
		b.ReportMetric(ms(growth.wall, q.of)-wall, "growth-"+q.name+"-beyond-ms")
		b.ReportMetric(ms(expiry.wall, q.of)-wall, "expiry-"+q.name+"-beyond-ms")
		b.ReportMetric(cpu, "idle-"+q.name+"-cpu-ms")
		b.ReportMetric(ms(growth.cpu, q.of)-cpu, "growth-"+q.name+"-beyond-cpu-ms")
		b.ReportMetric(ms(expiry.cpu, q.of)-cpu, "expiry-"+q.name+"-beyond-cpu-ms")
	}
	b.ReportMetric(ms(held, 0.999), "sweep-hold-p99.9-cpu-ms")
}

// took is how long each frame took, in ns.
type took struct{ wall, cpu []int64 }

func ms(ns []int64, quantile float64) float64 {
	slices.Sort(ns)
	return float64(ns[min(len(ns)-1, int(float64(len(ns))*quantile))]) / 1e6
}

// stall is callers of frames, as many as there are processors.
type stall struct {
	tab   *Table
	calls []Call
	now   int64
	fresh func() int // the next new counter; nil: none
}

func (s *stall) run(goOn func(caller, frame int) bool, all *took) {
	var mu sync.Mutex
	var callers sync.WaitGroup
	for caller := range runtime.GOMAXPROCS(0) {
		callers.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			t := s.call(caller, goOn)
			mu.Lock()
			defer mu.Unlock()
			all.wall, all.cpu = append(all.wall, t.wall...), append(all.cpu, t.cpu...)
		})
	}
	callers.Wait()
}

func (s *stall) call(caller int, goOn func(caller, frame int) bool) (t took) {
	const frame, created = 64, 8
	rng := rand.New(rand.NewPCG(uint64(caller), 3))
	calls, results := make([]Call, frame), make([]Result, frame)
	names := make([][]byte, created)
	for f := 0; goOn(caller, f); f++ {
		k := rng.IntN(len(s.calls) - frame)
		copy(calls, s.calls[k:k+frame])
		if s.fresh != nil {
			for i := range names {
				names[i] = benchName(names[i][:0], s.fresh())
				calls[i*frame/created] = callOf(s.tab, names[i], calls[0].Rule)
			}
		}
		wall, cpu := time.Now(), threadCPU()
		s.tab.DecideFrame(start+s.now, calls, results)
		t.cpu = append(t.cpu, threadCPU()-cpu)
		t.wall = append(t.wall, int64(time.Since(wall)))
	}
	return t
}

// sweepAll is Sweep of all partitions. It returns how long it held locks.
func sweepAll(t *Table, now int64) (held []int64) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for i := range t.partitions {
		p := &t.partitions[i]
		for from, more := uint64(0), true; more; runtime.Gosched() {
			p.mu.Lock()
			begin := threadCPU()
			_, from, more = t.sweepStep(p, now, from)
			held = append(held, threadCPU()-begin)
			p.mu.Unlock()
		}
	}
	return held
}
