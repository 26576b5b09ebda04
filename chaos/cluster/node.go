package cluster

import (
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/ringlimit/ringlimit/chaos/attack"
	"github.com/ringlimit/ringlimit/chaos/cgroup"
	"github.com/ringlimit/ringlimit/chaos/history"
	"github.com/ringlimit/ringlimit/chaos/process"
)

// The standard ports; every node has a host of its own. Those by which nodes find
// each other are for whoever cuts links.
const (
	httpPort  = "7700"
	grpcPort  = "7701"
	adminPort = "7704"

	PeerPort   = "7702" // for checks and hand-overs
	GossipPort = "7703"
)

// Node is one member of the cluster, through all its restarts. Safe for
// concurrent use.
type Node struct {
	Number int
	Name   string
	Stranger

	cluster *Cluster
	place   Place
	group   *cgroup.Group // nil: its memory has no bound
	http    *http.Client

	mu     sync.Mutex
	proc   *process.Process // nil: never started
	state  state
	health health
}

// state is what the harness did to a node last.
type state uint8

const (
	down state = iota
	up
	leaving // told by SIGTERM
	paused
)

// Gossip is the address by which others join.
func (n *Node) Gossip() string { return net.JoinHostPort(n.place.Host, GossipPort) }

// Ports lists what strangers could reach of the node, the HTTP door first.
func (n *Node) Ports() []attack.Port {
	port := func(network, host, number string) attack.Port {
		return attack.Port{Network: network, Address: net.JoinHostPort(host, number), Dial: n.place.Dial}
	}
	return []attack.Port{
		port("tcp", n.place.Doors, httpPort), port("tcp", n.place.Doors, grpcPort), port("tcp", n.place.Doors, adminPort),
		port("tcp", n.place.Host, PeerPort), port("tcp", n.place.Host, GossipPort), port("udp", n.place.Host, GossipPort),
	}
}

// Log is the file with all that the node prints.
func (n *Node) Log() string { return filepath.Join(n.cluster.Dir, n.Name+".log") }

// secret is the file with the secret of the node's cluster.
func (n *Node) secret() string {
	if n.Secret {
		return n.cluster.alienSecret()
	}
	return n.cluster.secret()
}

// Running says that there is a process which was not told to end.
func (n *Node) Running() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.state == up || n.state == paused
}

// Down says that there is no process.
func (n *Node) Down() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.state == down
}

// start runs the node, which joins by the addresses in join. It does not wait
// for it to be ready. ahead is by how much its monotonic clocks are set forward.
func (n *Node) start(join []string, ahead time.Duration) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.state != down {
		return fmt.Errorf("%s runs already", n.Name)
	}
	command := n.command(join, ahead)
	n.cluster.History.Mark(history.Event{Kind: history.Started, Node: n.Number, Text: n.Name, Refused: n.Refused})
	p, err := n.cluster.Group.Start(n.Log(), command[0], command[1:]...)
	if err != nil {
		return err
	}
	n.proc, n.state = p, up
	go n.watch(p, n.group.Kills())
	return nil
}

func (n *Node) command(join []string, ahead time.Duration) []string {
	at := func(host, port string) string { return net.JoinHostPort(host, port) }
	command := append([]string{}, n.place.Through...)
	if ahead > 0 {
		seconds := fmt.Sprint(int(ahead.Seconds()))
		command = append(command, "unshare", "--time", "--monotonic", seconds, "--boottime", seconds)
	}
	command = append(command, n.group.Through()...)
	if files := n.cluster.Files; files > 0 {
		command = append(command, "prlimit", fmt.Sprint("--nofile=", files), "--")
	}
	command = append(command, n.program(), "serve",
		"--name", n.Name, "--rules", n.cluster.rules(), "--secret-file", n.secret(),
		"--http", at(n.place.Doors, httpPort), "--grpc", at(n.place.Doors, grpcPort), "--admin", at(n.place.Doors, adminPort),
		"--peer", at(n.place.Host, PeerPort), "--gossip", at(n.place.Host, GossipPort))
	for _, a := range join {
		command = append(command, "--join", a)
	}
	return append(command, n.cluster.Flags...)
}

// watch notes the process's end. kills is how often one of this node had been
// ended for its memory before this one began.
func (n *Node) watch(p *process.Process, kills int) {
	<-p.Done()
	if !n.cluster.closing() { // else ended by the harness, which is done
		e := history.Event{Kind: history.Exited, Node: n.Number, Text: n.Name, Code: p.ExitCode()}
		if n.group.Kills() > kills {
			e.Why = ", out of memory"
		}
		n.cluster.History.Mark(e)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.state = down // only now: whoever sees it finds the event too
	n.health.reset()
}

// signal sends s and notes kind.
func (n *Node) signal(s syscall.Signal, kind history.Kind, next state, keys []uint32) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.state == down {
		return fmt.Errorf("%s does not run; it cannot be sent %v", n.Name, s)
	}
	e := history.Event{At: n.cluster.History.Now(), Kind: kind, Node: n.Number, Text: n.Name, Keys: keys}
	if err := n.proc.Signal(s); err != nil {
		return err
	}
	if kind == history.Paused {
		e.At = n.cluster.History.Now() // what was called before may have been under way
	}
	n.cluster.History.Mark(e)
	n.state = next
	return nil
}

// Kill sends SIGKILL. keys are those that the node owned, if that was asked for.
// One that was told to go, and is gone, was quicker.
func (n *Node) Kill(keys []uint32) error {
	if n.Down() {
		return nil
	}
	return n.signal(syscall.SIGKILL, history.Killed, leaving, keys)
}

// Terminate sends SIGTERM.
func (n *Node) Terminate() error {
	return n.signal(syscall.SIGTERM, history.Terminate, leaving, nil)
}

// Pause sends SIGSTOP.
func (n *Node) Pause() error { return n.signal(syscall.SIGSTOP, history.Paused, paused, nil) }

// Resume sends SIGCONT.
func (n *Node) Resume() error { return n.signal(syscall.SIGCONT, history.Resumed, up, nil) }
