package main

import (
	"errors"
	"log/slog"
	"math"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// besides is what a node takes beside its counters; see docs/configuration.md.
const besides = 32 << 20

// limitMemory has the garbage collector keep the process below what its cgroup
// grants, unless GOMEMLIMIT says otherwise. Left alone it lets the heap grow to
// twice what is in use, and the kernel then kills a node whose counters are well
// within --memory.
func limitMemory(counters size, log *slog.Logger) {
	bytes, err := memlimit.Set()
	limit := size(bytes)
	switch {
	case errors.Is(err, memlimit.ErrNoCgroup), errors.Is(err, memlimit.ErrCgroupsNotSupported), err == nil && limit == math.MaxInt64:
		return // nobody limits us
	case err != nil:
		log.Warn("nobody knows whether this process's memory is limited; if it is, set GOMEMLIMIT below that", "error", err)
	case limit-besides < counters:
		log.Warn("the counters may take more memory than there is: lower --memory, or raise the limit", "memory", counters.String(), "limit", limit.String())
	default:
		log.Info("the memory of this process is limited", "limit", limit.String())
	}
}
