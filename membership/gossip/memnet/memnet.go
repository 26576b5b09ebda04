// Package memnet is a packet network in memory for tests: many gossiping nodes
// in one synctest bubble, with cut links and paused hosts. Packets are buffered
// and dropped when nobody reads, as UDP drops them; streams are pipes. Nothing
// in it waits on a mutex for long, so that a bubble's clock can advance.
package memnet

import (
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"
)

// Network connects the hosts that listen on it.
type Network struct {
	mu    sync.Mutex
	hosts map[string]*Host
	cut   func(from, to string) bool
}

// New makes a network without hosts.
func New() *Network {
	return &Network{hosts: map[string]*Host{}, cut: func(string, string) bool { return false }}
}

// Listen adds a host at an ip:port. It is a memberlist.Transport.
func (n *Network) Listen(addr string) (*Host, error) {
	ap, err := netip.ParseAddrPort(addr)
	if err != nil {
		return nil, fmt.Errorf("memnet: %w", err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.hosts[addr] != nil {
		return nil, fmt.Errorf("memnet: listen %s: address already in use", addr)
	}
	h := &Host{
		net: n, addr: ap,
		wire: make(chan *memberlist.Packet, buffered), packets: make(chan *memberlist.Packet),
		streams: make(chan net.Conn, buffered), done: make(chan struct{}), running: closed(),
	}
	n.hosts[addr] = h
	h.pump.Go(h.deliver)
	return h, nil
}

// Cut drops packets and refuses new streams wherever f says so, in that
// direction only; nil mends the network.
func (n *Network) Cut(f func(from, to string) bool) {
	if f == nil {
		f = func(string, string) bool { return false }
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cut = f
}

// Send puts a packet on the wire as if from had sent it; from need not exist.
func (n *Network) Send(from, to string, b []byte) {
	h := n.reach(from, to)
	if h == nil {
		return
	}
	p := &memberlist.Packet{Buf: append([]byte(nil), b...), From: address(from), Timestamp: time.Now()}
	select {
	case h.wire <- p:
	default: // a full socket buffer
	}
}

// Dial opens a stream as if from had; from need not exist.
func (n *Network) Dial(from, to string, timeout time.Duration) (net.Conn, error) {
	h := n.reach(from, to)
	if h == nil || h.paused() {
		time.Sleep(timeout)
		return nil, fmt.Errorf("dial %s: i/o timeout", to)
	}
	near, far := net.Pipe()
	// A pipe has no buffer: without a deadline a write that nobody reads, which
	// a kernel would take, waits for ever.
	if err := near.SetDeadline(time.Now().Add(timeout)); err != nil {
		return nil, err
	}
	select {
	case h.streams <- far:
		return near, nil
	default:
		return nil, fmt.Errorf("dial %s: connection refused", to)
	}
}

func (n *Network) reach(from, to string) *Host {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cut(from, to) {
		return nil
	}
	return n.hosts[to]
}

func (n *Network) remove(h *Host) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.hosts[h.addr.String()] == h {
		delete(n.hosts, h.addr.String())
	}
}

// address is a net.Addr of the ip:port it spells.
type address string

func (address) Network() string  { return "mem" }
func (a address) String() string { return string(a) }

func closed() chan struct{} {
	ch := make(chan struct{})
	close(ch)
	return ch
}
