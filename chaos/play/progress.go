package play

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/ringlimit/ringlimit/chaos/history"
	"github.com/ringlimit/ringlimit/chaos/scenario"
)

// Progress is how far a run is.
type Progress struct {
	Done, Total int    // steps
	Step        string // under way
	Rate        int64  // checks in the last second
	Up          int    // nodes that are ready
	Totals      history.Totals
}

// booting is the text while the first nodes come up, before the first step.
const booting = "start"

// meter counts steps. Its goroutine reads what the steps' writes.
type meter struct {
	mu          sync.Mutex
	done, total int
	text        string
	last        int64 // checks when the rate was last computed
}

func (m *meter) begin(text string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.text != booting {
		m.done++
	}
	m.text = text
}

// say changes what is under way, within a step.
func (m *meter) say(text string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.text = text
}

// report tells of the progress every second until ctx ends.
func (st *stage) report(ctx context.Context) {
	if st.Progress == nil {
		return
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			st.Progress(st.progress())
		}
	}
}

func (st *stage) progress() Progress {
	totals := st.history.Totals()
	m := &st.meter
	m.mu.Lock()
	defer m.mu.Unlock()
	p := Progress{Done: m.done, Total: m.total, Step: m.text, Rate: totals.Checks - m.last, Up: len(st.cluster.Doors()), Totals: totals}
	m.last = totals.Checks
	return p
}

// describe names a step for the reader.
func describe(s *scenario.Step) string {
	switch {
	case s.Load != nil:
		return fmt.Sprintf("load %d/s, bursts %d/s", s.Load.Steady, s.Load.Bursty)
	case s.Fill != nil:
		return "use up all keys"
	case s.Flood != nil:
		return "ask once for each of many keys"
	case s.Wait > 0:
		return fmt.Sprint("wait ", s.Wait)
	case s.Fresh:
		return "fresh keys"
	case s.Settle > 0:
		return "settle"
	case s.Resets != "":
		return string(s.Resets) + " resets"
	case s.Limit != nil:
		return fmt.Sprintf("limit of %s to %d at %s", s.Limit.Class, s.Limit.To, s.Limit.Node)
	case s.Heal:
		return "heal"
	case s.Cut != nil:
		return "cut " + describeCut(s.Cut)
	}
	return describeDisturbance(s)
}

func describeDisturbance(s *scenario.Step) string {
	switch {
	case s.Join != nil:
		return fmt.Sprintf("join %d", s.Join.Count)
	case s.Signal != nil && s.Signal.Kill:
		return fmt.Sprint("SIGKILL ", s.Signal.Who)
	case s.Signal != nil:
		return fmt.Sprint("SIGTERM ", s.Signal.Who)
	case s.Pause != nil:
		return fmt.Sprintf("SIGSTOP %s for %v", s.Pause.Who, s.Pause.For)
	case s.Restart != nil:
		return fmt.Sprint("restart ", s.Restart.Who)
	case s.Attack != nil:
		return fmt.Sprintf("%s at %s for %v", s.Attack.Kind, s.Attack.Who, s.Attack.For)
	case s.Random != nil:
		return fmt.Sprintf("random harm for %v", s.Random.For)
	}
	return fmt.Sprint("start ", s.Start)
}

func describeCut(k *scenario.Cut) string {
	how := []string{fmt.Sprintf("%d%%", k.Percent)}
	if k.Delay > 0 {
		how[0] = fmt.Sprintf("%v ± %v late", k.Delay, k.Jitter)
	}
	if k.Only != "" {
		how = append(how, string(k.Only))
	}
	if !k.Both {
		how = append(how, "one way")
	}
	return fmt.Sprintf("%v from %v (%s)", k.From, k.To, strings.Join(how, ", "))
}
