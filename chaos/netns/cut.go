package netns

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ringlimit/ringlimit/chaos/cluster"
	"github.com/ringlimit/ringlimit/chaos/scenario"
)

// Cut harms what arrives at one group of nodes from another. What is lost adds up
// until Heal; of delays of a link the last counts, also for nodes that have no
// place yet.
func (n *Net) Cut(c *scenario.Cut) error {
	if c.Delay == 0 {
		return n.lose(c)
	}
	for to := range scenario.MaxNodes {
		for _, from := range senders(c, to) {
			n.wires.delay(from, to, c)
		}
	}
	return nil
}

// lose has packets lost by rules within the receivers' namespaces.
func (n *Net) lose(c *scenario.Cut) error {
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
	n.wires.heal()
	for _, h := range n.homes {
		if err := h.run("", "nft", "flush", "ruleset"); err != nil {
			return err
		}
	}
	return nil
}
