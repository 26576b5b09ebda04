package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/ringlimit/ringlimit"
	"github.com/ringlimit/ringlimit/examples"
	"github.com/ringlimit/ringlimit/membership"
	"github.com/ringlimit/ringlimit/rules"
)

// Bounds of `dev`: what one machine does for a try, and the ports a node takes.
const (
	maxDevNodes  = 50
	portsPerNode = 10
	settleTime   = 20 * time.Second
)

type devOptions struct {
	nodes, basePort int
	rules           string
	deadline        time.Duration
}

func (c *command) dev() *cobra.Command {
	var o devOptions
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Run a whole cluster in one process, to try things out",
		Long: `Run a whole cluster in one process, to try things out, until SIGTERM or SIGINT.

Node i listens on loopback: HTTP on port 7700 + 10·i, gRPC, peer, gossip and
admin on the four ports after it. A changed rule file is applied; so are changes
at any admin port.`,
		Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			log, err := c.logger(slog.LevelWarn)
			if err != nil {
				return err
			}
			audit, err := c.logger(slog.LevelInfo) // who changed which rule is worth a line here too
			if err != nil {
				return err
			}
			instances, err := o.instances(log, audit)
			if err != nil {
				return err
			}
			return c.runCluster(cmd.Context(), instances)
		},
	}
	f := cmd.Flags()
	f.IntVar(&o.nodes, "nodes", 3, "how many nodes")
	f.IntVar(&o.basePort, "base-port", 7700, "first port of the first node")
	f.StringVar(&o.rules, "rules", "", "rule file (default: the built-in example)")
	f.DurationVar(&o.deadline, "deadline", defaultSettings().deadline, "how long a check may take; a machine that is busy with other things needs more")
	c.addLogFormat(cmd)
	return cmd
}

// instances are the nodes to run; the first is the one that the others join.
func (o devOptions) instances(log, audit *slog.Logger) ([]*instance, error) {
	if o.nodes < 1 || o.nodes > maxDevNodes {
		return nil, fmt.Errorf("--nodes: must be from 1 to %d", maxDevNodes)
	}
	if last := 65535 - o.nodes*portsPerNode; o.basePort < 1 || o.basePort > last {
		return nil, fmt.Errorf("--base-port: must be from 1 to %d for %d nodes", last, o.nodes)
	}
	if o.deadline <= 0 {
		return nil, errors.New("--deadline: must be positive")
	}
	file, set, err := o.ruleset(log)
	if err != nil {
		return nil, err
	}
	var all []*instance
	for n := range o.nodes {
		s := o.settings(n)
		i := &instance{settings: s, from: devOrigins(), name: s.name, rules: set, log: log.With("node", s.name), audit: audit.With("node", s.name)}
		if n == 0 {
			i.file = file // one node tells the others
		}
		all = append(all, i)
	}
	return all, nil
}

// ruleset is the rules to begin with, and their file if there is one.
func (o devOptions) ruleset(log *slog.Logger) (*ruleFile, *rules.Set, error) {
	if o.rules == "" {
		set, err := rules.Parse("examples/rules.yaml", []byte(examples.Rules))
		return nil, set, err
	}
	return devOrigins().openRules(o.rules, log)
}

// devOrigins is where a node's addresses come from here.
func devOrigins() origins {
	o := origins{}
	for _, a := range defaultSettings().addresses() {
		o[a.setting] = "--base-port"
	}
	return o
}

func (o devOptions) settings(n int) *settings {
	s := defaultSettings()
	s.name, s.deadline = fmt.Sprintf("node-%d", n), o.deadline
	port := o.basePort + n*portsPerNode
	for i, a := range []*string{&s.http, &s.grpc, &s.peer, &s.gossip, &s.admin} {
		*a = net.JoinHostPort("127.0.0.1", strconv.Itoa(port+i))
	}
	if n > 0 {
		s.join = []string{o.settings(0).gossip}
	}
	return s
}

// runCluster runs all until ctx ends or one breaks, and says when each sees
// every other one and holds its share: before that, nodes would answer from rings
// that differ.
func (c *command) runCluster(ctx context.Context, instances []*instance) error {
	group, ctx := errgroup.WithContext(ctx)
	l := &lineup{all: make(chan struct{}), nodes: make([]*ringlimit.Node, len(instances)), at: make([]addresses, len(instances))}
	for n, i := range instances {
		group.Go(func() error {
			return i.run(ctx, func(node *ringlimit.Node, d *doors) { l.enter(n, node, d) })
		})
	}
	group.Go(func() error {
		settled, err := l.settle(ctx)
		if !settled {
			return err
		}
		return c.out.print(map[string]any{"nodes": l.at}, l.text)
	})
	return group.Wait()
}

// lineup gathers the nodes of a cluster as they come up.
type lineup struct {
	mu    sync.Mutex
	up    int
	all   chan struct{} // closed when all are up; nodes and at are complete then
	nodes []*ringlimit.Node
	at    []addresses
}

func (l *lineup) enter(n int, node *ringlimit.Node, d *doors) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.nodes[n], l.at[n] = node, addressesOf(node, d)
	if l.up++; l.up == len(l.nodes) {
		close(l.all)
	}
}

// settle waits until every node is ready and sees all nodes serve; false without an error
// means that ctx ended first.
func (l *lineup) settle(ctx context.Context) (bool, error) {
	deadline := time.NewTimer(settleTime)
	defer deadline.Stop()
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for all := l.all; ; {
		select {
		case <-ctx.Done():
			return false, nil
		case <-deadline.C:
			return false, errors.New("the nodes have not found each other in time")
		case <-all:
			all = nil // from now on only look
		case <-look.C:
			if all == nil && l.settled() {
				return true, nil
			}
		}
	}
}

func (l *lineup) settled() bool {
	for _, node := range l.nodes {
		if node.Ready() != nil {
			return false
		}
		serving := 0
		for _, m := range node.Members() {
			if m.State == membership.Serving {
				serving++
			}
		}
		if serving != len(l.nodes) {
			return false
		}
	}
	return true
}

func (l *lineup) text(w io.Writer) {
	rows := [][]string{{"NODE", "HTTP", "GRPC", "PEER", "GOSSIP", "ADMIN"}}
	for _, a := range l.at {
		rows = append(rows, []string{a.Name, a.HTTP, a.GRPC, a.Peer, a.Gossip, a.Admin})
	}
	table(w, rows)
	fmt.Fprintf(w, `
Ask any node; they count together:

  curl -d '{"key":"alice"}' -H 'Content-Type: application/json' http://%s/v1/check

Ctrl-C stops them.
`, l.at[len(l.at)-1].HTTP)
}
