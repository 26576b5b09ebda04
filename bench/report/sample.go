// Package report is the arithmetic on what was measured, and how it is told.
package report

import (
	"slices"
	"time"

	"github.com/ringlimit/ringlimit/bench/load"
)

// Sample is what one rival did in one cell in one round.
type Sample struct {
	Checks  int64         `json:"checks"`
	Took    time.Duration `json:"took_ns"`
	P50     time.Duration `json:"p50_ns"` // of questions; a batch is one
	P99     time.Duration `json:"p99_ns"`
	P999    time.Duration `json:"p999_ns"`
	Client  time.Duration `json:"client_cpu_ns"` // processor time of the process that asks
	Server  time.Duration `json:"server_cpu_ns"` // of all others
	Objects uint64        `json:"client_allocations"`
	// System calls that write, as the kernel counts them for a process: to sockets, and
	// to a thread of its own that sleeps in the poller. What batches makes less than
	// one a check.
	ClientWrites int64 `json:"client_writes"`
	ServerWrites int64 `json:"server_writes"`
}

// Metric is a figure of a sample.
type Metric func(Sample) float64

// Figures of a sample. Times are in microseconds.
func Rate(s Sample) float64      { return float64(s.Checks) / s.Took.Seconds() }
func P50(s Sample) float64       { return micros(s.P50) }
func P99(s Sample) float64       { return micros(s.P99) }
func P999(s Sample) float64      { return micros(s.P999) }
func ClientCPU(s Sample) float64 { return micros(s.Client) / float64(s.Checks) }
func ServerCPU(s Sample) float64 { return micros(s.Server) / float64(s.Checks) }
func CPU(s Sample) float64       { return ClientCPU(s) + ServerCPU(s) }
func Allocs(s Sample) float64    { return float64(s.Objects) / float64(s.Checks) }

// Writes for a check.
func ClientWrites(s Sample) float64 { return float64(s.ClientWrites) / float64(s.Checks) }
func ServerWrites(s Sample) float64 { return float64(s.ServerWrites) / float64(s.Checks) }

// Nanos is the client's processor time for a check in nanoseconds: for what takes so
// little it is more precise than a clock that is read around each, and other work on
// the machine does not count.
func Nanos(s Sample) float64 { return float64(s.Client) / float64(s.Checks) }

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// Figure is a median over rounds, and the least and the most.
type Figure struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

// figureOf needs one value at least.
func figureOf(values []float64) Figure {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return Figure{Median: (sorted[(n-1)/2] + sorted[n/2]) / 2, Min: sorted[0], Max: sorted[n-1]}
}

// Place is where a sample belongs.
type Place struct {
	Rival string `json:"rival"`
	load.Cell
}

// Results is what was measured in a run.
type Results struct {
	rounds  int
	samples map[Place][]*Sample // by round; nil: none
	failed  map[Place]string
	absent  map[string]string
	bytes   map[string]float64
	figures map[string]Figure
}

// NewResults is for so many rounds.
func NewResults(rounds int) *Results {
	return &Results{
		rounds: rounds, samples: map[Place][]*Sample{}, failed: map[Place]string{},
		absent: map[string]string{}, bytes: map[string]float64{}, figures: map[string]Figure{},
	}
}

// Add takes a sample.
func (r *Results) Add(round int, at Place, s Sample) {
	if r.samples[at] == nil {
		r.samples[at] = make([]*Sample, r.rounds)
	}
	r.samples[at][round] = &s
}

// Fail gives a place up: what was measured there before does not count either.
func (r *Results) Fail(at Place, why string) { r.failed[at] = why }

// Failed says why a place was given up.
func (r *Results) Failed(at Place) (why string, failed bool) {
	why, failed = r.failed[at]
	return why, failed
}

// Absent notes why a rival cannot be had.
func (r *Results) Absent(rival, why string) { r.absent[rival] = why }

// WhyAbsent is what Absent noted.
func (r *Results) WhyAbsent(rival string) (why string, absent bool) {
	why, absent = r.absent[rival]
	return why, absent
}

// AddBytes notes what a counter of the rival takes.
func (r *Results) AddBytes(rival string, bytes float64) { r.bytes[rival] = bytes }

// AddFigure notes what a target of that name has been measured to be, once or more.
func (r *Results) AddFigure(name string, values ...float64) { r.figures[name] = figureOf(values) }

// Bytes is what AddBytes noted.
func (r *Results) Bytes(rival string) (float64, bool) {
	b, ok := r.bytes[rival]
	return b, ok
}

// at are the samples of a place, by round; none if it failed.
func (r *Results) at(p Place) []*Sample {
	if _, failed := r.failed[p]; failed {
		return nil
	}
	return r.samples[p]
}

// Figure is a metric's over the rounds; false when there is no sample.
func (r *Results) Figure(p Place, m Metric) (Figure, bool) {
	var values []float64
	for _, s := range r.at(p) {
		if s != nil {
			values = append(values, m(*s))
		}
	}
	if len(values) == 0 {
		return Figure{}, false
	}
	return figureOf(values), true
}

// Ratio is the median of the rounds' ratios: what slowed a whole round slowed both.
// Of several others the one with the largest figure of the round counts. It is false
// if no round has both.
func (r *Results) Ratio(p Place, others []Place, m Metric) (Figure, bool) {
	var ratios []float64
	for round, s := range r.at(p) {
		if s == nil {
			continue
		}
		if other, ok := r.largest(round, others, m); ok && other > 0 {
			ratios = append(ratios, m(*s)/other)
		}
	}
	if len(ratios) == 0 {
		return Figure{}, false
	}
	return figureOf(ratios), true
}

func (r *Results) largest(round int, places []Place, m Metric) (value float64, ok bool) {
	for _, p := range places {
		samples := r.at(p)
		if round >= len(samples) || samples[round] == nil {
			continue
		}
		if v := m(*samples[round]); !ok || v > value {
			value, ok = v, true
		}
	}
	return value, ok
}
