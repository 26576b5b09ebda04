package limit

import (
	"testing"
	"time"
)

// BenchmarkShip measures a counter's way onto the wire and off it again. The
// ratio says how many checks that costs.
func BenchmarkShip(b *testing.B) {
	for _, spec := range benchSpecs() {
		b.Run(spec.Algorithm.String(), func(b *testing.B) {
			x := bencher{rule: mustRule(b, spec), now: start}
			x.run(1070) // into the middle of a window
			var wire []byte
			bytes := 0
			b.ReportAllocs()
			for b.Loop() {
				w := x.rule.Ship(x.state, x.now)
				wire = AppendShipped(wire[:0], &w)
				bytes = len(wire)
				if _, err := CutShipped(wire, &w); err != nil {
					b.Fatal(err)
				}
				x.rule.Receive(w, x.now)
			}
			moved := float64(b.Elapsed().Nanoseconds()) / float64(b.N)
			before := time.Now()
			x.run(1_000_000)
			take := float64(time.Since(before).Nanoseconds()) / 1_000_000
			b.ReportMetric(float64(bytes), "bytes")
			b.ReportMetric(moved/take, "Take/ratio")
		})
	}
}
