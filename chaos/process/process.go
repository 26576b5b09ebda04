// Package process starts programs and sees to it that they end: by their
// process id, whatever becomes of the harness.
package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
)

// Process is one program that was started. Safe for concurrent use.
type Process struct {
	cmd  *exec.Cmd
	log  *os.File
	done chan struct{} // closed once the process is gone and waited for
}

// Start starts a program. What it prints is appended to the file log.
func Start(log, name string, args ...string) (*Process, error) {
	f, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(name, args...)
	cmd.Stdout, cmd.Stderr = f, f
	cmd.Env = environment()
	cmd.SysProcAttr = attributes()
	if err := cmd.Start(); err != nil {
		f.Close()
		return nil, fmt.Errorf("cannot start %s: %w", name, err)
	}
	p := &Process{cmd: cmd, log: f, done: make(chan struct{})}
	go p.reap()
	return p, nil
}

// environment is all that a program is told: a variable of the caller's must
// not change what is tried.
func environment() []string { return []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"} }

func (p *Process) reap() {
	_ = p.cmd.Wait() // how it ended is in ProcessState
	p.log.Close()
	close(p.done)
}

// PID is the process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Signal sends a signal. A process that is gone already is no error: its id is
// never used again before it was waited for.
func (p *Process) Signal(s syscall.Signal) error {
	err := p.cmd.Process.Signal(s)
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

// Done is closed when the process is gone.
func (p *Process) Done() <-chan struct{} { return p.done }

// ExitCode is what it ended with, -1 for a signal. Only after Done.
func (p *Process) ExitCode() int { return p.cmd.ProcessState.ExitCode() }

// Group ends all the processes that were started through it.
type Group struct {
	mu    sync.Mutex
	all   []*Process
	ended bool
}

// ErrEnded is returned by Start of a Group that has ended.
var ErrEnded = errors.New("the run is over; nothing more is started")

// Start is Start, and the group answers for the process.
func (g *Group) Start(log, name string, args ...string) (*Process, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ended {
		return nil, ErrEnded
	}
	p, err := Start(log, name, args...)
	if err == nil {
		g.all = append(g.all, p)
	}
	return p, err
}

// Kill ends all at once and waits until they are gone. Nothing can be started
// any more.
func (g *Group) Kill() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ended = true
	for _, p := range g.all {
		_ = p.Signal(syscall.SIGKILL)
	}
	for _, p := range g.all {
		<-p.done
	}
}
