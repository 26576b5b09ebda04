package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ringlimit/ringlimit/bench/report"
	"github.com/ringlimit/ringlimit/bench/rival"
)

// bench is one run.
type bench struct {
	plan     plan
	programs programs
	machine  report.Machine // as it was before the run
	versions map[string]string
	progress io.Writer
	results  *report.Results
	crew     map[string]*foreman
}

// run does the whole plan.
func (b *bench) run(ctx context.Context) error {
	b.results, b.crew = report.NewResults(b.plan.Rounds), map[string]*foreman{}
	for _, phase := range b.plan.phases() {
		if err := b.runPhase(ctx, phase); err != nil {
			return err
		}
	}
	return b.weigh(ctx)
}

func (b *bench) runPhase(ctx context.Context, phase plan) error {
	defer b.dismissAll()
	if err := b.hireAll(ctx, phase.Entries); err != nil {
		return err
	}
	steps := slices.DeleteFunc(phase.steps(), func(s step) bool { return b.crew[s.entry.Name] == nil })
	began := time.Now()
	for i, s := range steps {
		if err := ctx.Err(); err != nil {
			return err
		}
		b.say("[%d/%d, %s left] round %d, %v: %s", i+1, len(steps), left(began, i, len(steps)), s.round+1, s.cell, b.step(ctx, s))
	}
	return nil
}

func (b *bench) say(format string, args ...any) { fmt.Fprintf(b.progress, format+"\n", args...) }

// left is how long the rest will take, if it goes on like that.
func left(began time.Time, done, all int) time.Duration {
	if done == 0 {
		return 0
	}
	return (time.Since(began) / time.Duration(done) * time.Duration(all-done)).Round(time.Second)
}

func (b *bench) hireAll(ctx context.Context, entries []rival.Entry) error {
	for _, e := range entries {
		b.say("starting %s", e.Name)
		f, err := hire(ctx, e, b.programs, false)
		switch absent, ok := errors.AsType[*absentError](err); {
		case ctx.Err() != nil:
			return ctx.Err()
		case ok:
			b.results.Absent(e.Name, absent.Error())
			b.say("%s cannot be had: %v", e.Name, err)
		case err != nil:
			return err
		default:
			b.crew[e.Name] = f
		}
	}
	return nil
}

func (b *bench) dismissAll() {
	for name, f := range b.crew {
		f.dismiss()
		delete(b.crew, name)
	}
}

// step puts one piece of load on, and says how it went.
func (b *bench) step(ctx context.Context, s step) string {
	at := report.Place{Rival: s.entry.Name, Cell: s.cell}
	if why, failed := b.results.Failed(at); failed {
		return s.entry.Name + " failed before: " + why
	}
	n := time.Duration(s.entry.Slices())
	o := order{Round: s.round, Cell: s.cell, Warm: n * b.plan.warm(), Slice: n * b.plan.Slice}
	a, err := b.crew[s.entry.Name].do(ctx, o, o.Warm+o.Slice)
	if err != nil {
		b.results.Fail(at, err.Error())
		return s.entry.Name + " failed: " + err.Error()
	}
	b.results.Add(s.round, at, a.Sample)
	return fmt.Sprintf("%s %.0f checks/s, p50 %s", s.entry.Name, report.Rate(a.Sample), report.Duration(a.Sample.P50))
}

// weigh measures what counters take, in rivals that were not used before.
func (b *bench) weigh(ctx context.Context) error {
	for _, e := range b.plan.Entries {
		if _, absent := b.results.WhyAbsent(e.Name); absent || !e.Memory || b.plan.Counters == 0 {
			continue
		}
		bytes, err := b.weighOne(ctx, e)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			b.say("memory of %s failed: %v", e.Name, err)
			continue
		}
		b.say("memory of %s: %.0f bytes per counter", e.Name, bytes)
		b.results.AddBytes(e.Name, bytes)
	}
	return nil
}

func (b *bench) weighOne(ctx context.Context, e rival.Entry) (float64, error) {
	f, err := hire(ctx, e, b.programs, true)
	if err != nil {
		return 0, err
	}
	defer f.dismiss()
	a, err := f.do(ctx, order{Fill: b.plan.Counters}, time.Duration(b.plan.Counters)*100*time.Microsecond)
	return a.Bytes, err
}

// find looks for the programs, and builds ringlimit unless it is given.
func find(ctx context.Context, dir, ringlimit string) (programs, error) {
	p := programs{dir: dir, ringlimit: ringlimit}
	for _, name := range []string{"redis-server", "/usr/bin/redis-server"} {
		if path, err := exec.LookPath(name); err == nil {
			p.redis = path
			break
		}
	}
	if p.ringlimit != "" {
		path, err := filepath.Abs(p.ringlimit)
		p.ringlimit = path
		return p, err
	}
	p.ringlimit = filepath.Join(dir, "ringlimit")
	return p, build(ctx, p.ringlimit)
}

// build builds the ringlimit program of the module that this one stands in, with that
// module's dependencies.
func build(ctx context.Context, binary string) error {
	top, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/ringlimit/ringlimit").Output()
	if err != nil {
		return fmt.Errorf("run this in the folder bench, or give --ringlimit: %w", err)
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-o", binary, "./cmd/ringlimit")
	cmd.Dir = strings.TrimSpace(string(top))
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("cannot build ringlimit: %w\n%s", err, out)
	}
	return nil
}

// tell prints the tables.
func (b *bench) tell(w io.Writer) error {
	fmt.Fprintf(w, "%s\n%s\n\n", b.machine, listed(b.versions))
	if err := b.results.Cells(w, b.plan.allCells(), groups(b.plan.Entries)); err != nil {
		return err
	}
	if err := b.tellMemory(w); err != nil {
		return err
	}
	for _, e := range b.plan.Entries {
		if why, ok := b.results.WhyAbsent(e.Name); ok {
			fmt.Fprintf(w, "%s cannot be had: %s\n", e.Name, why)
		}
	}
	fmt.Fprintln(w)
	return report.WriteReached(w, b.results.Reach(report.Targets()))
}

func (b *bench) tellMemory(w io.Writer) error {
	var names []string
	for _, e := range b.plan.Entries {
		if e.Memory {
			names = append(names, e.Name)
		}
	}
	if err := b.results.Memory(w, names, b.plan.Counters); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w)
	return err
}

// groups are the entries by their kind, in their order.
func groups(entries []rival.Entry) (all []report.Group) {
	for _, e := range entries {
		i := slices.IndexFunc(all, func(g report.Group) bool { return g.Name == string(e.Kind) })
		if i < 0 {
			i, all = len(all), append(all, report.Group{Name: string(e.Kind)})
		}
		all[i].Rivals = append(all[i].Rivals, e.Name)
	}
	return all
}

// record is the run for a file.
func (b *bench) record() report.Run {
	run := report.Run{Machine: b.machine, Versions: b.versions, Command: os.Args[1:], Rivals: map[string]string{}, Counters: b.plan.Counters}
	for _, e := range b.plan.Entries {
		run.Rivals[e.Name] = e.What
	}
	run.Fill(b.results)
	run.Targets = b.results.Reach(report.Targets())
	return run
}
