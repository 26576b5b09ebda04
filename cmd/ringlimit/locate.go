package main

import (
	"fmt"
	"io"
	"net/url"

	"github.com/spf13/cobra"
)

// location is the answer to GET /v1/keys/{key}.
type location struct {
	Partition int    `json:"partition"`
	Owner     string `json:"owner"`
	Tier      string `json:"tier"`
	verdict
}

func (c *command) locate() *cobra.Command {
	var admin adminFlags
	var route, tier, ip string
	cmd := &cobra.Command{
		Use:   "locate KEY",
		Short: "Say which node counts KEY, and what is left of it",
		Args:  exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			key := args[0]
			if err := validText(map[string]string{"KEY": key, "--route": route, "--tier": tier, "--ip": ip}); err != nil {
				return err
			}
			node, err := admin.client()
			if err != nil {
				return err
			}
			body, err := node.get(cmd.Context(), "/v1/keys/"+url.PathEscape(key)+query("route", route, "tier", tier, "ip", ip))
			if err != nil {
				return err
			}
			var at location
			return c.out.show(node, body, &at, func(w io.Writer) { fmt.Fprintln(w, at.text()) })
		},
	}
	f := cmd.Flags()
	admin.bind(f)
	f.StringVar(&route, "route", "", `what is called, such as "POST /v1/charges"`)
	f.StringVar(&tier, "tier", "", "the key's tier (default: the tier named default)")
	f.StringVar(&ip, "ip", "", "the client's address")
	return cmd
}

// query is the query string of the pairs that have a value.
func query(pairs ...string) string {
	values := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			values.Set(pairs[i], pairs[i+1])
		}
	}
	if len(values) == 0 {
		return ""
	}
	return "?" + values.Encode()
}

func (l location) text() string {
	if l.Limit == nil {
		return l.verdict.text()
	}
	owner := l.Owner
	if owner == "" {
		owner = "no node"
	}
	return fmt.Sprintf("%s holds it (partition %d); a check now: %s", owner, l.Partition, l.verdict.text())
}
