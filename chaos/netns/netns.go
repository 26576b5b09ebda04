// Package netns gives every node a network namespace of its own, joined by a
// switch in one more, and cuts links between them. The namespaces have no name:
// each lives as long as a process that holds it, so that none is left behind
// whatever becomes of the harness, and nothing of this machine's own network is
// touched.
package netns

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ringlimit/ringlimit/chaos/cluster"
	"github.com/ringlimit/ringlimit/chaos/process"
	"github.com/ringlimit/ringlimit/chaos/scenario"
)

// ErrUnable is why there are no namespaces here. A scenario that needs them is
// skipped.
var ErrUnable = errors.New("network namespaces cannot be made here")

// tools are the programs that are needed.
var tools = [...]string{"unshare", "nsenter", "ip", "nft", "sleep"}

// Net is a switch and the nodes' homes.
type Net struct {
	group *process.Group
	log   string
	hub   home
	homes []home
}

// home is a namespace, named by the id of the process that holds it.
type home struct{ pid int }

func (h home) path() string { return fmt.Sprintf("/proc/%d/ns/net", h.pid) }

// through is the command that runs another one in the namespace.
func (h home) through() []string { return []string{"nsenter", "--net=" + h.path(), "--"} }

// run runs one command in the namespace; input is what it reads.
func (h home) run(input string, command ...string) error {
	all := append(h.through(), command...)
	cmd := exec.Command(all[0], all[1:]...)
	cmd.Stdin = strings.NewReader(input)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(command, " "), err, out)
	}
	return nil
}

// New makes the switch. group ends the processes that hold the namespaces; dir is
// for their log.
func New(group *process.Group, dir string) (*Net, error) {
	for _, tool := range tools {
		if _, err := exec.LookPath(tool); err != nil {
			return nil, fmt.Errorf("%w: %w (Debian: apt-get install iproute2 nftables util-linux)", ErrUnable, err)
		}
	}
	n := &Net{group: group, log: filepath.Join(dir, "namespaces.log")}
	hub, err := n.hold()
	if err != nil {
		return nil, err
	}
	n.hub = hub
	return n, errors.Join(
		hub.run("", "ip", "link", "add", "hub", "type", "bridge"),
		hub.run("", "ip", "link", "set", "hub", "up"))
}

// longest is how long a namespace is held should nobody end its process.
const longest = "86400"

// hold starts a process that holds a new namespace.
func (n *Net) hold() (home, error) {
	p, err := n.group.Start(n.log, "unshare", "--net", "--", "sleep", longest)
	if err != nil {
		return home{}, err
	}
	h := home{p.PID()}
	for range 500 { // until it has left our namespace
		select {
		case <-p.Done():
			return h, fmt.Errorf("%w: unshare --net failed (are you root?); see %s", ErrUnable, n.log)
		case <-time.After(2 * time.Millisecond):
		}
		if away, err := h.away(); err != nil || away {
			return h, err
		}
	}
	return h, fmt.Errorf("%w: unshare --net took too long", ErrUnable)
}

// away says whether the holder is in a namespace of its own.
func (h home) away() (bool, error) {
	theirs, err := os.Readlink(h.path())
	if err != nil {
		return false, nil // about to end; hold will see it
	}
	ours, err := os.Readlink("/proc/self/ns/net")
	return theirs != ours, err
}

// address is where the other nodes find node i.
func address(i int) string { return fmt.Sprintf("10.77.0.%d", i+1) }

// Place makes a namespace for node i and plugs it into the switch.
func (n *Net) Place(i int) (cluster.Place, error) {
	if i != len(n.homes) {
		return cluster.Place{}, fmt.Errorf("nodes get their places in order: the next is %d, not %d", len(n.homes), i)
	}
	h, err := n.hold()
	if err != nil {
		return cluster.Place{}, err
	}
	n.homes = append(n.homes, h)
	port := fmt.Sprintf("port%d", i)
	err = firstError(
		func() error {
			return n.hub.run("", "ip", "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", fmt.Sprint(h.pid))
		},
		func() error { return n.hub.run("", "ip", "link", "set", port, "master", "hub", "up") },
		func() error { return h.run("", "ip", "address", "add", address(i)+"/24", "dev", "eth0") },
		func() error { return h.run("", "ip", "link", "set", "eth0", "up") },
		func() error { return h.run("", "ip", "link", "set", "lo", "up") },
	)
	return cluster.Place{Doors: "127.0.0.1", Host: address(i), Through: h.through(), Dial: h.dial}, err
}

func firstError(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// Cut harms what arrives at one group of nodes from another. Cuts add up until
// Heal.
func (n *Net) Cut(c *scenario.Cut) error {
	for to, h := range n.homes {
		froms := senders(c, to)
		if len(froms) == 0 {
			continue
		}
		var script strings.Builder
		script.WriteString("table ip chaos {\n chain input {\n  type filter hook input priority 0;\n")
		for _, from := range froms {
			script.WriteString(rules(c, from))
		}
		script.WriteString(" }\n}\n")
		if err := h.run(script.String(), "nft", "-f", "-"); err != nil {
			return err
		}
	}
	return nil
}

// senders lists whose packets a node is to lose: each once, or the losses of
// groups that overlap would add up, and never itself.
func senders(c *scenario.Cut, to int) (all []int) {
	add := func(from, group []int) {
		if !slices.Contains(group, to) {
			return
		}
		for _, f := range from {
			if f != to && !slices.Contains(all, f) {
				all = append(all, f)
			}
		}
	}
	add(c.From, c.To)
	if c.Both {
		add(c.To, c.From)
	}
	return all
}

// rules are what happens to packets from a node, one rule a line.
func rules(c *scenario.Cut, from int) string {
	var all strings.Builder
	for _, which := range traffic(c.Only) {
		r := "  ip saddr " + address(from) + which
		if c.Percent < 100 {
			r += fmt.Sprintf(" numgen random mod 100 < %d", c.Percent)
		}
		if c.Reject {
			fmt.Fprintf(&all, "%s meta l4proto tcp reject with tcp reset\n%s reject\n", r, r)
		} else {
			fmt.Fprintf(&all, "%s drop\n", r)
		}
	}
	return all.String()
}

// traffic matches one kind of packets. Of a port these are requests to it, and
// answers from it.
func traffic(only scenario.Traffic) []string {
	port := func(number string) []string { return []string{" th dport " + number, " th sport " + number} }
	switch only {
	case scenario.UDP, scenario.TCP:
		return []string{" meta l4proto " + string(only)}
	case scenario.Gossip:
		return port(cluster.GossipPort)
	case scenario.Peer:
		return port(cluster.PeerPort)
	}
	return []string{""}
}

// Heal mends all cuts.
func (n *Net) Heal() error {
	for _, h := range n.homes {
		if err := h.run("", "nft", "flush", "ruleset"); err != nil {
			return err
		}
	}
	return nil
}
