package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/ringlimit/ringlimit/chaos/judge"
	"github.com/ringlimit/ringlimit/chaos/play"
	builder "github.com/ringlimit/ringlimit/chaos/process"
	"github.com/ringlimit/ringlimit/chaos/report"
	"github.com/ringlimit/ringlimit/chaos/scenario"
)

// result is what became of one scenario, as --json tells it.
type result struct {
	Scenario string       `json:"scenario"`
	Seed     uint64       `json:"seed"`
	Held     bool         `json:"held"`
	Seconds  float64      `json:"seconds"`
	Stuck    string       `json:"stuck,omitempty"`
	Skipped  string       `json:"skipped,omitempty"` // why it was not run
	Logs     string       `json:"logs,omitempty"`    // folder, if it was kept
	Bounds   []judge.Line `json:"bounds"`

	series *report.Series
}

// page is the result as the report shows it.
func (r *result) page(sc *scenario.Scenario) report.Run {
	return report.Run{
		Name: r.Scenario, About: sc.About, Seed: r.Seed, Seconds: r.Seconds, Held: r.Held,
		Stuck: r.Stuck, Skipped: r.Skipped, Lines: r.Bounds, Series: r.series,
	}
}

// draw writes the report, if one was asked for.
func (s *settings) draw(runs []report.Run) error {
	if s.report == "" {
		return nil
	}
	f, err := os.Create(s.report)
	if err != nil {
		return err
	}
	return errors.Join(report.Write(f, "ringlimit: chaos", runs), f.Close())
}

// probe finds out before a run of many minutes whether the report can be
// written. An old one stays as it is.
func (s *settings) probe() error {
	if s.report == "" {
		return nil
	}
	f, err := os.OpenFile(s.report, os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		return fmt.Errorf("--report: %w", err)
	}
	return f.Close()
}

// runAll runs the scenarios one after the other. A broken bound does not keep
// the others from running.
func (s *settings) runAll(ctx context.Context, scenarios []*scenario.Scenario, out, problems io.Writer) (err error) {
	if err := s.probe(); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "ringlimit-chaos-")
	if err != nil {
		return err
	}
	kept := false
	defer func() {
		if !kept {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}()
	if err := errors.Join(s.build(ctx, dir, problems), s.buildOthers(ctx, dir, scenarios, problems)); err != nil {
		return err
	}
	sums := summary{}
	var runs []report.Run
	for _, sc := range scenarios {
		r, err := s.runOne(ctx, sc, filepath.Join(dir, sc.Name), problems)
		if err != nil {
			return fmt.Errorf("%s: %w", sc.Name, err)
		}
		kept = kept || r.Logs != ""
		sums.add(r)
		runs = append(runs, r.page(sc))
		if err := s.show(out, r); err != nil {
			return err
		}
	}
	if err := s.draw(runs); err != nil {
		return err
	}
	fmt.Fprintln(problems, sums)
	if sums.broken > 0 {
		return errBroken
	}
	return nil
}

// build makes the program under test, unless the caller brought one.
func (s *settings) build(ctx context.Context, dir string, problems io.Writer) error {
	if s.binary != "" {
		var err error
		if s.binary, err = filepath.Abs(s.binary); err == nil {
			_, err = exec.LookPath(s.binary)
		}
		if err != nil {
			return fmt.Errorf("--binary: %w", err)
		}
		return nil
	}
	fmt.Fprintln(problems, "building the program under test")
	var err error
	s.binary, err = builder.Build(ctx, dir, s.tags)
	return err
}

// buildOthers makes the programs that join, before any load would suffer from it.
func (s *settings) buildOthers(ctx context.Context, dir string, scenarios []*scenario.Scenario, problems io.Writer) error {
	s.builds = map[string]string{}
	for _, sc := range scenarios {
		for _, tag := range scenario.Builds(sc.Steps) {
			if s.builds[tag] != "" {
				continue
			}
			fmt.Fprintln(problems, "building the program with", tag)
			binary, err := builder.Build(ctx, dir, tag)
			if err != nil {
				return err
			}
			s.builds[tag] = binary
		}
	}
	return nil
}

func (s *settings) runOne(ctx context.Context, sc *scenario.Scenario, dir string, problems io.Writer) (*result, error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	bar := newBar(problems, sc.Name)
	defer bar.close()
	o, err := play.Play(ctx, sc, play.Options{
		Binary: s.binary, Builds: s.builds, Dir: dir, Seed: s.seed, Nodes: s.nodes, Duration: s.duration, Progress: bar.show,
	})
	if play.Unable(err) {
		return &result{Scenario: sc.Name, Seed: s.seed, Skipped: err.Error()}, nil
	}
	if err != nil {
		return nil, err
	}
	r := &result{Scenario: sc.Name, Seed: s.seed, Held: o.Held(), Seconds: o.Took.Seconds(), Stuck: o.Stuck, Bounds: o.Lines}
	if s.report != "" {
		r.series = report.NewSeries(o.History)
	}
	if s.keep || !r.Held {
		r.Logs = dir
		return r, nil
	}
	return r, os.RemoveAll(dir)
}

// summary is the last line.
type summary struct{ held, broken, skipped int }

func (s *summary) add(r *result) {
	switch {
	case r.Skipped != "":
		s.skipped++
	case r.Held:
		s.held++
	default:
		s.broken++
	}
}

func (s summary) String() string {
	return fmt.Sprintf("%d held, %d broken, %d skipped", s.held, s.broken, s.skipped)
}
