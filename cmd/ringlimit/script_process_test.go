package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// background is a ringlimit process that a script has started.
type background struct {
	cmd    *exec.Cmd
	stdout bytes.Buffer // after the first line; complete once the process has ended
	stderr lockedBuffer
	ended  chan error
}

// lockedBuffer can be read while a process writes to it.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// processes is the key of the map of them in a script's values.
type processes struct{}

// start is `start [-nowait] NAME ARGUMENT…`: starts a ringlimit process and,
// without -nowait, waits for its first line on stdout: that it is ready.
func start(ts *testscript.TestScript, _ bool, args []string) {
	wait := args[0] != "-nowait"
	if !wait {
		args = args[1:]
	}
	p := &background{cmd: exec.Command("ringlimit", args[1:]...), ended: make(chan error, 1)}
	p.cmd.Dir = ts.MkAbs(".")
	p.cmd.Env = environ(ts)
	p.cmd.Stderr = &p.stderr
	pipe, err := p.cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(p.cmd.Start())
	first := make(chan string, 1)
	go p.follow(pipe, first)
	ts.Defer(func() { p.cmd.Process.Kill(); <-p.ended; p.ended <- nil })
	remember(ts, args[0], p)
	if !wait {
		return
	}
	select {
	case line := <-first:
		if line == "" {
			ts.Fatalf("%s ended before it was ready:\n%s", args[0], &p.stderr)
		}
		fmt.Fprint(ts.Stdout(), line)
	case <-time.After(patience):
		ts.Fatalf("%s is not ready:\n%s", args[0], &p.stderr)
	}
}

// follow reads stdout to its end and waits for the process.
func (p *background) follow(pipe io.Reader, first chan<- string) {
	r := bufio.NewReader(pipe)
	line, _ := r.ReadString('\n')
	first <- line
	io.Copy(&p.stdout, r)
	p.ended <- p.cmd.Wait()
}

// environ is the script's RINGLIMIT_ variables, and what a process needs.
func environ(ts *testscript.TestScript) []string {
	env := []string{"PATH=" + ts.Getenv("PATH"), "HOME=" + ts.Getenv("HOME"), "GOCOVERDIR=" + ts.Getenv("GOCOVERDIR")}
	for _, name := range strings.Fields(ts.Getenv("PASS")) {
		env = append(env, name+"="+ts.Getenv(name))
	}
	return env
}

func remember(ts *testscript.TestScript, name string, p *background) {
	all := ts.Value(processes{}).(map[string]*background)
	all[name] = p
}

func find(ts *testscript.TestScript, name string) *background {
	p := ts.Value(processes{}).(map[string]*background)[name]
	if p == nil {
		ts.Fatalf("no process %s", name)
	}
	return p
}

// signalProcess is `signal NAME TERM|INT|KILL|STOP|CONT|HUP`.
func signalProcess(ts *testscript.TestScript, _ bool, args []string) {
	signals := map[string]syscall.Signal{
		"TERM": syscall.SIGTERM, "INT": syscall.SIGINT, "KILL": syscall.SIGKILL, "STOP": syscall.SIGSTOP, "CONT": syscall.SIGCONT, "HUP": syscall.SIGHUP,
	}
	ts.Check(find(ts, args[0]).cmd.Process.Signal(signals[args[1]]))
}

// logged is `logged NAME PATTERN`: waits until the process has logged what matches.
func logged(ts *testscript.TestScript, _ bool, args []string) {
	p, pattern := find(ts, args[0]), regexp.MustCompile(args[1])
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for deadline := time.Now().Add(patience); !pattern.MatchString(p.stderr.String()); <-again.C {
		if time.Now().After(deadline) {
			ts.Fatalf("%s has not logged %s:\n%s", args[0], pattern, &p.stderr)
		}
	}
}

// finish is `finish NAME CODE`: waits for the end of a process, checks its exit
// code (-1: by a signal), and prints what it wrote.
func finish(ts *testscript.TestScript, _ bool, args []string) {
	p := find(ts, args[0])
	var err error
	select {
	case err = <-p.ended:
	case <-time.After(patience):
		ts.Fatalf("%s does not end:\n%s", args[0], &p.stderr)
	}
	p.ended <- nil // for the Defer of start
	fmt.Fprint(ts.Stdout(), p.stdout.String())
	fmt.Fprint(ts.Stderr(), p.stderr.String())
	if got := howEnded(err); got != args[1] {
		ts.Fatalf("%s ended with %s, want %s\n%s", args[0], got, args[1], &p.stderr)
	}
}

func howEnded(err error) string {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return strconv.Itoa(exit.ExitCode())
	}
	return "0"
}
