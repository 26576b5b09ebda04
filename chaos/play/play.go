// Package play carries out a scenario: it starts the cluster and the load, does
// to the nodes what the steps say, and has the judge look at the history.
package play

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/ringlimit/ringlimit/chaos/cgroup"
	"github.com/ringlimit/ringlimit/chaos/cluster"
	"github.com/ringlimit/ringlimit/chaos/history"
	"github.com/ringlimit/ringlimit/chaos/judge"
	"github.com/ringlimit/ringlimit/chaos/keyspace"
	"github.com/ringlimit/ringlimit/chaos/load"
	"github.com/ringlimit/ringlimit/chaos/netns"
	"github.com/ringlimit/ringlimit/chaos/process"
	"github.com/ringlimit/ringlimit/chaos/scenario"
)

// Options are what the caller decides.
type Options struct {
	Binary   string            // the program under test
	Builds   map[string]string // other programs, by the tag that a join may ask for
	Dir      string            // for logs; exists and is empty
	Seed     uint64
	Nodes    int           // 0: as the scenario says
	Duration time.Duration // how long its repetitions go on; 0: as often as it says
	Progress func(Progress)
}

// Outcome is what became of a run.
type Outcome struct {
	Lines   []judge.Line
	Stuck   string // a step that did not come to its end in time: a broken promise too
	Took    time.Duration
	History *history.History
}

// Held says whether everything was as promised.
func (o *Outcome) Held() bool { return o.Stuck == "" && !judge.Broken(o.Lines) }

// links are what a scenario with namespaces cuts.
type links interface {
	Cut(*scenario.Cut) error
	Heal() error
}

// stuck is a step that the cluster did not let come to its end.
type stuck struct{ error }

func (s stuck) Unwrap() error { return s.error }

// stage is a run under way.
type stage struct {
	*scenario.Scenario
	Options
	cluster *cluster.Cluster
	keys    *keyspace.Space
	history *history.History
	clients *load.Clients
	load    *load.Generator
	links   links // nil: they cannot be cut
	rand    *rand.Rand

	noted map[uint32]time.Time // see scenario.NoteResets
	moved time.Duration

	meter meter
}

// Unable says that err is why this machine cannot carry out a scenario.
func Unable(err error) bool {
	return errors.Is(err, netns.ErrUnable) || errors.Is(err, cgroup.ErrUnable)
}

// Play runs a scenario. Whatever happens, no process is left when it returns.
// An error means that it could not be carried out; ctx ends it early.
func Play(ctx context.Context, s *scenario.Scenario, opts Options) (_ *Outcome, err error) {
	st, err := newStage(s, opts)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, st.cluster.Close()) }() // also when a step panics
	began := time.Now()
	err = st.perform(ctx)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	o := &Outcome{History: st.history}
	if failed, ok := errors.AsType[stuck](err); ok {
		o.Stuck, err = failed.Error(), nil
	}
	if err != nil {
		return nil, err
	}
	o.Took = time.Since(began)
	o.Lines = judge.Judge(&judge.Case{
		Keys: st.keys, History: st.history, Bounds: s.Bounds, Moved: st.moved,
		Homeless: st.clients.Homeless(), Withheld: st.load.Withheld(), Stalled: st.load.Stalled(),
	})
	return o, nil
}

func newStage(s *scenario.Scenario, opts Options) (*stage, error) {
	if opts.Nodes == 0 {
		opts.Nodes = s.Nodes
	}
	if opts.Nodes < s.Needs {
		return nil, fmt.Errorf("%s needs at least %d nodes, not %d", s.Name, s.Needs, opts.Nodes)
	}
	st := &stage{
		Scenario: s,
		Options:  opts,
		keys:     keyspace.New(s.Counts),
		history:  history.New(),
		rand:     rand.New(rand.NewPCG(opts.Seed, 2)),
		meter:    meter{total: scenario.Count(s.Steps), text: booting},
	}
	if err := st.build(); err != nil {
		return nil, err
	}
	st.clients = load.New(&load.Clients{
		Keys: st.keys, History: st.history, Doors: st.cluster.Doors, Patience: s.Client.Patience,
	}, opts.Seed)
	st.load = load.NewGenerator(st.clients, s.Client.Hot)
	return st, nil
}

