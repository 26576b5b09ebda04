package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/spf13/cobra"
)

// The exit codes. exitNo is left to answers, so that a script can tell a denial or
// a difference from a failure.
const (
	exitOK    = 0
	exitNo    = 1
	exitError = 2
)

// What ends a command whose answer, already printed, was no.
var (
	errDenied  = errors.New("denied")
	errDiffers = errors.New("differs")
)

// lookup finds an environment variable: os.LookupEnv, or a test's.
type lookup func(name string) (string, bool)

// command is what all subcommands share: the outside world and the flags of
// every command.
type command struct {
	env       lookup
	out       printer
	stderr    io.Writer
	logFormat string
}

// run executes one command line and returns the exit code. It reads nothing but
// its arguments, and returns when everything it started has ended.
func run(ctx context.Context, args []string, env lookup, stdout, stderr io.Writer) int {
	c := &command{env: env, out: printer{w: stdout, format: text}, stderr: stderr}
	root := c.root()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errDenied), errors.Is(err, errDiffers):
		return exitNo
	}
	c.fail(err, args)
	return exitError
}

func (c *command) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "ringlimit",
		Short: "A rate limiter that needs no shared store",
		Long: `ringlimit runs and asks a cluster of rate-limiting nodes.

Exit codes: 0 done or allowed, 1 denied or different, 2 an error.`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          subcommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(flagError)
	root.PersistentFlags().Var(&c.out.format, "output", "text or json")
	root.AddCommand(c.dev(), c.serve(), c.check(), c.rules(), c.members(), c.locate(), c.version())
	return root
}

// fail tells what went wrong: with --output json on stdout, where a script
// reads, else on stderr. args are asked too, since a command line that cannot
// be parsed may fail before --output is seen.
func (c *command) fail(err error, args []string) {
	if c.out.format == jsonFormat || asksForJSON(args) {
		_ = c.out.json(struct {
			Error string `json:"error"`
		}{err.Error()})
		return
	}
	fmt.Fprintln(c.stderr, "ringlimit:", err)
}

func asksForJSON(args []string) bool {
	for i, a := range args {
		if a == "--output=json" || a == "--output" && i+1 < len(args) && args[i+1] == "json" {
			return true
		}
	}
	return false
}

// logger writes to stderr, which stdout's results do not mix with.
func (c *command) logger(level slog.Level) (*slog.Logger, error) {
	options := &slog.HandlerOptions{Level: level}
	switch c.logFormat {
	case "text":
		return slog.New(slog.NewTextHandler(c.stderr, options)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(c.stderr, options)), nil
	}
	return nil, fmt.Errorf("--log-format: %q is unknown; it must be text or json", c.logFormat)
}

func (c *command) addLogFormat(cmd *cobra.Command) {
	cmd.Flags().StringVar(&c.logFormat, "log-format", "text", "text or json; logs go to stderr")
}
