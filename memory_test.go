package ringlimit

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ringlimit/ringlimit/membership/gossip"
	"github.com/ringlimit/ringlimit/membership/gossip/memnet"
	"github.com/ringlimit/ringlimit/rules"
)

// memory is a network for whole nodes in one bubble: packets and streams of
// the gossip by memnet, streams of the peer port by pipes. Node i has the
// address 10.0.0.(i+1).
type memory struct {
	gossip *memnet.Network

	mu    sync.Mutex
	peers map[string]*pipeListener
	down  map[string]bool // hosts that nobody reaches
	dead  map[string]bool // hosts that refuse connections
	wires map[*wire]bool  // that are open
}

func newMemory() *memory {
	return &memory{
		gossip: memnet.New(), peers: map[string]*pipeListener{},
		down: map[string]bool{}, dead: map[string]bool{}, wires: map[*wire]bool{},
	}
}

func host(i int) string { return fmt.Sprintf("10.0.0.%d", i+1) }

// config is node i's: named node-i, joining node 0 unless it is that.
func (m *memory) config(t *testing.T, i int, set *rules.Set) Config {
	t.Helper()
	cfg := Config{
		Name:   fmt.Sprintf("node-%d", i),
		Rules:  set,
		Peer:   host(i) + ":7702",
		Gossip: host(i) + ":7703",
		Secret: []byte("a secret of the cluster"),
		listen: m.listen,
		dial:   func(ctx context.Context, to string) (net.Conn, error) { return m.dial(ctx, host(i), to) },
		tuneGossip: func(g *gossip.Config) {
			transport, err := m.gossip.Listen(g.Bind)
			if err != nil {
				t.Fatal(err)
			}
			g.Transport = transport
		},
	}
	if i > 0 {
		cfg.Join = []string{host(0) + ":7703"}
	}
	return cfg
}

// kill is what others see of a process that ends without a word: its
// connections break, and new ones are refused. The node itself goes on for
// nobody, until it is closed.
func (m *memory) kill(i int) {
	m.mu.Lock()
	m.dead[host(i)] = true
	var broken []*wire
	for w := range m.wires {
		if hostOf(w.from) == host(i) || hostOf(w.to) == host(i) {
			broken = append(broken, w)
		}
	}
	m.mu.Unlock()
	for _, w := range broken {
		w.Close()
	}
	m.gossip.Cut(func(from, to string) bool { return m.cut(from, to) })
}

// revive lets another process take the host.
func (m *memory) revive(i int) {
	m.mu.Lock()
	delete(m.dead, host(i))
	m.mu.Unlock()
	m.gossip.Cut(func(from, to string) bool { return m.cut(from, to) })
}

// isolate cuts a host off, in both directions; heal undoes it.
func (m *memory) isolate(i int) { m.setDown(host(i), true) }
func (m *memory) heal(i int)    { m.setDown(host(i), false) }

func (m *memory) setDown(host string, down bool) {
	m.mu.Lock()
	m.down[host] = down
	m.mu.Unlock()
	m.gossip.Cut(func(from, to string) bool { return m.cut(from, to) })
}

func (m *memory) cut(from, to string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	f, t := hostOf(from), hostOf(to)
	return m.down[f] || m.down[t] || m.dead[f] || m.dead[t]
}

func hostOf(address string) string {
	if host, _, err := net.SplitHostPort(address); err == nil {
		return host
	}
	return address
}

func (m *memory) listen(_, address string) (net.Listener, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.peers[address] != nil {
		return nil, fmt.Errorf("listen %s: address already in use", address)
	}
	l := &pipeListener{address: address, net: m, conns: make(chan net.Conn), done: make(chan struct{})}
	m.peers[address] = l
	return l, nil
}

func (m *memory) dial(ctx context.Context, from, to string) (net.Conn, error) {
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	m.mu.Lock()
	l, dead := m.peers[to], m.dead[hostOf(to)]
	m.mu.Unlock()
	if l == nil || dead {
		return nil, refused
	}
	if m.cut(from, to) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	near, far := net.Pipe()
	ours, theirs := m.wire(near, from, to), m.wire(far, to, from)
	select {
	case l.conns <- theirs:
		return ours, nil
	case <-l.done:
	case <-ctx.Done():
	}
	ours.Close()
	theirs.Close()
	return nil, cmp.Or(ctx.Err(), error(refused))
}

func (m *memory) wire(c net.Conn, from, to string) *wire {
	w := &wire{Conn: c, net: m, from: from, to: to, done: make(chan struct{}), sent: make(chan struct{}), written: make(chan struct{}, 1)}
	go w.pump()
	m.mu.Lock()
	m.wires[w] = true
	m.mu.Unlock()
	return w
}

// pipeListener accepts what memory.dial hands it.
type pipeListener struct {
	address string
	net     *memory
	conns   chan net.Conn
	done    chan struct{}
	once    sync.Once
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.once.Do(func() {
		close(l.done)
		l.net.mu.Lock()
		defer l.net.mu.Unlock()
		delete(l.net.peers, l.address)
	})
	return nil
}

func (l *pipeListener) Addr() net.Addr {
	return net.TCPAddrFromAddrPort(mustAddrPort(l.address))
}

// wire is one end of a stream. Like a kernel it takes what is written at once, and
// keeps it while the network is cut, when nothing is acknowledged.
type wire struct {
	net.Conn
	net      *memory
	from, to string
	done     chan struct{}
	once     sync.Once
	sent     chan struct{} // the pump has ended

	mu      sync.Mutex
	unsent  []byte
	written chan struct{} // signals that there is something unsent
}

func (w *wire) Write(b []byte) (int, error) {
	select {
	case <-w.done:
		return 0, net.ErrClosed
	default:
	}
	w.mu.Lock()
	w.unsent = append(w.unsent, b...)
	w.mu.Unlock()
	select {
	case w.written <- struct{}{}:
	default:
	}
	return len(b), nil
}

// pump brings what was written to the other end. What is left at Close it brings
// unless the network is cut.
func (w *wire) pump() {
	defer close(w.sent)
	for closing := false; !closing; {
		select {
		case <-w.written:
		case <-w.done:
			closing = true
			_ = w.Conn.SetWriteDeadline(time.Now().Add(time.Second)) // the other may not read any more
		}
		for w.net.cut(w.from, w.to) {
			select {
			case <-time.After(10 * time.Millisecond):
			case <-w.done:
				return
			}
		}
		if b := w.take(); len(b) > 0 {
			if _, err := w.Conn.Write(b); err != nil {
				_ = w.Conn.Close()
				return
			}
		}
	}
}

func (w *wire) take() []byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	b := w.unsent
	w.unsent = nil
	return b
}

// SetDeadline is that of reading: writing never waits.
func (w *wire) SetDeadline(t time.Time) error { return w.Conn.SetReadDeadline(t) }

func (w *wire) SetWriteDeadline(time.Time) error { return nil }

func (w *wire) Close() error {
	w.once.Do(func() {
		close(w.done)
		_ = w.Conn.SetReadDeadline(time.Now()) // who reads is told
		w.net.mu.Lock()
		delete(w.net.wires, w)
		w.net.mu.Unlock()
		go func() {
			<-w.sent
			_ = w.Conn.Close()
		}()
	})
	return nil
}
