package ringlimit

import (
	"fmt"
	"runtime"
	"testing"
	"time"
)

// BenchmarkIdle is what it costs to be a cluster of 3, 10 or 20 nodes in which nobody
// asks anything: gossip, and signs of life on each connection. An iteration is a second.
// A node has a connection to each other one and one from it.
func BenchmarkIdle(b *testing.B) {
	for _, nodes := range []int{3, 10, 20} {
		b.Run(fmt.Sprintf("nodes=%d", nodes), func(b *testing.B) {
			before, ran := memoryInUse(), runtime.NumGoroutine()
			m := newMesh(b, nodes, 0)
			took, ranMore := memoryInUse()-before, runtime.NumGoroutine()-ran
			b.Run("second", func(b *testing.B) {
				sent := m.sent.bytes.Load()
				run := measure(b, 1, b.N, func(_, _ int) error { time.Sleep(time.Second); return nil })
				each := run.Took.Seconds() * float64(nodes)
				b.ReportMetric(float64(run.Used.Microseconds())/each, "cpu-us/s/node")
				b.ReportMetric(float64(m.sent.bytes.Load()-sent)/each, "bytes/s/node")
				b.ReportMetric(took/float64(nodes)/1024, "KiB/node")
				b.ReportMetric(float64(ranMore)/float64(nodes), "goroutines/node")
			})
		})
	}
}

// memoryInUse is that of the heap and of stacks.
func memoryInUse() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc + m.StackInuse)
}
