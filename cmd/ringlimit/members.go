package main

import (
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
	} `json:"members"`
}

func (c *command) members() *cobra.Command {
	var address string
	cmd := &cobra.Command{
		Use:   "members",
		Short: "List the cluster's members as one node sees them",
		Args:  exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			node, err := newClient("admin", address)
			if err != nil {
				return err
			}
			body, err := node.get(cmd.Context(), "/v1/members")
			if err != nil {
				return err
			}
			var list memberList
			return c.out.show(node, body, &list, func(w io.Writer) { list.text(w) })
		},
	}
	cmd.Flags().StringVar(&address, "admin", defaultAdmin, "admin address of a node")
	return cmd
}

func (l *memberList) text(w io.Writer) {
	rows := [][]string{{"ID", "STATE", "OWNER", "HTTP", "PEER", "GOSSIP"}}
	for _, m := range l.Members {
		rows = append(rows, []string{m.ID, m.State, strconv.FormatBool(m.Owner), m.Addr, m.Peer, m.Gossip})
	}
	table(w, rows)
}
