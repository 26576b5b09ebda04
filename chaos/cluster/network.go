package cluster

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
)

// Place is where one node lives. It is the node's for good: a restart finds it
// again.
type Place struct {
	Doors   string   // host of its HTTP and admin doors: loopback, as the node sees it
	Host    string   // host of its gossip and peer ports, as the others see it
	Through []string // the command that runs a program there; empty: right here
	Dial    func(ctx context.Context, network, address string) (net.Conn, error)
}

// Network gives places to nodes.
type Network interface {
	// Place is the home of node n, from 0.
	Place(n int) (Place, error)

	// Close ends the network, once the nodes have ended. An error means that it
	// was not sound before, so that nothing can be said of the run.
	Close() error
}

// loopback gives each node an address of 127.0.0.0/8 of its own, so that every
// node has the standard ports, and none can clash with what else runs here.
type loopback struct{ prefix string }

// probes is how often NewLoopback looks for a free range.
const probes = 20

// NewLoopback finds a range of loopback addresses that nobody uses.
func NewLoopback() (Network, error) {
	var err error
	for range probes {
		l := loopback{fmt.Sprintf("127.%d.%d", 1+rand.IntN(254), rand.IntN(256))}
		if err = l.free(); err == nil {
			return l, nil
		}
	}
	return nil, fmt.Errorf("no free loopback address found in %d tries (they are there on Linux only): %w", probes, err)
}

func (l loopback) free() error {
	probe, err := net.Listen("tcp", net.JoinHostPort(l.prefix+".1", GossipPort))
	if err != nil {
		return err
	}
	return probe.Close()
}

func (l loopback) Place(n int) (Place, error) {
	host := fmt.Sprintf("%s.%d", l.prefix, n+1)
	return Place{Doors: host, Host: host, Dial: new(net.Dialer).DialContext}, nil
}

// Close has nothing to end.
func (l loopback) Close() error { return nil }
