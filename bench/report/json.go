package report

import (
	"encoding/json"
	"io"
	"maps"
	"slices"
	"strings"
)

// Run is everything about a run, for a file.
type Run struct {
	// Versions of what takes part, by module or program.
	Versions map[string]string `json:"versions"`

	Machine  Machine            `json:"machine"`
	Command  []string           `json:"command"`
	Rivals   map[string]string  `json:"rivals"` // name to what it is, with its version
	Absent   map[string]string  `json:"absent,omitempty"`
	Cells    []CellResult       `json:"cells"`
	Counters int                `json:"counters,omitempty"` // for bytes_per_counter
	Bytes    map[string]float64 `json:"bytes_per_counter,omitempty"`
	Targets  []Reached          `json:"targets"`
}

// CellResult is what one rival did in one cell.
type CellResult struct {
	Place
	Failed string    `json:"failed,omitempty"`
	Rounds []*Sample `json:"rounds,omitempty"` // null: none in that round
	// Figures over the rounds. Times are in microseconds, CPU, allocations and writes
	// for one check.
	Figures map[string]Figure `json:"figures,omitempty"`
}

// Fill takes over the results.
func (run *Run) Fill(r *Results) {
	run.Absent, run.Bytes = r.absent, r.bytes
	places := slices.Collect(maps.Keys(r.samples))
	for p := range r.failed {
		if r.samples[p] == nil {
			places = append(places, p)
		}
	}
	slices.SortFunc(places, comparePlaces)
	for _, p := range places {
		run.Cells = append(run.Cells, r.cell(p))
	}
}

func comparePlaces(a, b Place) int {
	if a.Keys != b.Keys {
		return strings.Compare(a.Keys, b.Keys)
	}
	if a.Callers != b.Callers {
		return a.Callers - b.Callers
	}
	return strings.Compare(a.Rival, b.Rival)
}

func (r *Results) cell(p Place) CellResult {
	if why, failed := r.Failed(p); failed {
		return CellResult{Place: p, Failed: why}
	}
	c := CellResult{Place: p, Rounds: r.samples[p], Figures: map[string]Figure{}}
	for name, m := range map[string]Metric{
		"checks_per_s": Rate, "p50_us": P50, "p99_us": P99, "p999_us": P999,
		"client_cpu_us": ClientCPU, "server_cpu_us": ServerCPU, "client_allocations": Allocs,
		"client_writes": ClientWrites, "server_writes": ServerWrites,
	} {
		c.Figures[name], _ = r.Figure(p, m)
	}
	return c
}

// WriteJSON writes v, indented.
func WriteJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
