package ringlimit

import (
	"flag"
	"fmt"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"

	"github.com/ringlimit/ringlimit/internal/floor"
)

// BenchmarkGrowth is three nodes with 10,000 to 1,000,000 counters and a copy of each,
// against three that ask each other with unary calls and have as many in tables.
// unary-cpu-x compares processor time a check. few-x is that of any counter over that
// of the first 10,000, which stay in the processor's caches. bytes/counter is of the
// tables, copies counted as counters, peak-MiB of the whole process so far.
func BenchmarkGrowth(b *testing.B) {
	for _, counters := range []int{10_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprintf("counters=%d", counters), func(b *testing.B) { benchmarkGrowth(b, counters) })
	}
}

// BenchmarkGrowthTenMillion needs five gigabytes, and two minutes to fill the tables:
//
//	go test -run - -bench GrowthTenMillion .
func BenchmarkGrowthTenMillion(b *testing.B) {
	if !strings.Contains(flag.Lookup("test.bench").Value.String(), "TenMillion") {
		b.Skip("too large to run by the way; use -bench GrowthTenMillion")
	}
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(7 << 30))
	b.Run("counters=10000000", func(b *testing.B) { benchmarkGrowth(b, 10_000_000) })
}

func benchmarkGrowth(b *testing.B, counters int) {
	const nodes, few = 3, 10_000
	m, key := newMesh(b, nodes, 4<<30), keysInOne(counters)
	unary := newUnaryMesh(b, m.nodes[0], nodes, key)
	any := m.askingFor("", key)
	measure(b, 1024, counters, any)
	measure(b, 2, counters, unary.here)
	b.Run("callers=1024", func(b *testing.B) {
		const callers = 1024
		lost := m.lost.Load()
		var all, hot, calls floor.Run
		for turn := range turns {
			n := b.N/turns + 1
			from := turn * n // else each turn asks for the same
			all.Add(measure(b, callers, n, func(caller, i int) error { return any(caller, from+i) }))
			hot.Add(measure(b, callers, n, func(caller, i int) error { return any(caller, i%few) }))
			calls.Add(measure(b, callers, n/6+1, func(caller, i int) error { return unary.ask(caller, from+i) }))
		}
		b.ReportMetric(all.CPU(), "copied-cpu-ns/check")
		b.ReportMetric(all.AllocsPer(), "allocs/check")
		b.ReportMetric(calls.CPU()/all.CPU(), "copied-unary-cpu-x")
		b.ReportMetric(all.CPU()/hot.CPU(), "few-x")
		b.ReportMetric(m.bytesPerCounter(), "bytes/counter")
		b.ReportMetric(peakMiB(), "peak-MiB")
		b.ReportMetric(float64(m.lost.Load()-lost)/float64(all.N+hot.N), "lost-share")
	})
}

// keysInOne keeps ten million keys from being as many pointers for the collector.
func keysInOne(n int) func(i int) string {
	const size = len("customer-00000000")
	var all strings.Builder
	all.Grow(n * size)
	for i := range n {
		fmt.Fprintf(&all, "customer-%08d", i)
	}
	text := all.String()
	return func(i int) string {
		at := i % n * size
		return text[at : at+size]
	}
}

func (m *mesh) bytesPerCounter() float64 {
	var bytes, counters float64
	for _, n := range m.nodes {
		s := n.table.Stats()
		bytes, counters = bytes+float64(s.Bytes), counters+float64(s.Counters)
	}
	return bytes / counters
}

func peakMiB() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return float64(u.Maxrss) / 1024
}
