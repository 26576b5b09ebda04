package rival

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/ringlimit/ringlimit/bench/profile"
	"github.com/ringlimit/ringlimit/chaos/process"
)

// Env is where a rival's processes live. Its owner calls Close.
type Env struct {
	Dir       string // for logs, sockets and rules
	Self      string // this program, which also serves; see serve.go
	Ringlimit string // the ringlimit program
	Redis     string // redis-server; empty: not installed
	// Variables are set for every process, as NAME=value: it has no others.
	Variables []string
	// Profiled says that our own servers are to record what they wait for.
	Profiled bool

	group   process.Group
	pids    []int
	sources []profile.Source
	logs    int
}

// Close ends every process that was started.
func (e *Env) Close() { e.group.Kill() }

// PIDs are the processes that were started.
func (e *Env) PIDs() []int { return e.pids }

// Profiles are the processes that can be profiled, as far as they can.
func (e *Env) Profiles() []profile.Source { return e.sources }

// child is a process that was started, and what it prints.
type child struct {
	*process.Process
	log string
}

func (e *Env) spawn(program string, args ...string) (*child, error) {
	e.logs++
	log := filepath.Join(e.Dir, "log-"+strconv.Itoa(e.logs))
	if len(e.Variables) > 0 { // env becomes the program: the process is the same
		program, args = "env", slices.Concat(e.Variables, []string{program}, args)
	}
	p, err := e.group.Start(log, program, args...)
	if err != nil {
		return nil, err
	}
	e.pids = append(e.pids, p.PID())
	return &child{p, log}, nil
}

// patience is how long a process may take to be ready, on a machine with other work.
const patience = time.Minute

// line waits for a line that the child prints which begins so, and returns the rest
// of it.
func (c *child) line(ctx context.Context, prefix string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		if rest, ok := find(c.log, prefix); ok {
			return rest, nil
		}
		select {
		case <-c.Done():
			return "", fmt.Errorf("it has ended: %s", tail(c.log))
		case <-ctx.Done():
			return "", fmt.Errorf("it is not ready after %v: %s", patience, tail(c.log))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// find returns the last such line.
func find(log, prefix string) (rest string, ok bool) {
	f, err := os.Open(log)
	if err != nil {
		return "", false
	}
	defer f.Close()
	for in := bufio.NewScanner(f); in.Scan(); {
		if r, match := strings.CutPrefix(in.Text(), prefix); match {
			rest, ok = r, true
		}
	}
	return rest, ok
}

func tail(log string) string {
	text, err := os.ReadFile(log)
	if err != nil {
		return err.Error()
	}
	const most = 400
	return strings.TrimSpace(string(text[max(0, len(text)-most):]))
}

// What our own servers print: where their profiles are, if they were told to have
// some, and, when they are ready, where they listen.
const (
	profiles = "profiles "
	serving  = "serving "
)

// serve starts this program as a server of a kind and returns its addresses.
func (e *Env) serve(ctx context.Context, kind string, args ...string) (*child, []string, error) {
	args = append([]string{"serve", kind}, args...)
	if e.Profiled {
		args = append(args, "--profile")
	}
	c, err := e.spawn(e.Self, args...)
	if err != nil {
		return nil, nil, err
	}
	at, err := c.line(ctx, serving)
	if err != nil {
		return nil, nil, err
	}
	if addr, ok := find(c.log, profiles); ok {
		e.sources = append(e.sources, profile.Source{Name: kind + "-" + strconv.Itoa(len(e.sources)), Addr: addr, Kinds: profile.Kinds()})
	}
	return c, strings.Fields(at), nil
}

// heap asks one of our own servers what its heap holds.
func (c *child) heap(ctx context.Context) (int64, error) {
	before, _ := find(c.log, heapSize)
	if err := c.Signal(syscall.SIGUSR1); err != nil {
		return 0, err
	}
	for {
		now, err := c.line(ctx, heapSize)
		if err != nil {
			return 0, err
		}
		if now != before {
			var bytes, count int64
			if _, err := fmt.Sscan(now, &count, &bytes); err != nil {
				return 0, err
			}
			return bytes, nil
		}
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// heapSize is what a server prints before the how-manieth report this is, and the
// bytes of its heap, when it is sent SIGUSR1.
const heapSize = "heap "

// unmarshalLine reads the JSON object that a line is.
func (c *child) unmarshalLine(ctx context.Context, v any) error {
	rest, err := c.line(ctx, "{")
	if err != nil {
		return err
	}
	return json.Unmarshal([]byte("{"+rest), v)
}

// write makes a file for a process to read.
func (e *Env) write(name, text string) (path string, err error) {
	path = filepath.Join(e.Dir, name)
	return path, os.WriteFile(path, []byte(text), 0o600)
}

var errNotInstalled = errors.New("is not installed")
