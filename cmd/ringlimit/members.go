package main

import (
	"context"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"
)

const defaultAdmin = "http://127.0.0.1:7704"

// memberList is the answer to GET /v1/members.
type memberList struct {
	Members []struct {
		ID, State, Addr, Peer, Gossip string
		Owner                         bool
		RulesVersion                  uint64 `json:"rules_version"`
	} `json:"members"`
}

func (c *command) members() *cobra.Command {
	var admin adminFlags
	cmd := &cobra.Command{
		Use:   "members",
		Short: "List the cluster's members as one node sees them",
		Long: `List the cluster's members as one node sees them.

In text, a last line tells what the node holds of the ring: "incoming" are
partitions that it is to take over, "outgoing" are those that it still holds and
is to give away, "without a copy" those that would be lost with it. The admin
API's /v1/ring has each partition.`,
		Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			node, err := admin.client()
			if err != nil {
				return err
			}
			body, err := node.get(cmd.Context(), "/v1/members")
			if err != nil {
				return err
			}
			var list memberList
			return c.out.show(node, body, &list, func(w io.Writer) {
				list.text(w)
				fmt.Fprintln(w)
				node.ringLine(cmd.Context(), w)
			})
		},
	}
	admin.bind(cmd.Flags())
	return cmd
}

func (l *memberList) text(w io.Writer) {
	rows := [][]string{{"ID", "STATE", "OWNER", "HTTP", "PEER", "GOSSIP", "RULES"}}
	for _, m := range l.Members {
		rows = append(rows, []string{m.ID, m.State, strconv.FormatBool(m.Owner), m.Addr, m.Peer, m.Gossip, strconv.FormatUint(m.RulesVersion, 10)})
	}
	table(w, rows)
}

// ringState is what people read of the answer to GET /v1/ring.
type ringState struct {
	Node, Fingerprint             string
	Members                       []string
	Phases                        map[string]int
	Incoming, Outgoing, Unguarded int
}

// ringLine says in one line whether counters are changing hands at the node. A
// node that cannot say so has told its members all the same.
func (c *client) ringLine(ctx context.Context, w io.Writer) {
	var ring ringState
	body, err := c.get(ctx, "/v1/ring")
	if err == nil {
		err = decode(c, body, &ring)
	}
	if err != nil {
		fmt.Fprintln(w, "no ring:", err)
		return
	}
	ring.text(w)
}

func (r *ringState) text(w io.Writer) {
	total := 0
	for _, n := range r.Phases {
		total += n
	}
	fmt.Fprintf(w, "ring %s of %s: %s holds %d of %s, %d incoming, %d outgoing, %d without a copy\n",
		r.Fingerprint, count(len(r.Members), "node"), r.Node, r.Phases["holding"], count(total, "partition"), r.Incoming, r.Outgoing, r.Unguarded)
}
