// Command bench runs ringlimit and its peers on this machine in alternation, on the
// same work, and prints how they compare. See README.md.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/ringlimit/ringlimit/bench/report"
	"github.com/ringlimit/ringlimit/bench/rival"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := new(options).command().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		stop()
		os.Exit(1)
	}
}

// options are the flags of a run.
type options struct {
	only, json, ringlimit, profile string
	callers                        []int
	keys                           []string
	rounds, counters               int
	slice                          time.Duration
	quick                          bool
}

func (o *options) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:           "bench",
		Short:         "Compare ringlimit with its peers on this machine",
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE:          func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	f := cmd.Flags()
	f.StringVar(&o.only, "only", "", "regular expression: only rivals whose name matches")
	f.StringVar(&o.json, "json", "", "write everything to this file, too")
	f.StringVar(&o.ringlimit, "ringlimit", "", "the ringlimit program (default: it is built)")
	f.StringVar(&o.profile, "profile", "", "write profiles of every slice into this folder; the figures are then those of processes that are profiled")
	f.IntSliceVar(&o.callers, "callers", []int{1, 16, 64, 256}, "how many callers ask at once; given, each with all of --keys")
	f.StringSliceVar(&o.keys, "keys", []string{"uniform-10k", "one", "zipf-10k", "uniform-1M", "zipf-1M"}, "which keys they ask for: one, uniform-N or zipf-N; given, each with all of --callers")
	f.IntVar(&o.rounds, "rounds", 3, "how often each rival has its turn in each cell")
	f.DurationVar(&o.slice, "slice", 900*time.Millisecond, "how long it is measured each time")
	f.IntVar(&o.counters, "counters", 1_000_000, "how many counters memory is measured with; 0: it is not")
	f.BoolVar(&o.quick, "quick", false, "a try in two minutes: 1 and 64 callers, one kind of keys, two rounds of 300 ms")
	cmd.AddCommand(workerCommand(), serveCommand(), listCommand(), tableCommand())
	return cmd
}

// plan is what the flags ask for.
func (o *options) plan(cmd *cobra.Command) (plan, error) {
	given := cmd.Flags().Changed
	if o.quick {
		quick := func(flag string, set func()) {
			if !given(flag) {
				set()
			}
		}
		quick("callers", func() { o.callers = []int{1, 64} })
		quick("keys", func() { o.keys = o.keys[:1] })
		quick("rounds", func() { o.rounds = 2 })
		quick("slice", func() { o.slice = 300 * time.Millisecond })
		quick("counters", func() { o.counters = 100_000 })
	}
	if len(o.callers) == 0 || len(o.keys) == 0 {
		return plan{}, fmt.Errorf("--callers and --keys must have one entry at least")
	}
	p := plan{Cells: cross(o.callers, o.keys), Narrow: each(o.callers, o.keys[:1]), Rounds: o.rounds, Slice: o.slice, Counters: o.counters}
	if given("callers") || given("keys") {
		p.Cells = each(o.callers, o.keys)
		p.Narrow = p.Cells
	}
	if o.rounds < 1 || o.slice < 10*time.Millisecond || o.counters < 0 {
		return p, fmt.Errorf("--rounds must be at least 1, --slice at least 10ms, --counters at least 0")
	}
	if err := checkCells(p.Cells); err != nil {
		return p, err
	}
	var err error
	p.Entries, err = matching(rival.All(), o.only)
	return p, err
}

func (o *options) run(cmd *cobra.Command) error {
	p, err := o.plan(cmd)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	found, err := find(cmd.Context(), dir, o.ringlimit)
	if err != nil {
		return err
	}
	found.profiles = o.profile
	b := &bench{
		plan: p, programs: found, progress: cmd.ErrOrStderr(),
		machine: report.ThisMachine(), versions: versions(cmd.Context(), found.redis),
	}
	if err := b.run(cmd.Context()); err != nil {
		return err
	}
	if err := b.tell(cmd.OutOrStdout()); err != nil || o.json == "" {
		return err
	}
	return writeFile(o.json, b.record())
}

func writeFile(name string, v any) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := report.WriteJSON(f, v); err != nil {
		return err
	}
	return f.Close()
}

func serveCommand() *cobra.Command {
	var profiled bool
	cmd := &cobra.Command{
		Use: "serve KIND", Hidden: true, Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return rival.Serve(cmd.Context(), cmd.OutOrStdout(), profiled, args[0], args[1:])
		},
	}
	cmd.Flags().BoolVar(&profiled, "profile", false, "record what it waits for, and serve profiles")
	return cmd
}

func listCommand() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the rivals", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, e := range rival.All() {
				if _, err := fmt.Fprintf(cmd.OutOrStdout(), "%-24s %-24s  %s\n", e.Name, e.Kind, e.What); err != nil {
					return err
				}
			}
			return nil
		},
	}
}
