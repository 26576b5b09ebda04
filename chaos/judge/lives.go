package judge

import (
	"fmt"
	"time"

	"github.com/ringlimit/ringlimit/chaos/history"
)

// lives judges how processes began and ended: from start to readiness, from
// SIGTERM to exit, and that nobody else went.
func (c *Case) lives(events []history.Event) []Line {
	l := life{told: map[int]history.Event{}, begun: map[int]int64{}}
	for _, e := range events {
		l.see(e)
	}
	lines := []Line{bound("processes that ended by themselves", 0, l.crashed, "%s", l.whose)}
	if l.ready > 0 {
		lines = append(lines, span("from start to readiness, longest", c.Bounds.Ready, l.ready, ""))
	}
	if l.left > 0 {
		lines = append(lines,
			bound("exit codes other than 0 after SIGTERM", 0, l.failed, "of %d", l.left),
			span("from SIGTERM to exit, longest", c.Bounds.Exit, l.leave, ""))
	}
	return lines
}

type life struct {
	told  map[int]history.Event // who was told to end, by what, or has no place here
	begun map[int]int64         // who is not ready yet, since when

	crashed, failed, left int
	whose                 string
	ready, leave          time.Duration
}

func (l *life) see(e history.Event) {
	switch e.Kind {
	case history.Started:
		if delete(l.told, e.Node); e.Refused {
			l.told[e.Node] = e
		} else {
			l.begun[e.Node] = e.At
		}
	case history.Ready:
		if at, ok := l.begun[e.Node]; ok {
			l.ready = max(l.ready, time.Duration(e.At-at))
			delete(l.begun, e.Node)
		}
	case history.Terminate, history.Killed:
		l.told[e.Node] = e
	case history.Exited:
		l.exit(e)
	}
}

func (l *life) exit(e history.Event) {
	told, ok := l.told[e.Node]
	switch {
	case !ok:
		l.crashed++
		l.whose = fmt.Sprintf("node %d, exit code %d%s; see its log", e.Node, e.Code, e.Why)
	case told.Kind == history.Terminate:
		l.left++
		l.leave = max(l.leave, time.Duration(e.At-told.At))
		if e.Code != 0 {
			l.failed++
		}
	}
}
