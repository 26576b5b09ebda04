package limit

import "time"

// Clock is wall time that never steps: the monotonic clock, anchored to wall
// time once. A step of the wall clock while the process runs, by an operator or
// by NTP, therefore neither opens nor extends a window.
type Clock struct {
	start time.Time // carries a monotonic reading
	unix  int64     // wall time of start, Unix nanoseconds
}

// NewClock anchors a clock at the present.
func NewClock() *Clock {
	now := time.Now()
	return &Clock{start: now, unix: now.UnixNano()}
}

// Now is the time in Unix nanoseconds. It never runs back.
func (c *Clock) Now() int64 { return c.unix + int64(time.Since(c.start)) }
