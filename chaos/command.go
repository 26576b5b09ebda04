package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"github.com/spf13/cobra"

	"github.com/ringlimit/ringlimit/chaos/scenario"
)

// The exit codes.
const (
	exitHeld   = 0
	exitBroken = 1
	exitError  = 2
)

// errBroken says that the runs were carried out and a bound did not hold.
var errBroken = errors.New("a bound was broken")

// settings are the command's flags.
type settings struct {
	json, keep, list bool
	seed             uint64
	duration         time.Duration
	nodes            int
	tags, binary     string
	builds           map[string]string // other programs, by their tag
	report           string
}

func run(ctx context.Context, args []string, out, problems io.Writer) int {
	cmd := command(out, problems)
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(ctx)
	switch {
	case err == nil:
		return exitHeld
	case errors.Is(err, errBroken):
		return exitBroken
	}
	fmt.Fprintln(problems, "chaos:", err)
	return exitError
}

func command(out, problems io.Writer) *cobra.Command {
	var s settings
	cmd := &cobra.Command{
		Use:           "chaos [scenario…]",
		Short:         "Run scenarios against real nodes and judge what they kept of their promises",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          func(cmd *cobra.Command, _ []string) error { return s.validate(cmd.Flags().Changed("nodes")) },
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 || s.list {
				return list(out)
			}
			scenarios, err := find(args, s.nodes)
			if err != nil {
				return err
			}
			return s.runAll(cmd.Context(), scenarios, out, problems)
		},
	}
	s.bind(cmd)
	cmd.SetOut(out)
	cmd.SetErr(problems)
	return cmd
}

func (s *settings) bind(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.BoolVar(&s.list, "list", false, "list the scenarios")
	fs.BoolVar(&s.json, "json", false, "the verdict as JSON, one object a scenario")
	fs.BoolVar(&s.keep, "keep", false, "keep the logs of the nodes, also when all went well")
	fs.Uint64Var(&s.seed, "seed", 0, "chooses keys, nodes and victims (0: a new one each time, which the table tells)")
	fs.DurationVar(&s.duration, "duration", 0, "how long the repetitions of a scenario go on (0: as often as it says)")
	fs.IntVar(&s.nodes, "nodes", 0, "how many nodes to begin with (default: as many as the scenario says)")
	fs.StringVar(&s.report, "report", "", "file for a report of all scenarios as one HTML page")
	fs.StringVar(&s.tags, "tags", "", "build tags for the program under test, such as those of a planted fault")
	fs.StringVar(&s.binary, "binary", "", "program under test (empty: it is built from this repository)")
}

// validate is told whether a number of nodes was asked for.
func (s *settings) validate(nodes bool) error {
	switch {
	case nodes && (s.nodes < 1 || s.nodes > scenario.MaxNodes):
		return fmt.Errorf("--nodes: must be from 1 to %d, is %d", scenario.MaxNodes, s.nodes)
	case s.duration < 0:
		return fmt.Errorf("--duration: must not be negative, is %v", s.duration)
	case s.binary != "" && s.tags != "":
		return errors.New("--tags: have no effect on a program that is built already (--binary)")
	}
	if s.seed == 0 {
		s.seed = 1 + rand.Uint64N(1e9)
	}
	return nil
}
