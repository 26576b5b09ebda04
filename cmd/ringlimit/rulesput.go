package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ringlimit/ringlimit/rules"
)

func (c *command) putRules() *cobra.Command {
	var admin adminFlags
	var of target
	var ifMatch string
	cmd := &cobra.Command{
		Use:   "put {TIER | --client ID} FILE",
		Short: "Put the rules of a tier or client in force, in the whole cluster",
		Long: `Put the rules of a tier or client in force, in the whole cluster.

FILE (- is stdin) is a rule file that has the tier or client, in YAML or JSON, or a
body as the admin API takes it, in JSON: {"rules":[…]}, which replaces the tier, or
one rule, which is set among the others; for a client {"tier":…,"rules":[…]}. What
is wrong in it is refused whole, and the old rules stay.`,
		Args: cobra.MaximumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			rest, err := of.take(cmd, args)
			if err != nil {
				return err
			}
			if len(rest) != 1 {
				return fmt.Errorf("%s given; want %s", count(len(rest), "file"), "ringlimit rules put {TIER | --client ID} FILE")
			}
			if cmd.Flags().Changed("if-match") && strings.TrimSpace(ifMatch) == "" {
				return errors.New("--if-match: is empty; give the etag that rules get has printed")
			}
			node, err := admin.client()
			if err != nil {
				return err
			}
			file, body, err := readBody(rest[0], of.name())
			if err != nil {
				return err
			}
			return c.put(cmd, node, of.name(), file, call{method: "PUT", path: pathOf(of.name()), body: body, ifMatch: tagOf(ifMatch)})
		},
	}
	admin.bind(cmd.Flags())
	of.bind(cmd)
	cmd.Flags().StringVar(&ifMatch, "if-match", "", "only if the rules are still those of this etag, which rules get has printed")
	return cmd
}

// tagOf is an entity tag as HTTP wants it; in a shell its quotes are easily lost.
func tagOf(text string) string {
	if text == "" || text == "*" || strings.Contains(text, `"`) {
		return text
	}
	return `"` + text + `"`
}

func (c *command) put(cmd *cobra.Command, node *client, n rules.EntityName, file string, ask call) error {
	a, err := node.do(cmd.Context(), ask)
	if refused, ok := errors.AsType[*refusedError](err); ok && len(refused.Errors) > 0 {
		return errors.New(strings.Join(refused.lines(file+":"), "\n"))
	}
	if err != nil {
		return err
	}
	created := a.status == 201
	return c.out.print(state{Entity: n.String(), ETag: a.etag, Created: &created, Body: a.body}, func(w io.Writer) {
		verb := "changed"
		if created {
			verb = "created"
		}
		fmt.Fprintf(w, "%s %s, etag %s\n", verb, n, a.etag)
	})
}

// readBody reads what is to be put: a file's part, or a body as it is. name is the
// file's, for messages.
func readBody(file string, n rules.EntityName) (name string, body []byte, err error) {
	data, err := readInput(file)
	if file == "-" {
		file = "stdin"
	}
	if err != nil {
		return file, nil, err
	}
	var sections map[string]json.RawMessage
	if json.Unmarshal(data, &sections) == nil && sections["tiers"] == nil && sections["clients"] == nil {
		return file, data, nil // it is the node's to judge
	}
	set, err := rules.Parse(file, data)
	if err != nil {
		return file, nil, err
	}
	body, ok := set.Entity(n)
	if !ok {
		return file, nil, fmt.Errorf("%s: has no %s %q", file, n.Kind, n.Name)
	}
	return file, body, nil
}

func readInput(file string) ([]byte, error) {
	if file == "-" {
		return readAll(os.Stdin, "stdin", rules.MaxFileBytes)
	}
	return readBounded(file, rules.MaxFileBytes)
}
