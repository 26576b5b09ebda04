// Package profile takes profiles of processes for as long as they are measured.
package profile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/pprof"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"
)

// Kinds are the profiles that a process of Serve has: processor time, waits for locks
// by who held them, and waits of all kinds.
func Kinds() []string { return []string{CPU, "mutex", "block"} }

// CPU is the profile that any server of pprof has. The others stay empty in a process
// that was not told to take samples.
const CPU = "profile"

// One in so many waits for a lock is recorded, and one for each so many nanoseconds
// that somebody waits. 64 callers wait 64 seconds in one: that is 6,400 samples, at
// about a microsecond each; a lone caller's are 100.
const (
	mutexFraction = 10
	blockRate     = 10_000_000
)

// Serve has this process record what it waits for, and serves its profiles on loopback
// until it ends.
func Serve() (addr string, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	runtime.SetMutexProfileFraction(mutexFraction)
	runtime.SetBlockProfileRate(blockRate)
	mux := http.NewServeMux()
	mux.HandleFunc(folder+CPU, pprof.Profile)
	for _, kind := range Kinds()[1:] {
		mux.Handle(folder+kind, pprof.Handler(kind))
	}
	go func() { _ = http.Serve(l, mux) }()
	return l.Addr().String(), nil
}

const folder = "/debug/pprof/"

// Source is a process that serves profiles at /debug/pprof/, each of the next
// ?seconds=.
type Source struct {
	Name  string // in the name of the file
	Addr  string
	Kinds []string
}

// Take profiles all of them for the time d, in whole seconds rounded up, and writes
// the files dir/NAME.KIND.ROUND.pb.gz.
func Take(ctx context.Context, dir string, round int, d time.Duration, sources []Source) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	var all sync.WaitGroup
	var mu sync.Mutex
	var errs []error
	for _, s := range sources {
		for _, kind := range s.Kinds {
			file := filepath.Join(dir, fmt.Sprintf("%s.%s.%d.pb.gz", s.Name, fileKind(kind), round))
			all.Go(func() {
				err := fetch(ctx, file, s.url(kind, d))
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, err)
			})
		}
	}
	all.Wait()
	return errors.Join(errs...)
}

// fileKind calls the CPU profile by its name.
func fileKind(kind string) string {
	if kind == CPU {
		return "cpu"
	}
	return kind
}

func (s *Source) url(kind string, d time.Duration) string {
	return fmt.Sprintf("http://%s%s%s?seconds=%.0f", s.Addr, folder, kind, math.Ceil(d.Seconds()))
}

func fetch(ctx context.Context, file, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, resp.Status)
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := io.Copy(f, resp.Body); err != nil {
		return err
	}
	return f.Close()
}
