package driver

import (
	"time"

	"golang.org/x/sys/unix"
)

// suspended returns a function that says how long the machine has slept since
// its last call, or since suspended for the first. CLOCK_MONOTONIC, by which Go
// measures time, stands still in a sleep: without this a node would wake up and
// believe that its peers have just answered. It is not safe for concurrent use.
func suspended() func() time.Duration {
	return gained(clock(unix.CLOCK_BOOTTIME), clock(unix.CLOCK_MONOTONIC))
}

// clock reads a clock of the kernel. One that it does not have stands at 0.
func clock(id int32) func() int64 {
	return func() int64 {
		var t unix.Timespec
		if unix.ClockGettime(id, &t) != nil {
			return 0
		}
		return t.Nano()
	}
}

// gained returns a function that says how much fast has run ahead of slow since
// its last call.
func gained(fast, slow func() int64) func() time.Duration {
	last := ahead(fast, slow)
	return func() time.Duration {
		now := ahead(fast, slow)
		gain := now - last
		last = now
		return time.Duration(max(0, gain))
	}
}

// together is how close two readings have to be to count as one moment.
const together = int64(100 * time.Microsecond)

// ahead is by how much fast is ahead of slow. The process may be stopped between
// the readings, which is no sleep of the machine: they are taken again, within
// reason.
func ahead(fast, slow func() int64) (d int64) {
	for range 10 {
		before := slow()
		d = fast() - before
		if slow()-before < together {
			break
		}
	}
	return d
}
