package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ringlimit/ringlimit/bench/load"
)

// Target is a line of what is to be reached.
type Target struct {
	What string
	// Ours is compared with the largest of Theirs; without any its own figure counts.
	Ours   Place
	Theirs []Place
	Metric Metric
	Bound  Bound
	// Name is that of a figure which is measured by itself, and Elsewhere the command
	// that does; then there is no Ours.
	Name, Elsewhere string
}

// Bound is what a figure must reach, and what it should.
type Bound struct {
	Least, Aim float64 // Aim 0: none
	AtMost     bool    // less is better, and Least is the most that will do
}

// Met says whether a figure reaches the bound.
func (b Bound) Met(value float64) Met {
	reaches := func(bound float64) bool { return value >= bound }
	if b.AtMost {
		reaches = func(bound float64) bool { return value <= bound }
	}
	switch {
	case b.Aim != 0 && reaches(b.Aim):
		return Aim
	case reaches(b.Least):
		return Yes
	}
	return No
}

// Met is how far a target was met.
type Met string

// How far.
const (
	No   Met = "no"
	Yes  Met = "yes"
	Aim  Met = "aim"
	None Met = "–" // not measured
)

// Reached is a target and what was measured.
type Reached struct {
	What  string  `json:"what"`
	Value *Figure `json:"value"` // nil: not measured, and Why says why
	Least float64 `json:"least"`
	Aim   float64 `json:"aim,omitempty"`
	// AtMost says that Least is the most that will do.
	AtMost bool   `json:"at_most,omitempty"`
	Met    Met    `json:"met"`
	Why    string `json:"why,omitempty"`
}

// Reach holds the targets against the results.
func (r *Results) Reach(targets []Target) []Reached {
	all := make([]Reached, len(targets))
	for i, t := range targets {
		all[i] = Reached{What: t.What, Least: t.Bound.Least, Aim: t.Bound.Aim, AtMost: t.Bound.AtMost, Met: None}
		if f, ok := r.value(t); ok {
			all[i].Value, all[i].Met = &f, t.Bound.Met(f.Median)
			continue
		}
		all[i].Why = r.why(t)
	}
	return all
}

func (r *Results) value(t Target) (Figure, bool) {
	switch {
	case t.Name != "":
		f, ok := r.figures[t.Name]
		return f, ok
	case len(t.Theirs) == 0:
		return r.Figure(t.Ours, t.Metric)
	}
	return r.Ratio(t.Ours, t.Theirs, t.Metric)
}

// notRun is said of a target for which nothing was tried.
const notRun = "not run"

// why is the reason that a target has no value.
func (r *Results) why(t Target) string {
	if t.Elsewhere != "" {
		return "`" + t.Elsewhere + "`"
	}
	var reasons []string
	for _, p := range append([]Place{t.Ours}, t.Theirs...) {
		if why, ok := r.absent[p.Rival]; ok {
			reasons = append(reasons, p.Rival+": "+why)
		} else if why, ok := r.failed[p]; ok {
			reasons = append(reasons, p.Rival+": "+why)
		}
	}
	if len(reasons) == 0 {
		return notRun
	}
	return strings.Join(reasons, "; ")
}

// Names of the targets that a single table is measured for.
const (
	DecideTarget = "decide"
	BareTarget   = "bytes"
	NamedTarget  = "bytes with names"
	GCTarget     = "gc"
	StallTarget  = "stall"
)

// TableTargets are those of Targets.
func TableTargets() []Target {
	return slices.DeleteFunc(Targets(), func(t Target) bool { return t.Name == "" })
}

