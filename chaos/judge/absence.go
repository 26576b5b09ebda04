package judge

import (
	"math"
	"slices"
	"time"

	"github.com/ringlimit/ringlimit/chaos/history"
)

// absence says when each node was killed, gone or stopped. A node that was
// asked to leave is not absent: until it is gone it owes answers, and it says
// that it goes.
type absence map[int][]stretch

type stretch struct{ from, to int64 }

func absences(events []history.Event) absence {
	away := absence{}
	for _, e := range events {
		switch e.Kind {
		case history.Killed, history.Paused:
			away.begin(e.Node, e.At)
		case history.Ready, history.Resumed:
			away.end(e.Node, e.At)
		}
	}
	return away
}

// fence is how long a process may be stopped without noticing: it looks for a gap
// of a second, every 100 ms, and what it finds after a shorter one is merely
// late.
const fence = int64(1500 * time.Millisecond)

// stretches of time, in no order.
type stretches []stretch

// pauses are the times during which any process was stopped for longer than the
// fence.
func pauses(events []history.Event) (all stretches) {
	since := map[int]int64{}
	for _, e := range events {
		switch e.Kind {
		case history.Paused:
			since[e.Node] = e.At
		case history.Resumed:
			if s := (stretch{since[e.Node], e.At}); s.to-s.from > fence {
				all = append(all, s)
			}
			delete(since, e.Node)
		}
	}
	for _, from := range since {
		all = append(all, stretch{from, math.MaxInt64})
	}
	return all
}

func (s stretches) at(t int64) bool {
	return slices.ContainsFunc(s, func(s stretch) bool { return s.from <= t && t <= s.to })
}

func (a absence) begin(node int, at int64) {
	if n := len(a[node]); n > 0 && a[node][n-1].to == math.MaxInt64 {
		return
	}
	a[node] = append(a[node], stretch{at, math.MaxInt64})
}

func (a absence) end(node int, at int64) {
	if n := len(a[node]); n > 0 && a[node][n-1].to == math.MaxInt64 {
		a[node][n-1].to = at
	}
}

// during says whether the node that was asked was absent while the check was
// under way.
func (a absence) during(r *history.Record) bool {
	for _, s := range a[int(r.Node)] {
		if r.Return >= s.from && r.Call <= s.to {
			return true
		}
	}
	return false
}
