// Package cluster runs the nodes of a run as processes of their own, asks them
// how they see each other, and knows which of them a load balancer would send
// clients to.
package cluster

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/ringlimit/ringlimit/chaos/cgroup"
	"github.com/ringlimit/ringlimit/chaos/history"
	"github.com/ringlimit/ringlimit/chaos/load"
	"github.com/ringlimit/ringlimit/chaos/process"
)

// Config is what a cluster is made of.
type Config struct {
	Binary  string
	Dir     string // for logs, rules and the secret
	Network Network
	Flags   []string       // of every node, beside those that say where it is
	Files   int            // file descriptors that a node may have; 0: as many as we
	Memory  *cgroup.Memory // where each node gets a group of its own; nil: it gets none
	Group   *process.Group // ends the processes
	History *history.History
}

// Cluster is safe for concurrent use.
type Cluster struct {
	Config
	probing sync.WaitGroup
	stop    context.CancelFunc
	ctx     context.Context

	mu    sync.Mutex
	nodes []*Node
}

// New writes down the rules and a secret. No node runs yet. Close ends it, and
// the network.
func New(cfg Config, rules []byte) (*Cluster, error) {
	ctx, stop := context.WithCancel(context.Background())
	c := &Cluster{Config: cfg, ctx: ctx, stop: stop}
	if err := os.WriteFile(c.rules(), rules, 0o600); err != nil {
		return nil, err
	}
	return c, errors.Join(
		os.WriteFile(c.secret(), []byte(rand.Text()), 0o600),
		os.WriteFile(c.alienSecret(), []byte(rand.Text()), 0o600))
}

func (c *Cluster) rules() string  { return filepath.Join(c.Dir, "rules.yaml") }
func (c *Cluster) secret() string { return filepath.Join(c.Dir, "secret") }

func (c *Cluster) alienSecret() string { return filepath.Join(c.Dir, "alien-secret") }

func (c *Cluster) closing() bool { return c.ctx.Err() != nil }

// Close kills what still runs, waits until it is gone, and ends what was made
// for it.
func (c *Cluster) Close() error {
	c.stop()
	c.Group.Kill()
	c.probing.Wait()
	for _, n := range c.Nodes() {
		n.http.CloseIdleConnections()
	}
	return errors.Join(c.Network.Close(), c.Memory.Close())
}

// idle is how many connections to a node are kept for its clients.
const idle = 256

// Add makes a place for one more node, which does not run yet. The zero Stranger
// is a member like all others.
func (c *Cluster) Add(s Stranger) (*Node, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	number := len(c.nodes)
	name := fmt.Sprintf("node-%d", number)
	place, err := c.Network.Place(number)
	if err != nil {
		return nil, err
	}
	group, err := c.Memory.Group(name)
	if err != nil {
		return nil, err
	}
	n := &Node{
		Number:   number,
		Name:     name,
		Stranger: s,
		cluster:  c,
		place:    place,
		group:    group,
		http:     &http.Client{Transport: &http.Transport{DialContext: place.Dial, MaxIdleConnsPerHost: idle}},
	}
	c.nodes = append(c.nodes, n)
	c.probing.Go(func() { n.probe(c.ctx) })
	return n, nil
}

// Nodes lists all nodes that ever were.
func (c *Cluster) Nodes() []*Node {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.nodes)
}

// Running lists the members that run and were not told to end.
func (c *Cluster) Running() []*Node {
	return slices.DeleteFunc(c.Nodes(), func(n *Node) bool { return n.outside() || !n.Running() })
}

// Doors lists where a load balancer would send clients now.
func (c *Cluster) Doors() []load.Door {
	var doors []load.Door
	for _, n := range c.Nodes() {
		if n.Ready() && !n.outside() {
			doors = append(doors, n.door())
		}
	}
	return doors
}

// Start runs nodes at once. Each is given those that run and the others that
// start with it as members to join. ahead sets their monotonic clocks forward.
func (c *Cluster) Start(ahead time.Duration, nodes ...*Node) error {
	members := append(c.Running(), nodes...)
	for _, n := range nodes {
		var join []string
		for _, m := range members {
			if m != n {
				join = append(join, m.Gossip())
			}
		}
		if err := n.start(join, ahead); err != nil {
			return err
		}
	}
	return nil
}
