package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/ringlimit/ringlimit/rules"
)

func (c *command) rules() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rules",
		Short: "Read, change and explain rules",
		Args:  subcommand,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(c.getRules(), c.putRules(), c.diffRules(), c.validateRules(), c.explainRules())
	return cmd
}

// validation is what `rules validate` reports of a good file.
type validation struct {
	File     string   `json:"file"`
	Valid    bool     `json:"valid"`
	Rules    int      `json:"rules"`
	Warnings []string `json:"warnings"`
}

func (c *command) validateRules() *cobra.Command {
	return &cobra.Command{
		Use:   "validate FILE",
		Short: "Check a rule file without a node",
		Long: `Check a rule file without a node.

Exit codes: 0 the file is good, warnings aside, 2 it is not.`,
		Args: exactly(1),
		RunE: func(_ *cobra.Command, args []string) error {
			set, err := readRules(args[0])
			if err != nil {
				return err
			}
			v := validation{File: args[0], Valid: true, Warnings: append([]string{}, set.Warnings()...)}
			for range set.Rules() {
				v.Rules++
			}
			if c.out.format == text {
				for _, warning := range v.Warnings {
					fmt.Fprintln(c.stderr, "warning:", warning)
				}
			}
			return c.out.print(v, v.text)
		},
	}
}

func (v validation) text(w io.Writer) {
	fmt.Fprintf(w, "%s: %s, valid\n", v.File, count(v.Rules, "rule"))
}

func readRules(file string) (*rules.Set, error) {
	data, err := readBounded(file, rules.MaxFileBytes)
	if err != nil {
		return nil, err
	}
	return rules.Parse(file, data)
}
