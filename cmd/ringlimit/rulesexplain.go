package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ringlimit/ringlimit/front"
	"github.com/ringlimit/ringlimit/limit"
	"github.com/ringlimit/ringlimit/rules"
)

func (c *command) explainRules() *cobra.Command {
	var admin adminFlags
	var req limit.Request
	var ip, file string
	cmd := &cobra.Command{
		Use:   "explain --key KEY",
		Short: "Say which rules a request would meet, which win, and why",
		Long: `Say which rules a request would meet, which win, and why: those in force at a node,
or with --rules those of a file. Nothing is counted.`,
		Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if err := validText(map[string]string{"--key": req.Key, "--route": req.Route, "--tier": req.Tier, "--ip": ip}); err != nil {
				return err
			}
			if req.IP, err = front.ParseIP("ip", ip); err != nil {
				return err
			}
			if err := req.Validate(); err != nil {
				return err
			}
			set, err := rulesFor(cmd.Context(), file, &admin, &req)
			if err != nil {
				return err
			}
			x, err := set.Explain(&req)
			if err != nil {
				return err
			}
			return c.out.print(x, func(w io.Writer) { explanationText(w, &x) })
		},
	}
	f := cmd.Flags()
	f.StringVar(&req.Key, "key", "", "who is limited")
	f.StringVar(&req.Route, "route", "", `what is called, such as "POST /v1/charges"`)
	f.StringVar(&req.Tier, "tier", "", "the key's tier (default: that of its entry among the clients, else the tier named default)")
	f.StringVar(&ip, "ip", "", "the client's address")
	f.StringToStringVar(&req.Attributes, "attribute", nil, "a further dimension, name=value; repeat it for more")
	f.StringVar(&file, "rules", "", "rule file, in place of a node")
	admin.bind(f)
	cmd.MarkFlagsMutuallyExclusive("rules", "admin")
	return cmd
}

func rulesFor(ctx context.Context, file string, admin *adminFlags, req *limit.Request) (*rules.Set, error) {
	if file != "" {
		return readRules(file)
	}
	node, err := admin.client()
	if err != nil {
		return nil, err
	}
	return node.rulesFor(ctx, req)
}

// rulesFor is what a node has that could apply to the request: three entities at
// most, however many there are.
func (c *client) rulesFor(ctx context.Context, req *limit.Request) (*rules.Set, error) {
	bodies := map[rules.EntityName][]byte{}
	entry, err := c.fetch(ctx, rules.EntityName{Kind: rules.ClientEntity, Name: req.Key}, bodies)
	if err != nil {
		return nil, err
	}
	for _, tier := range []string{req.Tier, entry.Tier, rules.DefaultTier} {
		if tier == "" {
			continue
		}
		if _, err := c.fetch(ctx, rules.EntityName{Kind: rules.TierEntity, Name: tier}, bodies); err != nil {
			return nil, err
		}
	}
	if _, exists := bodies[rules.EntityName{Kind: rules.TierEntity, Name: req.Tier}]; req.Tier != "" && !exists {
		return nil, fmt.Errorf("tier: %q is unknown at %s; ringlimit rules get prints all", req.Tier, c.base)
	}
	return readable(c, bodies)
}

// fetch adds an entity to bodies if there is one.
func (c *client) fetch(ctx context.Context, n rules.EntityName, bodies map[rules.EntityName][]byte) (e entry, err error) {
	body, err := c.get(ctx, pathOf(n))
	if refused, ok := errors.AsType[*refusedError](err); ok && refused.Status == http.StatusNotFound {
		return e, nil
	}
	if err == nil {
		bodies[n] = body
		err = decode(c, body, &e)
	}
	return e, err
}

func explanationText(w io.Writer, x *rules.Explanation) {
	fmt.Fprintf(w, "tier %s", x.Tier)
	if x.Client != "" {
		fmt.Fprintf(w, ", client %q", x.Client)
	}
	fmt.Fprintln(w)
	rows := [][]string{{"", "LEVEL", "RULE", "ROUTE", "BY", "PRIORITY", "OUTCOME"}}
	for _, r := range x.Rules {
		mark := ""
		if r.Applies {
			mark = "*"
		}
		rows = append(rows, []string{mark, r.Level, r.Name, r.RoutePattern, strings.Join(r.By, "+"), strconv.Itoa(int(r.Priority)), r.Outcome})
	}
	table(w, rows)
}
