package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ringlimit/ringlimit/bench/load"
)

// A worker whose rival is all inside has no server, counts what both ends write, and
// takes profiles of its slices, each round into files of its own.
func TestWorker(t *testing.T) {
	w := worker{profiles: t.TempDir()}
	var orders, answers bytes.Buffer
	give := json.NewEncoder(&orders)
	for round := range 2 {
		if err := give.Encode(order{Round: round, Cell: load.Cell{Callers: 8, Keys: "one"}, Warm: 20 * time.Millisecond, Slice: 200 * time.Millisecond}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.run(t.Context(), "tcp-inside", &orders, &answers); err != nil {
		t.Fatal(err)
	}
	got := json.NewDecoder(&answers)
	for i := range 3 {
		var a answer
		if err := got.Decode(&a); err != nil || a.Error != "" {
			t.Fatalf("answer %d: %q, %v", i, a.Error, err)
		}
		if s := a.Sample; i > 0 && (s.Checks == 0 || s.ClientWrites == 0 || s.ClientWrites > 3*s.Checks || s.Server != 0 || s.ServerWrites != 0) {
			t.Errorf("answer %d: %+v", i, s)
		}
	}
	for _, kind := range []string{"cpu", "mutex", "block"} {
		for _, round := range []string{"1", "2"} {
			file := filepath.Join(w.profiles, "8-one", "client."+kind+"."+round+".pb.gz")
			if info, err := os.Stat(file); err != nil || info.Size() == 0 {
				t.Errorf("%s: %v", file, err)
			}
		}
	}
}

// What the environment says to Go's runtime reaches the servers; nothing else does.
func TestRuntimeVariables(t *testing.T) {
	t.Setenv("GOMAXPROCS", "1")
	t.Setenv("GOGC", "")
	t.Setenv("GODEBUG", "madvdontneed=1")
	if got := runtimeVariables(); len(got) != 2 || got[0] != "GOMAXPROCS=1" || got[1] != "GODEBUG=madvdontneed=1" {
		t.Errorf("%q", got)
	}
}
