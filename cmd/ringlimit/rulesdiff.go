package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/ringlimit/ringlimit/rules"
)

func (c *command) diffRules() *cobra.Command {
	var admin adminFlags
	cmd := &cobra.Command{
		Use:   "diff FILE",
		Short: "Say what a rule file would change at a running node",
		Long: `Say what a rule file would change at a running node, from what is in force there
to what the file says. What the file lacks is told as removed; a SIGHUP would leave
it as it is.

Exit codes: 0 nothing differs, 1 something does, 2 an error.`,
		Args: exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			to, err := readRules(args[0])
			if err != nil {
				return err
			}
			node, err := admin.client()
			if err != nil {
				return err
			}
			from, err := node.rules(cmd.Context())
			if err != nil {
				return err
			}
			changes := append([]rules.Change{}, rules.Diff(from, to)...)
			err = c.out.print(map[string]any{"changes": changes}, func(w io.Writer) {
				for _, change := range changes {
					fmt.Fprintln(w, change)
				}
			})
			if err == nil && len(changes) > 0 {
				return errDiffers
			}
			return err
		},
	}
	admin.bind(cmd.Flags())
	return cmd
}

// rules is all that is in force at a node.
func (c *client) rules(ctx context.Context) (*rules.Set, error) {
	body, err := c.get(ctx, "/v1/limits")
	if err != nil {
		return nil, err
	}
	var all struct{ Tiers, Clients map[string]json.RawMessage }
	if err := decode(c, body, &all); err != nil {
		return nil, err
	}
	bodies := map[rules.EntityName][]byte{}
	for name, body := range all.Tiers {
		bodies[rules.EntityName{Kind: rules.TierEntity, Name: name}] = body
	}
	for name, body := range all.Clients {
		bodies[rules.EntityName{Kind: rules.ClientEntity, Name: name}] = body
	}
	return readable(c, bodies)
}

// readable compiles what a node has. A client whose tier is gone is no error of
// ours; rules that this version cannot read are.
func readable(c *client, bodies map[rules.EntityName][]byte) (*rules.Set, error) {
	set, warnings := new(rules.Set).WithLenient(bodies)
	n := 0
	for range set.Entities() {
		n++
	}
	if n != len(bodies) {
		return nil, fmt.Errorf("%s has rules that this version cannot read: %s", c.base, warnings[0])
	}
	return set, nil
}
