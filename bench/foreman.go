package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/ringlimit/ringlimit/bench/rival"
)

// foreman gives orders to one worker and waits for its answers.
type foreman struct {
	entry   rival.Entry
	cmd     *exec.Cmd
	orders  io.WriteCloser
	answers chan answer // closed when the worker has ended
	log     string
}

// programs are what workers need to know. profiles is a folder for them; empty: none
// are taken.
type programs struct{ dir, ringlimit, redis, profiles string }

// slack is how much longer than its work a worker may take.
const slack = 3 * time.Minute

// hire starts a worker and returns when its rival is ready. A *absentError says that
// the rival cannot be had.
func hire(ctx context.Context, e rival.Entry, p programs, memory bool) (*foreman, error) {
	dir := filepath.Join(p.dir, e.Name)
	if memory {
		dir += "-memory"
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	f := &foreman{entry: e, answers: make(chan answer, 1), log: filepath.Join(dir, "worker.log")}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	args := []string{"worker", e.Name, "--dir", dir, "--ringlimit", p.ringlimit, "--redis", p.redis}
	switch {
	case memory:
		args = append(args, "--memory")
	case p.profiles != "":
		args = append(args, "--profile", filepath.Join(p.profiles, e.Name))
	}
	f.cmd = exec.Command(self, args...)
	if err := f.start(); err != nil {
		return nil, err
	}
	if _, err := f.wait(ctx, slack); err != nil {
		f.dismiss()
		return nil, &absentError{err}
	}
	return f, nil
}

// absentError is why a rival cannot be had.
type absentError struct{ error }

func (f *foreman) start() (err error) {
	log, err := os.Create(f.log)
	if err != nil {
		return err
	}
	defer log.Close() // the worker has it
	f.cmd.Stderr = log
	f.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if f.orders, err = f.cmd.StdinPipe(); err != nil {
		return err
	}
	out, err := f.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := f.cmd.Start(); err != nil {
		return err
	}
	go f.read(out)
	return nil
}

func (f *foreman) read(out io.Reader) {
	defer close(f.answers)
	for in := json.NewDecoder(bufio.NewReader(out)); ; {
		var a answer
		if in.Decode(&a) != nil {
			return
		}
		f.answers <- a
	}
}

// do gives an order that should take so long.
func (f *foreman) do(ctx context.Context, o order, takes time.Duration) (answer, error) {
	if err := json.NewEncoder(f.orders).Encode(o); err != nil {
		return answer{}, f.ended()
	}
	return f.wait(ctx, takes+slack)
}

func (f *foreman) wait(ctx context.Context, most time.Duration) (answer, error) {
	select {
	case a, ok := <-f.answers:
		if !ok {
			return a, f.ended()
		}
		if a.Error != "" {
			return a, errors.New(a.Error)
		}
		return a, nil
	case <-time.After(most):
		_ = f.cmd.Process.Kill() // its answer would be taken for that to the next order
		return answer{}, fmt.Errorf("no answer within %v", most)
	case <-ctx.Done():
		return answer{}, ctx.Err()
	}
}

func (f *foreman) ended() error {
	text, _ := os.ReadFile(f.log)
	const most = 300
	return fmt.Errorf("its process has ended: %s", strings.TrimSpace(string(text[max(0, len(text)-most):])))
}

// dismissal is how long a worker may take to end what it started.
const dismissal = 10 * time.Second

// dismiss ends the worker, and with it all that it has started.
func (f *foreman) dismiss() {
	_ = f.orders.Close()
	kill := time.AfterFunc(dismissal, func() { _ = f.cmd.Process.Kill() })
	defer kill.Stop()
	for range f.answers { // until it closes its output
	}
	_ = f.cmd.Wait()
}
