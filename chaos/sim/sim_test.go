package sim

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
)

var (
	seeds = flag.Int("sim.seeds", 100, "how many seeds to run")
	seed  = flag.Uint64("sim.seed", 0, "run this seed alone and print its events")
)

// mixed is a run of six faults that the seed chooses.
func mixed(seed uint64) Config {
	all := [...]Fault{Join, Join, Leave, Restart, Crash, Pause, Flap, Partition, Partial, OneWay, Rules}
	r := rand.New(rand.NewPCG(seed, 6))
	cfg := Config{Seed: seed, Nodes: 5, Partitions: 16, Keys: 30, Rate: 400}
	for range 6 {
		cfg.Faults = append(cfg.Faults, all[r.IntN(len(all))])
	}
	return cfg
}

// run runs a seed twice: it must come out the same.
func run(t *testing.T, name string, cfg Config) Result {
	t.Helper()
	first, second := Run(cfg), Run(cfg)
	if first.Hash != second.Hash {
		t.Errorf("%s, seed %d: two runs differ", name, cfg.Seed)
	}
	if len(first.Broken) > 0 {
		t.Errorf("%s: seed %d fails; replay it with -run '^%s$' -sim.seed=%d\n%v", name, cfg.Seed, t.Name(), cfg.Seed, report(first))
	}
	return first
}

func report(r Result) (text string) {
	for _, f := range r.Faults {
		text += "  " + f + "\n"
	}
	for _, b := range r.Broken {
		text += "  - " + b + "\n"
	}
	return text
}

// Six random faults, some at once: what comes of them stays within what they
// excuse.
func TestMixedFaults(t *testing.T) {
	if *seed != 0 {
		cfg := mixed(*seed)
		cfg.Trace = func(format string, args ...any) { fmt.Printf(format, args...) }
		t.Logf("%+v", Run(cfg))
		return
	}
	for i := range *seeds {
		run(t, "six faults", mixed(uint64(i+1)))
	}
}

func each(t *testing.T, faults ...Fault) (worst Result) {
	for i := range max(10, *seeds/10) {
		cfg := Config{Seed: uint64(i + 1), Nodes: 5, Partitions: 16, Keys: 30, Rate: 400, Faults: faults}
		r := run(t, t.Name(), cfg)
		worst.Excess = max(worst.Excess, r.Excess)
		worst.Holders = max(worst.Holders, r.Holders)
		worst.Unanswered += r.Unanswered
		worst.Checks += r.Checks
		worst.Refusals += r.Refusals
	}
	t.Logf("excess %.1f %%, holders %d, unanswered %.3f %% of %d, refused %d", worst.Excess, worst.Holders, 100*float64(worst.Unanswered)/float64(worst.Checks), worst.Checks, worst.Refusals)
	return worst
}

func TestNothing(t *testing.T)   { each(t) }
func TestJoin(t *testing.T)      { each(t, Join) }
func TestJoins(t *testing.T)     { each(t, Join, Join, Join) }
func TestLeave(t *testing.T)     { each(t, Leave) }
func TestRestarts(t *testing.T)  { each(t, Restart, Restart, Restart) }
func TestCrash(t *testing.T)     { each(t, Crash) }
func TestPause(t *testing.T)     { each(t, Pause) }
func TestFlap(t *testing.T)      { each(t, Flap, Flap, Flap) }
func TestPartition(t *testing.T) { each(t, Partition) }
func TestPartial(t *testing.T)   { each(t, Partial) }
func TestOneWay(t *testing.T)    { each(t, OneWay) }
func TestRules(t *testing.T)     { each(t, Rules, Join) }
