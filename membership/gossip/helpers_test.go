package gossip

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ringlimit/ringlimit/membership"
	"github.com/ringlimit/ringlimit/membership/gossip/memnet"
)

// world is a bubble's network and the nodes in it.
type world struct {
	t     *testing.T
	net   *memnet.Network
	nodes []*node
}

// node is a running Gossip with what it last said.
type node struct {
	*Gossip
	host *memnet.Host
	log  *logBuffer

	mu   sync.Mutex
	view membership.View
	seen []membership.View
}

// bubble runs f in virtual time and ends every node it started.
func bubble(t *testing.T, f func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, net: memnet.New()}
		defer w.end()
		f(w)
	})
}

func (w *world) end() {
	for _, n := range w.nodes {
		if err := n.Close(); err != nil {
			w.t.Error(err)
		}
	}
	// memberlist's last timers, such as one for the ack of a ping. Whatever is
	// still there after them fails the bubble.
	time.Sleep(5 * time.Second)
}

func addr(i int) string { return fmt.Sprintf("10.0.0.%d:7703", i) }

func member(id string) membership.Member {
	return membership.Member{
		ID: membership.NodeID(id), Boot: membership.BootID(time.Now().UnixNano()),
		State: membership.Joining, Owner: true, Peer: id + ":7702", HTTP: id + ":7700", Ring: 7,
	}
}

// start runs node i at its usual address, changed as told; it does not join.
func (w *world) start(i int, changes ...func(*Config)) *node {
	w.t.Helper()
	return w.startAt(addr(i), fmt.Sprintf("n%d", i), changes...)
}

func (w *world) startAt(at, id string, changes ...func(*Config)) *node {
	w.t.Helper()
	host, err := w.net.Listen(at)
	if err != nil {
		w.t.Fatal(err)
	}
	n := &node{host: host, log: &logBuffer{}}
	cfg := Config{Self: member(id), Transport: host, Join: []string{addr(1)}, Logger: slog.New(slog.NewTextHandler(n.log, nil))}
	for _, change := range changes {
		change(&cfg)
	}
	if n.Gossip, err = Start(cfg); err != nil {
		w.t.Fatal(err)
	}
	w.nodes = append(w.nodes, n)
	n.spawn(n.watch)
	return n
}

func (n *node) watch() {
	for {
		select {
		case v := <-n.Views():
			n.mu.Lock()
			n.view = v
			n.seen = append(n.seen, v)
			n.mu.Unlock()
		case <-n.ctx.Done():
			return
		}
	}
}

// cluster starts n nodes that have joined and serve.
func (w *world) cluster(n int) []*node {
	w.t.Helper()
	var nodes []*node
	for i := 1; i <= n; i++ {
		g := w.start(i)
		nodes = append(nodes, g)
		if i > 1 {
			w.join(g)
		}
		if err := g.Announce(membership.Serving, 0); err != nil {
			w.t.Fatal(err)
		}
	}
	for _, g := range nodes {
		w.eventually(2*time.Second, "everyone serves", func() bool { return len(g.latest().Owners()) == n })
	}
	return nodes
}

func (w *world) join(g *node) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := g.Join(ctx); err != nil {
		w.t.Fatal(err)
	}
}

// kill takes a node off the network as SIGKILL does: not a word.
func (w *world) kill(n *node) {
	w.t.Helper()
	if err := n.host.Shutdown(); err != nil {
		w.t.Fatal(err)
	}
	if err := n.Close(); err != nil {
		w.t.Fatal(err)
	}
	w.nodes = slices.DeleteFunc(w.nodes, func(other *node) bool { return other == n })
}

// eventually waits in virtual time and says how long it took.
func (w *world) eventually(within time.Duration, what string, ok func() bool) time.Duration {
	w.t.Helper()
	start := time.Now()
	for !ok() {
		if time.Since(start) > within {
			w.t.Fatalf("not within %v: %s\n%s", within, what, w)
		}
		time.Sleep(10 * time.Millisecond)
	}
	return time.Since(start)
}

func (w *world) String() string {
	var b strings.Builder
	for _, n := range w.nodes {
		fmt.Fprintf(&b, "%s sees %v\n", n.name(), n.names())
	}
	return b.String()
}

func (n *node) name() string { return string(n.cfg.Self.ID) }

func (n *node) latest() membership.View {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.view
}

func (n *node) history() []membership.View {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.seen)
}

func (n *node) names() []string {
	var names []string
	for _, m := range n.latest().Members {
		names = append(names, string(m.ID))
	}
	return names
}

func (n *node) sees(ids ...string) bool { return slices.Equal(n.names(), ids) }

func all(nodes []*node, ok func(*node) bool) bool {
	for _, n := range nodes {
		if !ok(n) {
			return false
		}
	}
	return true
}

// logBuffer is a log that tests read while nodes write to it.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// errors is the lines at level ERROR.
func (l *logBuffer) errors() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []string
	for line := range strings.Lines(l.b.String()) {
		if strings.Contains(line, "level=ERROR") {
			found = append(found, line)
		}
	}
	return strings.Join(found, "")
}

func (l *logBuffer) all() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
