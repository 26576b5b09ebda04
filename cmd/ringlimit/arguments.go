package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// exactly is for a command that takes n arguments: its Use names them.
func exactly(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == n {
			return nil
		}
		return fmt.Errorf("%s given; want %s", count(len(args), "argument"), strings.TrimSuffix(cmd.UseLine(), " [flags]"))
	}
}

// subcommand is for a command that only holds others.
func subcommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	return fmt.Errorf("unknown command %q for %q; there are %s", args[0], cmd.CommandPath(), strings.Join(names, ", "))
}

// flagError says what a flag takes, where the library says how parsing failed.
func flagError(cmd *cobra.Command, err error) error {
	if wrong, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		f := wrong.GetFlag()
		return fmt.Errorf("--%s: %q is not %s", f.Name, wrong.GetValue(), kindOf(f.Value.Type()))
	}
	if bare, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		f := bare.GetFlag()
		return fmt.Errorf("--%s: has no value; give it %s", f.Name, kindOf(f.Value.Type()))
	}
	return fmt.Errorf("%w; %s --help lists the flags", err, cmd.CommandPath())
}

// count is "1 rule" or "2 rules".
func count(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}
