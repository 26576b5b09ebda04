package counters

import (
	"runtime"
	"slices"

	"github.com/ringlimit/ringlimit/bench/cpu"
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
		before := cpu.Self() // the runtime's own figures take the time of day for it
		runtime.GC()
		costs = append(costs, (cpu.Self() - before).Seconds())
	}
	runtime.KeepAlive(alive)
	slices.Sort(costs)
	return costs[collections/2]
}
