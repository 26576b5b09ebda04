package main

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/ringlimit/ringlimit/bench/counters"
	"github.com/ringlimit/ringlimit/bench/report"
)

func tableCommand() *cobra.Command {
	p := counters.Plan{Rounds: 101, Idle: 3 * time.Second}
	var file string
	cmd := &cobra.Command{
		Use:   "table",
		Short: "Measure ten million counters: memory, collections, decisions, stalls",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if p.Counters < 1000 {
				return fmt.Errorf("--counters: %d must be at least 1000", p.Counters)
			}
			machine := report.ThisMachine()
			r, err := counters.Measure(cmd.Context(), p, func(what string) { fmt.Fprintln(cmd.ErrOrStderr(), "measuring", what) })
			if err != nil {
				return err
			}
			targets := reachedBy(&r)
			if err := tellTable(cmd.OutOrStdout(), machine, &r, targets); err != nil || file == "" {
				return err
			}
			return writeFile(file, map[string]any{"machine": machine, "result": r, "targets": targets})
		},
	}
	cmd.Flags().IntVar(&p.Counters, "counters", 10_000_000, "how many")
	cmd.Flags().StringVar(&file, "json", "", "write everything to this file, too")
	return cmd
}

func reachedBy(r *counters.Result) []report.Reached {
	all := report.NewResults(1)
	all.AddFigure(report.DecideTarget, r.Frame.Ratios...)
	all.AddFigure(report.BareTarget, r.Bare.Table)
	all.AddFigure(report.NamedTarget, r.Named.Table)
	all.AddFigure(report.GCTarget, r.Collection.Table/r.Collection.Map)
	all.AddFigure(report.StallTarget, float64(r.Stall.Beyond().Microseconds())/1000)
	return all.Reach(report.TableTargets())
}

func tellTable(w io.Writer, m report.Machine, r *counters.Result, targets []report.Reached) error {
	fmt.Fprintf(w, "%s\n\n", m)
	t := report.Table{Head: []string{fmt.Sprintf("%d counters", r.Counters), "", ""}}
	row := func(what, value, beside string) { t.Rows = append(t.Rows, []string{what, value, beside}) }
	row("bytes per counter, without names", fmt.Sprintf("%.1f", r.Bare.Table), fmt.Sprintf("heap grew by %.1f", r.Bare.Heap))
	row("… with names of 31 bytes", fmt.Sprintf("%.1f", r.Named.Table), fmt.Sprintf("heap grew by %.1f", r.Named.Heap))
	row("a decision in frames of 64, best round", fmt.Sprintf("%.0f ns", r.Frame.Table), fmt.Sprintf("without lock %.0f ns", r.Frame.Floor))
	row("… allocations", fmt.Sprintf("%.3g", r.Frame.Allocations), "")
	row("processor time of a collection", fmt.Sprintf("%.2f ms", 1000*r.Collection.Table), fmt.Sprintf("with a map %.0f ms", 1000*r.Collection.Map))
	for _, s := range []struct {
		what string
		w    counters.Wait
	}{{"idle", r.Stall.Idle}, {"while a fifth of the counters are made", r.Stall.Growth}, {"while all expire", r.Stall.Expiry}} {
		row("a frame of 64 takes, p99.99, "+s.what, report.Duration(s.w.P9999), "at most "+report.Duration(s.w.Most))
	}
	if err := t.Write(w); err != nil {
		return err
	}
	fmt.Fprintln(w)
	return report.WriteReached(w, targets)
}
