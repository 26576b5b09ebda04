package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	builder "github.com/ringlimit/ringlimit/chaos/process"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == asHarness {
		os.Args = os.Args[1:]
		os.Exit(process())
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		os.RemoveAll(built)
		os.Exit(code)
	}))
}

// ours counts the processes that a run under dir started and that are still
// there.
func ours(t *testing.T, dir string) (n int) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if line, err := os.ReadFile(f); err == nil && bytes.Contains(line, []byte(dir)) {
			n++
		}
	}
	return n
}

func TestBadInput(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "bad.yaml")
	if err := os.WriteFile(bad, []byte("about: x\nnodes: 3\nsteps:\n  - kil: any\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"nope"}, "nope: no such scenario; there are clock, cold-start"},
		{[]string{"all", "join"}, "all: stands for every scenario"},
		{[]string{bad}, "bad.yaml:4:5: unknown field \"kil\""},
		{[]string{"gone.yaml"}, "gone.yaml"},
		{[]string{"kill", "--nodes", "2"}, "--nodes: kill needs at least 3, not 2"},
		{[]string{"kill", "--nodes", "0"}, "--nodes: must be from 1 to 16, is 0"},
		{[]string{"kill", "--nodes", "17"}, "--nodes: must be from 1 to 16, is 17"},
		{[]string{"kill", "--duration", "-1s"}, "--duration: must not be negative"},
		{[]string{"kill", "--binary", "x", "--tags", "y"}, "--tags: have no effect"},
		{[]string{"kill", "--binary", "/no/such/file"}, "--binary: exec: \"/no/such/file\": stat /no/such/file: no such file"},
		{[]string{"kill", "--binary", bad}, "--binary: exec: \"" + bad + "\": permission denied"},
		{[]string{"kill", "--report", "/no/such/page"}, "--report: open /no/such/page: no such file"},
		{[]string{"kill", "--frob"}, "unknown flag: --frob"},
	} {
		var out, problems bytes.Buffer
		if code := run(t.Context(), tt.args, &out, &problems); code != exitError || !strings.Contains(problems.String(), tt.want) {
			t.Errorf("%v: exit %d, %q; want 2, %q", tt.args, code, problems.String(), tt.want)
		}
	}
}

func TestList(t *testing.T) {
	var out, problems bytes.Buffer
	if code := run(t.Context(), nil, &out, &problems); code != exitHeld {
		t.Fatalf("exit %d: %s", code, problems.String())
	}
	if lines := strings.Count(out.String(), "\n"); lines != len(names()) || lines == 0 {
		t.Errorf("%d lines for %d scenarios", lines, len(names()))
	}
}

// tiny is a scenario of about a second and a half.
const tiny = `about: two nodes are asked for a few keys and stopped
nodes: 2
serve: [--deadline=2s]
counters:
  - {name: log, algorithm: sliding_window_log, limit: 10, window: 30m, keys: 20}
steps:
  - load: {steady: 50}
  - fill: 20s
  - load: {}
bounds: {extra: 0, unanswered: any}
`

// built is the folder of binary, once there is one.
var built string

// binary is the program under test, built once for all tests.
var binary = sync.OnceValues(func() (string, error) {
	var err error
	if built, err = os.MkdirTemp("", "chaos-test-"); err != nil {
		return "", err
	}
	return builder.Build(context.Background(), built, "")
})

func program(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("it starts processes")
	}
	b, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// write makes the scenario a file in a folder that the run's own folder is in
// too, so that its processes can be told by it.
func write(t *testing.T, text string) (dir, file string) {
	t.Helper()
	dir = t.TempDir()
	t.Setenv("TMPDIR", dir)
	file = filepath.Join(dir, "tiny.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir, file
}

// A run on real processes: it holds, it is told as JSON and as a page, and it
// leaves nothing behind.
func TestRun(t *testing.T) {
	b := program(t)
	dir, file := write(t, tiny)
	page := filepath.Join(t.TempDir(), "page.html")
	var out, problems bytes.Buffer
	code := run(t.Context(), []string{file, "--binary", b, "--json", "--seed", "7", "--report", page}, &out, &problems)
	var r result
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatalf("exit %d, %v: %s%s", code, err, out.String(), problems.String())
	}
	if code != exitHeld || !r.Held || r.Scenario != "tiny" || r.Seed != 7 || len(r.Bounds) < 5 {
		t.Errorf("exit %d, result %+v", code, r)
	}
	if !strings.HasSuffix(problems.String(), "1 held, 0 broken, 0 skipped\n") {
		t.Errorf("the last line is not the sum: %q", problems.String())
	}
	if text, err := os.ReadFile(page); err != nil || !bytes.Contains(text, []byte("<h2><span class=\"badge held\">held</span> tiny</h2>")) {
		t.Errorf("the page lacks the run: %v", err)
	}
	leavesNothing(t, dir)
}

// A bound that nobody can keep is broken, and the logs are there.
func TestBroken(t *testing.T) {
	b := program(t)
	_, file := write(t, strings.Replace(tiny, "bounds: {", "bounds: {ready: 1ns, ", 1))
	var out, problems bytes.Buffer
	if code := run(t.Context(), []string{file, "--binary", b}, &out, &problems); code != exitBroken {
		t.Fatalf("exit %d: %s%s", code, out.String(), problems.String())
	}
	_, kept, _ := strings.Cut(out.String(), "logs are kept in ")
	if _, err := os.Stat(filepath.Join(strings.TrimSpace(kept), "node-0.log")); err != nil || !strings.Contains(out.String(), "BROKEN") {
		t.Errorf("%v: %s", err, out.String())
	}
}

// Whoever interrupts a run finds no process afterwards.
func TestInterrupted(t *testing.T) {
	b := program(t)
	dir, file := write(t, strings.Replace(tiny, "fill: 20s", "wait: 60s", 1))
	ctx, interrupt := context.WithCancel(t.Context())
	done := make(chan int)
	var out, problems bytes.Buffer
	go func() { done <- run(ctx, []string{file, "--binary", b}, &out, &problems) }()
	for ours(t, dir+"/ringlimit-chaos") < 2 {
		select {
		case code := <-done:
			t.Fatalf("exit %d: %s", code, problems.String())
		case <-time.After(20 * time.Millisecond):
		}
	}
	interrupt()
	if code := <-done; code != exitError {
		t.Errorf("exit %d: %s", code, problems.String())
	}
	leavesNothing(t, dir)
}

func leavesNothing(t *testing.T, dir string) {
	t.Helper()
	if n := ours(t, dir+"/ringlimit-chaos"); n > 0 {
		t.Errorf("%d processes are left", n)
	}
	if left, _ := filepath.Glob(dir + "/ringlimit-chaos-*"); len(left) > 0 {
		t.Errorf("%v are left", left)
	}
}
