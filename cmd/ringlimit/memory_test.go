package main

import (
	"bytes"
	"log/slog"
	"math"
	"runtime/debug"
	"strings"
	"testing"
)

// What GOMEMLIMIT says stays, and whoever gives the counters more than that
// leaves is told. (That a cgroup's limit is found is shown by a
// scenario of chaos, memory-cgroup: without it the kernel kills all its nodes.)
func TestLimitMemory(t *testing.T) {
	const limit = 100 << 20
	t.Setenv("GOMEMLIMIT", "100MiB") // the runtime has read it at the start of this process
	old := debug.SetMemoryLimit(limit)
	t.Cleanup(func() { debug.SetMemoryLimit(old) })
	for _, tt := range []struct {
		counters size
		want     string
	}{
		{limit - besides, `level=INFO msg="the memory of this process is limited" limit=100MiB`},
		{limit - besides + 1<<20, `level=WARN msg="the counters may take more memory than there is: lower --memory, or raise the limit" memory=69MiB limit=100MiB`},
	} {
		var out bytes.Buffer
		limitMemory(tt.counters, slog.New(slog.NewTextHandler(&out, nil)))
		if !strings.Contains(out.String(), tt.want) {
			t.Errorf("%v: told %q, want %q", &tt.counters, out.String(), tt.want)
		}
		if got := debug.SetMemoryLimit(-1); got != limit {
			t.Errorf("the limit is %d, want %d", got, limit)
		}
	}
	debug.SetMemoryLimit(math.MaxInt64)
	var out bytes.Buffer
	if limitMemory(1<<40, slog.New(slog.NewTextHandler(&out, nil))); out.Len() > 0 {
		t.Errorf("without a limit: told %q", out.String())
	}
}
