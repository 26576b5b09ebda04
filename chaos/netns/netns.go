// Package netns gives every node a network namespace of its own, joins them, and
// cuts links between them. The namespaces have no name:
// each lives as long as a process that holds it, so that none is left behind
// whatever becomes of the harness, and nothing of this machine's own network is
// touched.
package netns

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/ringlimit/ringlimit/chaos/cluster"
	"github.com/ringlimit/ringlimit/chaos/process"
	"github.com/ringlimit/ringlimit/chaos/scenario"
	"github.com/ringlimit/ringlimit/chaos/tap"
)

// ErrUnable is why there are no namespaces here. A scenario that needs them is
// skipped.
var ErrUnable = errors.New("network namespaces cannot be made here")

// tools are the programs that are needed.
var tools = [...]string{"unshare", "nsenter", "ip", "nft", "sleep"}

// Net is the nodes' homes and what joins them.
type Net struct {
	group *process.Group
	log   string
	wires wires
	homes []home
}

// wires join homes.
type wires interface {
	plug(i int, h home) error // gives h, the home of node i, its device eth0
	delay(from, to int, c *scenario.Cut)
	heal()
	close() error
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

// New makes a network of a kind that has namespaces. group ends the processes that
// hold them; dir is for their log; seed chooses the delays of a switch.
func New(group *process.Group, dir string, kind scenario.Net, seed uint64) (*Net, error) {
	for _, tool := range tools {
		if _, err := exec.LookPath(tool); err != nil {
			return nil, fmt.Errorf("%w: %w (Debian: apt-get install iproute2 nftables util-linux)", ErrUnable, err)
		}
	}
	n := &Net{group: group, log: filepath.Join(dir, "namespaces.log")}
	if kind == scenario.Switched {
		n.wires = &switched{tap.New(seed), filepath.Join(dir, "switch.log")}
		return n, nil
	}
	hub, err := n.hold()
	if err != nil {
		return nil, err
	}
	n.wires = bridge{hub}
	return n, firstError(
		func() error { return hub.run("", "ip", "link", "add", "hub", "type", "bridge") },
		func() error { return hub.run("", "ip", "link", "set", "hub", "up") },
	)
}

// Close ends what joins the nodes. They must have ended.
func (n *Net) Close() error { return n.wires.close() }

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
			said, _ := os.ReadFile(n.log) // a skipped run keeps no logs
			return h, fmt.Errorf("%w: are you root? %s", ErrUnable, bytes.TrimSpace(said))
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

// Place makes a namespace for node i and joins it to the others.
func (n *Net) Place(i int) (cluster.Place, error) {
	if i != len(n.homes) {
		return cluster.Place{}, fmt.Errorf("nodes get their places in order: the next is %d, not %d", len(n.homes), i)
	}
	h, err := n.hold()
	if err != nil {
		return cluster.Place{}, err
	}
	n.homes = append(n.homes, h)
	err = firstError(
		func() error { return n.wires.plug(i, h) },
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
