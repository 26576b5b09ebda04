package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// asHarness as the first argument makes the test binary a harness, for tests
// that end one.
const asHarness = "as-harness"

// wrapped has all that stands between the harness and a node: a namespace, a
// cgroup, another clock, a bound on files.
const wrapped = `about: two nodes, and one with another clock, that wait to be ended
nodes: 2
network: namespaces
files: 500
cgroup_memory: 64MiB
serve: [--memory=1MiB]
counters:
  - {name: log, algorithm: sliding_window_log, limit: 10, window: 30m, keys: 20}
steps:
  - load: {steady: 10}
  - join: {count: 1, clock: 24h, ready: false}
  - wait: 120s
bounds: {extra: 0, unanswered: any}
`

// However a harness ends, its processes end too, and with those that hold them
// the namespaces; the cgroups are removed. SIGQUIT ends it as a panic in some
// goroutine does: nothing that was deferred runs.
func TestNothingOutlivesTheHarness(t *testing.T) {
	b := program(t)
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGQUIT, syscall.SIGKILL} {
		t.Run(s.String(), func(t *testing.T) {
			_, file := write(t, wrapped)
			h := startHarness(t, file, "--binary", b)
			if !h.await(func() bool { return h.nodes() == 3 }) {
				t.Fatalf("there are %d nodes: %s", h.nodes(), h.said.String())
			}
			children := h.children()
			if n := len(h.cgroups()); n != 3 {
				t.Errorf("%d cgroups, want 3", n)
			}
			if err := h.cmd.Process.Signal(s); err != nil {
				t.Fatal(err)
			}
			if code := h.wait(); s == syscall.SIGINT && code != exitError {
				t.Errorf("exit code %d: %s", code, h.said.String())
			}
			if !h.await(func() bool { return len(alive(children))+len(h.cgroups()) == 0 }) {
				t.Errorf("of %v are left: processes %v, cgroups %v", children, alive(children), h.cgroups())
			}
		})
	}
}

// harness is one in a process of its own.
type harness struct {
	cmd   *exec.Cmd
	said  bytes.Buffer
	ended chan struct{}
}

// startHarness skips the test where the scenario cannot be carried out.
func startHarness(t *testing.T, args ...string) *harness {
	t.Helper()
	h := &harness{ended: make(chan struct{})}
	h.cmd = exec.Command(os.Args[0], append([]string{asHarness}, args...)...)
	h.cmd.Stdout, h.cmd.Stderr = &h.said, &h.said
	if err := h.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(h.ended)
		_ = h.cmd.Wait() // how it ended is in ProcessState
	}()
	t.Cleanup(func() {
		_ = h.cmd.Process.Kill() // gone, unless the test failed
		<-h.ended
	})
	if h.await(func() bool { return h.nodes() > 0 || h.isEnded() }); h.isEnded() {
		if strings.Contains(h.said.String(), ": skipped: ") {
			t.Skip(h.said.String())
		}
		t.Fatalf("the harness ended: %s", h.said.String())
	}
	return h
}

func (h *harness) isEnded() bool {
	select {
	case <-h.ended:
		return true
	default:
		return false
	}
}

// wait returns the exit code, -1 for a signal.
func (h *harness) wait() int {
	<-h.ended
	return h.cmd.ProcessState.ExitCode()
}

// await waits a minute for a condition: the machine may be busy.
func (h *harness) await(holds func() bool) bool {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for range 3000 {
		if holds() {
			return true
		}
		<-tick.C
	}
	return false
}

// children are the ids of the processes that the harness started.
func (h *harness) children() (all []int) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is right
	for _, f := range stats {
		id, _ := strconv.Atoi(filepath.Base(filepath.Dir(f)))
		if _, parent := status(id); parent == h.cmd.Process.Pid {
			all = append(all, id)
		}
	}
	return all
}

// nodes counts the children that are nodes by now, and no more what runs them.
func (h *harness) nodes() (n int) {
	for _, id := range h.children() {
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", id)) // gone: no node
		if program, _, _ := bytes.Cut(line, []byte{0}); filepath.Base(string(program)) == "ringlimit" {
			n++
		}
	}
	return n
}

// cgroups are the folders of the harness's cgroups.
func (h *harness) cgroups() (all []string) {
	for _, top := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/memory"} {
		found, _ := filepath.Glob(fmt.Sprintf("%s/ringlimit-chaos-%d-*", top, h.cmd.Process.Pid))
		all = append(all, found...)
	}
	return all
}

// alive picks the processes that are still there. One that nobody has waited for
// yet has ended all the same.
func alive(ids []int) (left []int) {
	for _, id := range ids {
		if state, _ := status(id); state != "" && state != "Z" {
			left = append(left, id)
		}
	}
	return left
}

// status is the state and the parent of a process; see proc_pid_stat(5).
func status(id int) (state string, parent int) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", id))
	if err != nil {
		return "", 0
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	parent, _ = strconv.Atoi(fields[1])
	return fields[0], parent
}
