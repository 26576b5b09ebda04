package driver

import (
	"context"
	"math"
	"time"

	"github.com/ringlimit/ringlimit/owner/transfer"
)

// Run drives the core's clock until ctx ends. One goroutine runs it.
func (d *Driver) Run(ctx context.Context) {
	tick, owe := time.NewTimer(0), time.NewTimer(time.Hour)
	defer tick.Stop()
	defer owe.Stop()
	slept := suspended()
	for {
		select {
		case <-tick.C:
			d.tick(slept())
			tick.Reset(d.untilAlarm())
		case <-d.hurry:
			tick.Reset(d.untilAlarm())
		case <-d.owing:
			owe.Reset(time.Duration(transfer.CopyEvery))
		case <-owe.C:
			d.event(d.core.Owe)
		case <-ctx.Done():
			return
		}
	}
}

// mostSlept is how far the clock that goes on while the machine sleeps may run
// ahead of the one that does not, between two ticks, before that counts as sleep.
const mostSlept = 500 * time.Millisecond

func (d *Driver) tick(slept time.Duration) {
	d.event(func(now int64) {
		d.alarm = math.MaxInt64
		if slept > mostSlept {
			d.core.Suspended(now)
		}
		d.core.Tick(now)
		d.contradict()
		d.parked.sweep(now)
		d.stuck.note(d, now)
		d.unseen.bury(d, now)
	})
}

func (d *Driver) untilAlarm() time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	return time.Duration(d.alarm - d.cfg.Now())
}
