package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/ringlimit/ringlimit/bench/cpu"
	"github.com/ringlimit/ringlimit/bench/load"
	"github.com/ringlimit/ringlimit/bench/profile"
	"github.com/ringlimit/ringlimit/bench/report"
	"github.com/ringlimit/ringlimit/bench/rival"
)

// Each rival has a worker: a process that starts it, asks it when it is told to, and
// is the client whose processor time counts. So no rival's memory is another's
// garbage to collect. Orders come as JSON lines and are answered in order.

// order is what a worker is told to do: a piece of load, or to fill.
type order struct {
	Round int           `json:"round"`
	Cell  load.Cell     `json:"cell"`
	Warm  time.Duration `json:"warm"`
	Slice time.Duration `json:"slice"`
	Fill  int           `json:"fill"` // so many counters; 0: a piece of load
}

// answer is its answer. The first one, to no order, says whether the rival is there.
type answer struct {
	Error  string        `json:"error,omitempty"`
	Sample report.Sample `json:"sample"`
	Bytes  float64       `json:"bytes"` // that a counter takes
}

func workerCommand() *cobra.Command {
	var w worker
	cmd := &cobra.Command{
		Use: "worker RIVAL", Hidden: true, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			// Ctrl-C goes to the whole group of processes; who gives orders ends us.
			signal.Ignore(syscall.SIGINT)
			return w.run(cmd.Context(), args[0], os.Stdin, os.Stdout)
		},
	}
	cmd.Flags().StringVar(&w.env.Dir, "dir", "", "folder for logs and sockets")
	cmd.Flags().StringVar(&w.env.Ringlimit, "ringlimit", "", "the ringlimit program")
	cmd.Flags().StringVar(&w.env.Redis, "redis", "", "redis-server")
	cmd.Flags().StringVar(&w.profiles, "profile", "", "folder for profiles; empty: none")
	cmd.Flags().BoolVar(&w.memory, "memory", false, "make it to be filled")
	return cmd
}

type worker struct {
	env      rival.Env
	memory   bool
	profiles string // folder; empty: none are taken
	self     profile.Source
	entry    rival.Entry
	rival    rival.Rival
	keys     map[string]*load.Keys
}

// run obeys until there are no more orders.
func (w *worker) run(ctx context.Context, name string, in io.Reader, out io.Writer) error {
	w.keys = map[string]*load.Keys{}
	defer w.env.Close()
	say := json.NewEncoder(out)
	if err := w.start(ctx, name); err != nil {
		return say.Encode(answer{Error: err.Error()})
	}
	defer w.rival.Stop()
	if err := say.Encode(answer{}); err != nil {
		return err
	}
	for orders := json.NewDecoder(in); ; {
		var o order
		if err := orders.Decode(&o); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		a, err := w.obey(ctx, o)
		if err != nil {
			a = answer{Error: err.Error()}
		}
		if err := say.Encode(a); err != nil {
			return err
		}
	}
}

func (w *worker) start(ctx context.Context, name string) (err error) {
	all := rival.All()
	i := slices.IndexFunc(all, func(e rival.Entry) bool { return e.Name == name })
	if i < 0 {
		return fmt.Errorf("there is no rival %q", name)
	}
	w.entry = all[i]
	if w.env.Self, err = os.Executable(); err != nil {
		return err
	}
	w.env.Variables = runtimeVariables()
	if w.profiles != "" {
		w.env.Profiled = true
		w.self = profile.Source{Name: "client", Kinds: profile.Kinds()}
		if w.self.Addr, err = profile.Serve(); err != nil {
			return err
		}
	}
	w.rival = w.entry.ForLoad()
	if w.memory {
		w.rival = w.entry.ForMemory()
	}
	return w.rival.Start(ctx, &w.env)
}

// runtimeVariables are those of our environment that Go's runtime reads: a worker has
// them anyway, and a server without them would run under other terms.
func runtimeVariables() (set []string) {
	for _, name := range []string{"GOMAXPROCS", "GOGC", "GODEBUG"} {
		if value := os.Getenv(name); value != "" {
			set = append(set, name+"="+value)
		}
	}
	return set
}

