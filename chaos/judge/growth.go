package judge

import (
	"slices"

	"github.com/ringlimit/ringlimit/chaos/history"
)

// growth compares what nodes took in the last quarter of the run with the second
// one: the first is warming up. Medians over all nodes, in percent.
func (c *Case) growth() []Line {
	samples := c.History.Samples()
	end := int64(0)
	for _, s := range samples {
		end = max(end, s.At)
	}
	var lines []Line
	for _, figure := range []struct {
		name string
		of   func(*history.Sample) int64
	}{
		{"memory", func(s *history.Sample) int64 { return s.Memory }},
		{"goroutines", func(s *history.Sample) int64 { return int64(s.Goroutines) }},
		{"file descriptors", func(s *history.Sample) int64 { return int64(s.Files) }},
	} {
		early := median(samples, end/4, end/2, figure.of)
		late := median(samples, end/4*3, end, figure.of)
		l := bound("growth of "+figure.name+" from the second to the last quarter", 0, 0, "from %d to %d a node", early, late)
		*l.Promised, l.Unit = c.Bounds.Growth.Percent, "%"
		l.Measured = 100 * float64(late-early) / float64(max(early, 1))
		lines = append(lines, l)
	}
	return lines
}

func median(samples []history.Sample, from, to int64, of func(*history.Sample) int64) int64 {
	var all []int64
	for i := range samples {
		if s := &samples[i]; s.At >= from && s.At <= to {
			all = append(all, of(s))
		}
	}
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[len(all)/2]
}