// Targets is the table "to reach" of the project's plan for speed.
func Targets() []Target {
	const keys, million, hot = "uniform-10k", "uniform-1M", "one"
	at := func(rival string, callers int, keys string) Place {
		return Place{rival, load.Cell{Callers: callers, Keys: keys}}
	}
	times := func(least, aim float64) Bound { return Bound{Least: least, Aim: aim} }
	most := func(most, aim float64) Bound { return Bound{Least: most, Aim: aim, AtMost: true} }
	// ratio compares two rivals in one cell.
	ratio := func(what, ours, theirs string, callers int, keys string, m Metric, b Bound) Target {
		return Target{What: what, Ours: at(ours, callers, keys), Theirs: []Place{at(theirs, callers, keys)}, Metric: m, Bound: b}
	}
	fastest := func(callers int, keys string) Target {
		t := Target{
			What: fmt.Sprintf("Node.Check on an owned key against the fastest Go limiter, %s, %d callers", keys, callers),
			Ours: at("ringlimit-owner", callers, keys), Metric: Rate, Bound: times(1, 2),
		}
		for _, other := range []string{"x-time-rate", "throttled", "go-limiter"} {
			t.Theirs = append(t.Theirs, at(other, callers, keys))
		}
		return t
	}
	const forward, client = "ringlimit-forward", "ringlimit-client"
	const table = "go run . table"
	return []Target{
		ratio("forwarded check against plain grpc-go unary, 64 callers", forward, "unary", 64, keys, Rate, times(10, 14)),
		ratio("… 256 callers", forward, "unary", 256, keys, Rate, times(15, 20)),
		ratio("… against bare TCP with the same batching, 64 callers", forward, "tcp", 64, keys, Rate, times(0.5, 0.7)),
		ratio("… 256 callers", forward, "tcp", 256, keys, Rate, times(0.5, 0.7)),
		ratio("… one caller, p50 against unary", forward, "unary", 1, keys, P50, most(0.6, 0.45)),
		ratio("… against Redis + Lua through go-redis, 64 callers", forward, "redis", 64, keys, Rate, times(9, 11)),
		ratio("… against best pipelined EVALSHA, 64 callers", forward, "redis-pipelined", 64, keys, Rate, times(5, 6)),
		ratio("… against gubernator's one remote key, 64 callers", forward, "gubernator-embedded", 64, hot, Rate, times(30, 50)),
		ratio("client/ over its stream into three nodes, against gubernator's client, 64 callers", client, "gubernator", 64, keys, Rate, times(30, 50)),
		ratio("… against a unary gRPC front with unary forwarding, 64 callers", client, "mesh", 64, keys, Rate, times(12, 20)),
		ratio("… 256 callers", client, "mesh", 256, keys, Rate, times(20, 30)),
		ratio("unary gRPC Check into three nodes, against gubernator's, 64 callers", "ringlimit-grpc", "gubernator", 64, keys, Rate, times(3, 4)),
		ratio("forwarding tax at the unary gRPC door (CPU of the nodes)", "grpc-forwarded", "grpc-owned", 64, keys, ServerCPU, most(1.35, 1.2)),
		ratio("forwarding tax at /v1/authorize (CPU of the nodes)", "authorize-forwarded", "authorize-owned", 64, keys, ServerCPU, most(1.7, 1.4)),
		ratio("standby credit auto against none, 64 callers", "ringlimit-forward-auto", forward, 64, keys, Rate, times(0.6, 0.75)),
		{What: "decision in memory against the same table without lock, 10⁷ uniform in frames of 64", Bound: most(1.5, 1.2), Name: DecideTarget, Elsewhere: table},
		fastest(1, hot), fastest(1, million), fastest(64, hot), fastest(64, million),
		{What: "allocations per forwarded check, both ends, 64 callers", Ours: at("ringlimit-both-ends", 64, keys), Metric: Allocs, Bound: most(1, 0.5)},
		{What: "bytes per counter at 10⁷, without the key's text", Bound: most(80, 64), Name: BareTarget, Elsewhere: table},
		{What: "bytes per counter at 10⁷, with it", Bound: most(130, 105), Name: NamedTarget, Elsewhere: table},
		{What: "GC CPU at 10⁷ counters against map[string]*state", Bound: most(1.0/500, 0), Name: GCTarget, Elsewhere: table},
		{What: "longest stall of a caller at 10⁷ counters, p99.99 beyond an idle run, ms", Bound: most(5, 1), Name: StallTarget, Elsewhere: table},
		{What: "hot key: all traffic on one key against uniform, 64 callers", Ours: at(forward, 64, hot), Theirs: []Place{at(forward, 64, keys)}, Metric: Rate, Bound: times(0.9, 0)},
		{What: "deny-cache hit, ns of CPU", Ours: at("ringlimit-denied", 1, hot), Metric: Nanos, Bound: most(150, 60)},
		{What: "deny-cache hit, allocations", Ours: at("ringlimit-denied", 1, hot), Metric: Allocs, Bound: most(0.01, 0)},
		ratio("ten nodes in one process, 1,024 callers: CPU against a unary mesh", "ringlimit-ten", "mesh-ten", 1024, keys, CPU, most(1.0/6, 1.0/8)),
		ratio("CheckBatch of 1,000, three nodes, 8 callers, against gubernator's", "ringlimit-grpc-1000", "gubernator-1000", 8, keys, Rate, times(10, 20)),
	}
}
