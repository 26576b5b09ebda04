// Package judge turns a history into a verdict. It is arithmetic on totals: what
// each key was admitted, against what its algorithm admits by definition and
// what the run was promised to stay within.
package judge

import (
	"fmt"
	"slices"
	"time"

	"github.com/ringlimit/ringlimit/chaos/history"
	"github.com/ringlimit/ringlimit/chaos/keyspace"
	"github.com/ringlimit/ringlimit/chaos/scenario"
)

// A Case is what is judged.
type Case struct {
	Keys     *keyspace.Space
	History  *history.History // nothing adds to it any more
	Bounds   scenario.Bounds
	Moved    time.Duration // by which a reset moved, at most; see scenario.Resets
	Homeless int64         // checks that were not made because no node was ready
	Withheld int64         // … because too many were under way
	Stalled  time.Duration // for which the harness itself stood still, at most
}

// Line is one line of the verdict: a bound, or a figure that nobody bounded.
type Line struct {
	Name     string   `json:"name"`
	Promised *float64 `json:"promised,omitempty"` // nil: a figure, not a bound
	Measured float64  `json:"measured"`
	Unit     string   `json:"unit,omitempty"` // "ms", or empty for a count
	Note     string   `json:"note,omitempty"`
}

// Broken says that the bound did not hold.
func (l *Line) Broken() bool { return l.Promised != nil && l.Measured > *l.Promised }

func bound[N int | int64](name string, promised, measured N, note string, args ...any) Line {
	p := float64(promised)
	return Line{Name: name, Promised: &p, Measured: float64(measured), Note: fmt.Sprintf(note, args...)}
}

func figure(name string, measured int64, note string) Line {
	return Line{Name: name, Measured: float64(measured), Note: note}
}

// span is a bound on a time; without one it is a figure.
func span(name string, promised, measured time.Duration, note string) Line {
	l := Line{Name: name, Measured: millis(measured), Unit: "ms", Note: note}
	if promised > 0 {
		p := millis(promised)
		l.Promised = &p
	}
	return l
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1e3 }

// Broken says whether any bound did not hold.
func Broken(lines []Line) bool {
	return slices.ContainsFunc(lines, func(l Line) bool { return l.Broken() })
}

// Judge gives the verdict, the bounds on admissions first.
func Judge(c *Case) []Line {
	events := c.History.Events()
	t := tallies(c, absences(events))
	lines := c.admissions(t, excusesOf(events))
	lines = append(lines, c.answers(t)...)
	if c.Bounds.Thawed {
		lines = append(lines, c.thawed(t, events))
	}
	lines = append(lines, c.dark(events, t.away)...)
	lines = append(lines, c.lives(events)...)
	if c.Bounds.Resets > 0 {
		lines = append(lines, span("a used-up budget comes back at another time, by", c.Bounds.Resets, c.Moved, ""))
	}
	if c.Bounds.Growth.Percent > 0 {
		lines = append(lines, c.growth()...)
	}
	lines = append(lines, t.latencies()...)
	return append(lines, span("the harness itself stood still, longest", 0, c.Stalled, "the machine was busy with something else"))
}

// answers judges how many checks had no owner's verdict. One that asked a node
// which was killed or stopped meanwhile is no fault of the cluster's.
func (c *Case) answers(t *tally) []Line {
	lines := []Line{figure("checks", t.checks, "")}
	if t.checks == 0 {
		lines[0] = bound("checks that were never made", 0, 1, "the run proves nothing")
	}
	note := fmt.Sprintf("by on_failure %d, errors %d", t.fallbacks, t.unanswered-t.fallbacks)
	if c.Bounds.Unanswered.Unbounded {
		lines = append(lines, figure("checks without an owner's verdict", t.unanswered, note))
	} else {
		lines = append(lines, bound("checks without an owner's verdict", c.Bounds.Unanswered.Of(t.checks), t.unanswered, "%s", note))
	}
	if c.Bounds.Homeless.Unbounded {
		lines = append(lines, figure("checks that found no node ready", c.Homeless, ""))
	} else {
		lines = append(lines, bound("checks that found no node ready", c.Bounds.Homeless.Of(t.checks), c.Homeless, ""))
	}
	if c.Withheld > 0 {
		lines = append(lines, figure("checks that were not made: too many were under way", c.Withheld, ""))
	}
	if t.excused > 0 {
		lines = append(lines, figure("checks that asked a node which was killed or stopped", t.excused, ""))
	}
	return lines
}
