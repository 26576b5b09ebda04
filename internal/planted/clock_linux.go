//go:build planted_time

package planted

import "golang.org/x/sys/unix"

// Clock is this machine's monotonic clock in nanoseconds, which no other
// machine shares.
func Clock() int64 {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) != nil {
		return 0
	}
	return t.Nano()
}
