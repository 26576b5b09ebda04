package counters

import (
	"runtime"
	"runtime/metrics"
	"slices"

	"github.com/ringlimit/ringlimit/limit"
)

// GC is what one collection costs in processor time, in seconds.
type GC struct{ Table, Map float64 }

// collections is how many are made; the median counts.
const collections = 5

// mapOf is what a simple limiter keeps: its keys, and a state behind each.
func mapOf(n int) map[string]*limit.State {
	m := map[string]*limit.State{}
	var buf []byte
	for i := range n {
		buf = name(buf, i)
		m[string(buf)] = &limit.State{A: start}
	}
	return m
}

// collect is the processor time of a collection with alive alive.
func collect(alive any) float64 {
	runtime.GC() // whatever was garbage is gone
	var costs []float64
	for range collections {
		before := gcSeconds()
		runtime.GC()
		costs = append(costs, gcSeconds()-before)
	}
	runtime.KeepAlive(alive)
	slices.Sort(costs)
	return costs[collections/2]
}

// gcSeconds is what collections have used so far, idle processors included.
func gcSeconds() float64 {
	samples := []metrics.Sample{{Name: "/cpu/classes/gc/mark/assist:cpu-seconds"}, {Name: "/cpu/classes/gc/mark/dedicated:cpu-seconds"},
		{Name: "/cpu/classes/gc/mark/idle:cpu-seconds"}, {Name: "/cpu/classes/gc/pause:cpu-seconds"}}
	metrics.Read(samples)
	sum := 0.0
	for _, s := range samples {
		sum += s.Value.Float64()
	}
	return sum
}