func (w *worker) obey(ctx context.Context, o order) (answer, error) {
	if o.Fill > 0 {
		bytes, err := w.fill(ctx, o.Fill)
		return answer{Bytes: bytes}, err
	}
	sample, err := w.load(ctx, o)
	return answer{Sample: sample}, err
}

func (w *worker) load(ctx context.Context, o order) (s report.Sample, err error) {
	keys, err := w.sequence(o.Cell.Keys)
	if err != nil {
		return s, err
	}
	runtime.GC() // none of what was before is to be collected within the slice
	var marks []usage
	var profiled chan error
	got, err := load.Run(ctx, load.Spec{
		Callers: o.Cell.Callers, Batch: w.entry.Keys(), Keys: keys, Warm: o.Warm, Slice: o.Slice,
		Timed: w.entry.Timed(), Refused: w.entry.Refused,
	}, w.rival.Caller, func() {
		if len(marks) == 0 {
			profiled = w.profile(ctx, o)
		}
		marks = append(marks, w.usage())
	})
	if err := firstError(err, <-profiled); err != nil {
		return s, err
	}
	if got.Checks == 0 {
		return s, fmt.Errorf("nothing was answered within %v", o.Slice)
	}
	from, to := marks[0], marks[1]
	return report.Sample{
		Checks: got.Checks, Took: got.Took,
		P50:    time.Duration(got.Waits.ValueAtQuantile(50)),
		P99:    time.Duration(got.Waits.ValueAtQuantile(99)),
		P999:   time.Duration(got.Waits.ValueAtQuantile(99.9)),
		Client: to.client - from.client, Server: to.server - from.server, Objects: to.objects - from.objects,
		ClientWrites: to.clientWrites - from.clientWrites, ServerWrites: to.serverWrites - from.serverWrites,
	}, firstError(from.err, to.err)
}

// profile takes profiles of the slice that begins, if there are to be some, of this
// process and its servers, and then sends an error or nil.
func (w *worker) profile(ctx context.Context, o order) chan error {
	done := make(chan error, 1)
	if w.profiles == "" {
		close(done)
		return done
	}
	dir := filepath.Join(w.profiles, fmt.Sprintf("%d-%s", o.Cell.Callers, o.Cell.Keys))
	sources := append([]profile.Source{w.self}, w.env.Profiles()...)
	go func() { done <- profile.Take(ctx, dir, o.Round+1, o.Slice, sources) }()
	return done
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// sequence draws the keys of a spread once.
func (w *worker) sequence(text string) (*load.Keys, error) {
	if k := w.keys[text]; k != nil {
		return k, nil
	}
	spread, err := load.ParseSpread(text)
	if err == nil {
		w.keys[text] = load.NewKeys(spread)
	}
	return w.keys[text], err
}

// usage is what was used so far.
type usage struct {
	client, server             time.Duration
	clientWrites, serverWrites int64
	objects                    uint64
	err                        error
}

func (w *worker) usage() (u usage) {
	var errs [3]error
	u.client, u.objects = cpu.Self(), cpu.Allocations()
	u.server, errs[0] = cpu.Processes(w.env.PIDs())
	u.clientWrites, errs[1] = cpu.Writes(os.Getpid())
	u.serverWrites, errs[2] = cpu.Writes(w.env.PIDs()...)
	u.err = firstError(errs[:]...)
	return u
}

// fillCallers is enough to keep pipelines full.
const fillCallers = 64

// fill makes so many counters and returns the bytes that each takes.
func (w *worker) fill(ctx context.Context, counters int) (float64, error) {
	sized, ok := w.rival.(rival.Sized)
	if !ok {
		return 0, fmt.Errorf("%s cannot tell what it takes", w.entry.Name)
	}
	before, err := sized.Used(ctx)
	if err != nil {
		return 0, err
	}
	if err := load.Fill(ctx, fillCallers, w.entry.Keys(), counters, w.rival.Caller); err != nil {
		return 0, err
	}
	after, err := sized.Used(ctx)
	return float64(after-before) / float64(counters), err
}
