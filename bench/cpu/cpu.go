// Package cpu reads what processes have used and done.
package cpu

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"runtime/metrics"
	"strconv"
	"syscall"
	"time"
)

// Self is the time that this process has used, in user mode and in the kernel.
func Self() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0 // there is no such error for oneself
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// ticks is USER_HZ, in which /proc counts: 100 on every architecture of Go's.
const ticks = 100

// Process is the time that another process has used, to 10 ms.
func Process(pid int) (time.Duration, error) {
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	return parseStat(line)
}

// Processes is the sum over several.
func Processes(pids []int) (sum time.Duration, err error) {
	for _, pid := range pids {
		used, err := Process(pid)
		if err != nil {
			return 0, err
		}
		sum += used
	}
	return sum, nil
}

// parseStat adds utime and stime, fields 14 and 15 of proc_pid_stat(5). The second
// field is the program's name, in which there may be blanks and parentheses.
func parseStat(line []byte) (time.Duration, error) {
	fields := bytes.Fields(line[bytes.LastIndexByte(line, ')')+1:])
	if len(fields) < 13 {
		return 0, fmt.Errorf("a line of /proc/PID/stat has %d fields behind the name; want 13 at least", len(fields))
	}
	var sum int64
	for _, field := range fields[11:13] {
		n, err := strconv.ParseInt(string(field), 10, 64)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return time.Duration(sum) * (time.Second / ticks), nil
}

// Writes is how many system calls that write to files, sockets or pipes several
// processes have made, ever: syscw of proc_pid_io(5). What sends with sendmsg(2) is not
// in it; Go and Redis write(2).
func Writes(pids ...int) (sum int64, err error) {
	for _, pid := range pids {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", pid))
		if err != nil {
			return 0, err
		}
		n, err := parseWrites(text)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}

func parseWrites(text []byte) (int64, error) {
	_, rest, ok := bytes.Cut(text, []byte("\nsyscw: "))
	if !ok {
		return 0, errors.New("there is no syscw in /proc/PID/io")
	}
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	return strconv.ParseInt(string(line), 10, 64)
}

// Allocations is how many objects this process has allocated, ever.
func Allocations() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:objects"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
