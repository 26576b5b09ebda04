package owner

import (
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ringlimit/ringlimit/limit"
)

// What one key that everybody asks for costs, admitted and denied, beside as many
// callers who ask for any of a million: see hotKey.
func BenchmarkHotKeyAdmitted(b *testing.B) { benchmarkHotKey(b, limit.MaxLimit/4) }
func BenchmarkHotKeyDenied(b *testing.B)   { benchmarkHotKey(b, 1) }

func benchmarkHotKey(b *testing.B, most int64) {
	const n = 1_000_000
	tab := fill(b, n)
	uniform, others := randomCalls(tab, n, benchRule(b), 2), randomCalls(tab, n, benchRule(b), 3)
	hot := callOf(tab, []byte("hot"), mustRule(b, limit.Spec{Algorithm: limit.TokenBucket, Limit: most, Window: time.Hour}))
	one, skewed := repeat(hot, 1<<12), make([]Call, len(uniform))
	rng := rand.New(rand.NewPCG(4, 5))
	for i := range skewed {
		if skewed[i] = hot; rng.IntN(10) == 0 {
			skewed[i] = uniform[i]
		}
	}
	h, another := hotKey{tab: tab, best: map[string]float64{}}, fill(b, n)
	for range 300 {
		h.round("uniform", uniform, others, tab)
		h.round("one", one, one, tab)
		h.round("skewed", skewed, skewed, tab)
		h.round("beside", uniform, skewed, tab)
		h.round("apart", uniform, skewed, another)
	}
	results := make([]Result, 64)
	b.ReportAllocs()
	for b.Loop() {
		tab.DecideFrame(start, skewed[:64], results)
	}
	b.ReportMetric(h.best["uniform"]/h.best["one"], "one-against-uniform/ratio") // of checks a second
	b.ReportMetric(h.best["skewed"]/h.best["uniform"], "skewed-frame/ratio")     // of time
	b.ReportMetric(h.best["beside"]/h.best["uniform"], "beside-skewed/ratio")    // of time
	b.ReportMetric(h.best["beside"]/h.best["apart"], "apart/ratio")              // of time
}

func repeat(c Call, n int) []Call {
	calls := make([]Call, n)
	for i := range calls {
		calls[i] = c
	}
	return calls
}

// hotKey runs callers against each other. uniform is all of them with frames of any
// keys; one with frames of one key; skewed with frames of which nine tenths are one
// key; beside is a caller of any keys while all others are skewed; apart is the same
// with the others at another table, where they can only slow the processor.
type hotKey struct {
	tab  *Table
	best map[string]float64
	at   int
}

// round notes how long the first caller takes for a frame, in its best round.
// Rounds are short, so that on a busy machine some are not disturbed.
func (h *hotKey) round(name string, first, others []Call, theirs *Table) {
	const frame, frames = 64, 50
	var waiting atomic.Int64
	var all sync.WaitGroup
	var done atomic.Bool
	callers := runtime.GOMAXPROCS(0)
	waiting.Store(int64(callers))
	call := func(tab *Table, calls []Call, from int, goOn func(i int) bool) time.Duration {
		results := make([]Result, frame)
		for waiting.Add(-1); waiting.Load() > 0; {
		}
		begin := time.Now()
		for i := 0; goOn(i); i++ {
			k := (from + i*frame) % len(calls)
			tab.DecideFrame(start, calls[k:k+frame], results)
		}
		return time.Since(begin)
	}
	h.at += frames * frame
	for other := 1; other < callers; other++ {
		all.Go(func() { call(theirs, others, h.at+other<<16, func(int) bool { return !done.Load() }) })
	}
	took := call(h.tab, first, h.at, func(i int) bool { return i < frames })
	done.Store(true)
	all.Wait()
	if h.best[name] == 0 {
		h.best[name] = math.Inf(1)
	}
	h.best[name] = min(h.best[name], float64(took.Nanoseconds())/frames)
}
