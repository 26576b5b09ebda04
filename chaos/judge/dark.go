package judge

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/ringlimit/ringlimit/chaos/history"
)

const (
	after  = int64(20 * time.Second) // how long after a SIGKILL its consequences are looked for
	apart  = int64(time.Second)      // what comes later than this after the last is none of them
	before = int64(time.Minute)      // the longest that a check may have been under way
)

// dark measures, for each owner that was killed, how long its keys went without
// an owner's verdict when asked for elsewhere: until the last of the answers that
// were none, or as long as an answer was waited for.
func (c *Case) dark(events []history.Event, away absence) []Line {
	var each []int64
	for _, e := range events {
		if e.Kind == history.Killed && len(e.Keys) > 0 {
			each = append(each, c.darkAfter(&e, away))
		}
	}
	if len(each) == 0 {
		return nil
	}
	slices.Sort(each)
	note := fmt.Sprintf("over %d kills", len(each))
	return []Line{
		span("without an owner's verdict after SIGKILL, median", 0, time.Duration(each[len(each)/2]), note),
		span("without an owner's verdict after SIGKILL, longest", c.Bounds.Dark, time.Duration(each[len(each)-1]), note),
	}
}

func (c *Case) darkAfter(e *history.Event, away absence) int64 {
	end := e.At
	for _, r := range c.concerned(e, away) {
		unanswered := !r.ByOwner() && r.Call <= end+apart
		waited := r.ByOwner() && r.Call <= end // called in the dark, and answered in the end
		if unanswered || waited {
			end = max(end, r.Return)
		}
	}
	return end - e.At
}

// concerned lists, by call, the checks of the killed node's keys that were under
// way when it was killed, or came soon after, and asked a node that lived.
func (c *Case) concerned(e *history.Event, away absence) (all []*history.Record) {
	keys := make(map[uint32]bool, len(e.Keys))
	for _, k := range e.Keys {
		keys[k] = true
	}
	for r := range c.History.Records() {
		if keys[r.Key] && r.Return > e.At && r.Call > e.At-before && r.Call < e.At+after && !away.during(r) && !r.Batched {
			all = append(all, r)
		}
	}
	slices.SortFunc(all, func(a, b *history.Record) int { return cmp.Compare(a.Call, b.Call) })
	return all
}
