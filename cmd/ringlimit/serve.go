package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"time"

	"github.com/spf13/cobra"

	"github.com/ringlimit/ringlimit"
	"github.com/ringlimit/ringlimit/rules"
)

// serveNotice is long enough for a load balancer that probes every second.
const serveNotice = time.Second

func (c *command) serve() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run one node",
		Long: `Run one node until SIGTERM or SIGINT. It then gives its counters to the other
nodes, within --drain-timeout, and answers until they have them; if some are left,
it exits with 2. A second signal ends it at once.

SIGHUP, or a change of the rule file, applies the file: each tier and client of it
that differs from what is in force. What the file lacks stays.

Every setting is a flag, an environment variable (--data-dir is
RINGLIMIT_DATA_DIR) and a line of the settings file (data_dir: …). A flag counts
more than a variable, a variable more than the file.`,
		Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			log, err := c.logger(slog.LevelInfo)
			if err != nil {
				return err
			}
			s, from, err := load(cmd.Flags(), c.env, file)
			if err != nil {
				return err
			}
			// From the first moment: the signal's own effect is to end the process.
			hangup, stop := hangups()
			defer stop()
			i, err := newInstance(s, from, log)
			if err != nil {
				return err
			}
			limitMemory(s.memory, i.log)
			i.hangup = hangup
			i.notice = serveNotice
			return c.serveNode(cmd.Context(), i)
		},
	}
	cmd.Flags().StringVar(&file, "config", "", "settings file, YAML")
	defaultSettings().bind(cmd.Flags())
	c.addLogFormat(cmd)
	return cmd
}

func (c *command) serveNode(ctx context.Context, i *instance) error {
	return i.run(ctx, func(node *ringlimit.Node, d *doors) {
		if empty(node.Rules()) {
			i.log.Warn("there are no rules: every request is allowed")
		}
		at := addressesOf(node, d)
		if err := c.out.print(at, at.text); err != nil {
			i.log.Warn("nobody was told that the node is ready", "error", err)
		}
	})
}

func empty(set *rules.Set) bool {
	for range set.Entities() {
		return false
	}
	return true
}

// addresses is where a node can be reached, with the ports that were really
// taken.
type addresses struct {
	Name   string `json:"name"`
	HTTP   string `json:"http"`
	GRPC   string `json:"grpc"`
	Peer   string `json:"peer"`
	Gossip string `json:"gossip"`
	Admin  string `json:"admin"`
}

func addressesOf(node *ringlimit.Node, d *doors) addresses {
	return addresses{
		Name:   node.Name(),
		HTTP:   d.http.Addr().String(),
		GRPC:   d.grpc.Addr().String(),
		Peer:   node.PeerAddr(),
		Gossip: node.GossipAddr(),
		Admin:  d.admin.Addr().String(),
	}
}

func (a addresses) text(w io.Writer) {
	fmt.Fprintf(w, "%s is ready: http %s, grpc %s, peer %s, gossip %s, admin %s\n", a.Name, a.HTTP, a.GRPC, a.Peer, a.Gossip, a.Admin)
}

// told is the HTTP address that members are told: the real port at the host
// that others reach.
func (s *settings) told(http net.Addr) string {
	_, port, err := net.SplitHostPort(http.String())
	if err != nil || s.advertise == "" {
		return http.String()
	}
	return net.JoinHostPort(s.advertise, port)
}
