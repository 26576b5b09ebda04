package owner

import "golang.org/x/sys/unix"

// threadCPU is the processor time of this thread in nanoseconds. Unlike the time
// of day it does not count what other programs take, and so compares two things
// on a busy machine. The goroutine has to be locked to its thread.
func threadCPU() int64 { return cpu(unix.CLOCK_THREAD_CPUTIME_ID) }

// processCPU is that of the whole process.
func processCPU() int64 { return cpu(unix.CLOCK_PROCESS_CPUTIME_ID) }

func cpu(clock int32) int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(clock, &t); err != nil {
		panic(err)
	}
	return t.Nano()
}
