package process

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// alive says whether there is a process of this id.
func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }

// A process that ignores SIGTERM, or is stopped, ends all the same.
func TestGroupKill(t *testing.T) {
	dir := t.TempDir()
	var g Group
	start := func(script string) *Process {
		p, err := g.Start(filepath.Join(dir, "log"), "sh", "-c", script)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	all := []*Process{start("trap '' TERM; while :; do sleep 0.1; done"), start("exec sleep 60"), start("exit 3")}
	if err := all[1].Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	<-all[2].Done()
	if code := all[2].ExitCode(); code != 3 {
		t.Errorf("exit code %d, want 3", code)
	}
	if err := all[2].Signal(syscall.SIGTERM); err != nil {
		t.Errorf("a signal to one that is gone: %v", err)
	}
	g.Kill()
	for _, p := range all {
		if alive(p.PID()) {
			t.Errorf("process %d is still there", p.PID())
		}
	}
	if _, err := g.Start(filepath.Join(dir, "log"), "true"); !errors.Is(err, ErrEnded) {
		t.Errorf("a start after the end: %v", err)
	}
}

func TestLogAndEnvironment(t *testing.T) {
	t.Setenv("RINGLIMIT_NAME", "somebody")
	log := filepath.Join(t.TempDir(), "log")
	for range 2 { // the second is appended
		p, err := Start(log, "sh", "-c", "echo out; echo problem >&2; echo name=$RINGLIMIT_NAME")
		if err != nil {
			t.Fatal(err)
		}
		<-p.Done()
	}
	text, err := os.ReadFile(log)
	if want := strings.Repeat("out\nproblem\nname=\n", 2); err != nil || string(text) != want {
		t.Errorf("log is %q, %v; want %q", text, err, want)
	}
}

func TestNoSuchProgram(t *testing.T) {
	_, err := Start(filepath.Join(t.TempDir(), "log"), "no-such-program-here")
	if err == nil || !strings.Contains(err.Error(), "no-such-program-here") {
		t.Errorf("error is %v", err)
	}
}
