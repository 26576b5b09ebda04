package judge

import (
	"math"

	"github.com/ringlimit/ringlimit/chaos/history"
	"github.com/ringlimit/ringlimit/chaos/scenario"
)

// excuses are the events that may let through more than a limit, for bounds that
// say extra: by_events. A key is excused by those that fell into its life.
type excuses struct {
	crashes []stretch // a process was killed or stopped: U each
	cuts    []stretch // the network was in two: A each
}

// healing is how long after a cut its sides may still not know of each other.
const healing = int64(20e9)

func excusesOf(events []history.Event) *excuses {
	e, paused := &excuses{}, map[int]int64{}
	for _, event := range events {
		switch event.Kind {
		case history.Killed:
			e.crashes = append(e.crashes, stretch{event.At, event.At})
		case history.Paused:
			paused[event.Node] = event.At
		case history.Resumed:
			e.crashes = append(e.crashes, stretch{paused[event.Node], event.At})
		case history.Cut:
			e.cuts = append(e.cuts, stretch{event.At, math.MaxInt64})
		case history.Healed:
			for i := range e.cuts {
				e.cuts[i].to = min(e.cuts[i].to, event.At+healing)
			}
		}
	}
	return e
}

// of is what a key of the class may have been admitted beyond A in a life from its
// first call to its last return.
func (e *excuses) of(class *scenario.Class, first, last int64) int64 {
	return overlapping(e.crashes, first, last)*class.Slack() + overlapping(e.cuts, first, last)*class.Limit
}

func overlapping(all []stretch, from, to int64) (n int64) {
	for _, s := range all {
		if s.from <= to && from <= s.to {
			n++
		}
	}
	return n
}