// build makes the cluster's network, and the cluster without a node.
func (st *stage) build() error {
	group := &process.Group{}
	memory, err := st.memory()
	if err != nil {
		return err
	}
	net, err := st.network(group)
	if err == nil {
		st.cluster, err = cluster.New(cluster.Config{
			Binary: st.Binary, Dir: st.Dir, Network: net, Flags: st.Serve, Files: st.Files, Memory: memory, Group: group, History: st.history,
		}, st.keys.Rules())
	}
	if err != nil {
		group.Kill()
		err = errors.Join(err, memory.Close())
		if net != nil {
			err = errors.Join(err, net.Close())
		}
	}
	return err
}

// memory is where the nodes' memory is bounded, if it is.
func (st *stage) memory() (*cgroup.Memory, error) {
	if st.Memory == 0 {
		return nil, nil
	}
	return cgroup.New(st.Memory)
}

func (st *stage) network(group *process.Group) (cluster.Network, error) {
	if st.Net == scenario.Loopback {
		return cluster.NewLoopback()
	}
	n, err := netns.New(group, st.Dir, st.Net, st.Seed)
	if err != nil {
		return nil, err // not n: a nil *Net in an interface is not nil
	}
	st.links = n
	return n, nil
}

// perform runs the load beside the steps and waits for both.
func (st *stage) perform(ctx context.Context) error {
	var beside sync.WaitGroup
	defer beside.Wait()
	running, stop := context.WithCancel(ctx)
	defer stop()
	beside.Go(func() { st.load.Run(running, ctx) })
	beside.Go(func() { st.report(running) })
	beside.Go(func() { st.cluster.Watch(running) })
	if err := st.boot(ctx); err != nil {
		return refusal(err)
	}
	return st.steps(ctx, st.Steps)
}

// badInput is the program's exit code when it cannot do what it was told.
const badInput = 2

// refusal is err, or why a node did not want to run at all: a flag that it does
// not know, an address in use. That is the scenario's fault or the machine's.
func refusal(err error) error {
	if e, ok := errors.AsType[*cluster.Ended](err); ok && e.Code == badInput {
		return e
	}
	return err
}

// bootTime is how long the first nodes may take to find each other.
const bootTime = 30 * time.Second

// boot brings up the first nodes.
func (st *stage) boot(ctx context.Context) error {
	var nodes []*cluster.Node
	for range st.Nodes() {
		n, err := st.cluster.Add(cluster.Stranger{})
		if err != nil {
			return err
		}
		nodes = append(nodes, n)
	}
	switch st.Scenario.Start {
	case scenario.BySteps:
		return nil
	case scenario.OneByOne:
		if err := st.bring(ctx, nodes[:1]...); err != nil {
			return err
		}
		nodes = nodes[1:]
	}
	if err := st.bring(ctx, nodes...); err != nil {
		return err
	}
	return st.settle(ctx, bootTime)
}

// Nodes is how many nodes the run begins with.
func (st *stage) Nodes() int { return st.Options.Nodes }

// bring starts nodes at once and waits until they are ready.
func (st *stage) bring(ctx context.Context, nodes ...*cluster.Node) error {
	if err := st.cluster.Start(0, nodes...); err != nil {
		return err
	}
	return within(ctx, bootTime, func(ctx context.Context) error { return st.cluster.AwaitReady(ctx, nodes...) })
}

// within gives f so long; a failure for want of time is the cluster's.
func within(ctx context.Context, d time.Duration, f func(context.Context) error) error {
	short, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	err := f(short)
	if err != nil && ctx.Err() == nil {
		return stuck{fmt.Errorf("not within %v: %w", d, err)}
	}
	return err
}

func (st *stage) settle(ctx context.Context, d time.Duration) error {
	return within(ctx, d, func(ctx context.Context) error { return cluster.Await(ctx, st.cluster.Settled) })
}
