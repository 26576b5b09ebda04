package driver

import (
	"log/slog"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ringlimit/ringlimit/limit"
	"github.com/ringlimit/ringlimit/membership"
	"github.com/ringlimit/ringlimit/owner"
	"github.com/ringlimit/ringlimit/owner/transfer"
	"github.com/ringlimit/ringlimit/ring"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// latency is how long a message takes.
const latency = time.Millisecond

// mesh is drivers that reach each other, in one bubble.
type mesh struct {
	t     *testing.T
	clock *limit.Clock

	mu     sync.Mutex
	nodes  map[membership.NodeID]*node
	silent map[membership.NodeID]bool // nothing comes from there, and nothing gets there
}

// node is a driver and what is around it.
type node struct {
	*Driver
	table  *owner.Table
	self   membership.Member
	seen   *events
	cancel func()
}

type events struct {
	mu               sync.Mutex
	in, out, stopped int
	longest          time.Duration   // that a partition took to come
	waits            []time.Duration // of checks
}

func (e *events) Acquired(took time.Duration) {
	e.count(&e.in)
	e.mu.Lock()
	e.longest = max(e.longest, took)
	e.mu.Unlock()
}

func (e *events) Waited(took time.Duration) {
	e.mu.Lock()
	e.waits = append(e.waits, took)
	e.mu.Unlock()
}

func (e *events) GaveAway() { e.count(&e.out) }
func (e *events) Fenced()   { e.count(&e.stopped) }

func (e *events) count(n *int) {
	e.mu.Lock()
	*n++
	e.mu.Unlock()
}

func newMesh(t *testing.T) *mesh {
	return &mesh{t: t, clock: limit.NewClock(), nodes: map[membership.NodeID]*node{}, silent: map[membership.NodeID]bool{}}
}

// add starts a node that knows nobody yet. A later one has a later boot.
func (m *mesh) add(id membership.NodeID) *node {
	m.mu.Lock()
	n := &node{
		self: membership.Member{ID: id, Boot: membership.BootID(len(m.nodes) + 1), Seq: 1, State: membership.Joining, Owner: true},
		seen: &events{},
	}
	m.nodes[id] = n
	m.mu.Unlock()
	n.table = owner.NewTable(owner.Config{Partitions: ring.Defaults().Partitions, Now: m.clock.Now})
	n.Driver = New(Config{
		Self:  n.self,
		Table: n.table,
		Ring:  ring.Defaults(),
		Now:   m.clock.Now,
		Send: func(to membership.NodeID, msg transfer.Message) {
			boot := n.self.Boot
			time.AfterFunc(latency, func() {
				if other := m.reach(id, to); other != nil {
					other.Receive(id, boot, msg)
				}
			})
		},
		Dial: func(membership.NodeID) {},
		Announce: func(state membership.State, seq uint64) {
			time.AfterFunc(latency, func() { m.announce(id, state, seq) })
		},
		Publish:  func(*ring.Ring) {},
		Observer: n.seen,
		Logger:   slog.New(slog.DiscardHandler),
	})
	done := make(chan struct{})
	ctx, cancel := contextWithCancel(m.t)
	go func() {
		defer close(done)
		n.Run(ctx)
	}()
	n.cancel = func() {
		cancel()
		<-done
	}
	return n
}

func (m *mesh) reach(from, to membership.NodeID) *node {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.silent[from] || m.silent[to] {
		return nil
	}
	return m.nodes[to]
}

func (m *mesh) mute(id membership.NodeID, mute bool) {
	m.mu.Lock()
	m.silent[id] = mute
	m.mu.Unlock()
}

// announce is gossip that reaches everybody at once.
func (m *mesh) announce(id membership.NodeID, state membership.State, seq uint64) {
	m.mu.Lock()
	if n := m.nodes[id]; n != nil {
		n.self.State, n.self.Seq = state, seq
	}
	m.mu.Unlock()
	m.gossip()
}

func (n *node) Serving() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.serving()
}

// gossip shows the members to all of them.
func (m *mesh) gossip() {
	m.mu.Lock()
	var members []membership.Member
	var all []*node
	for _, n := range m.nodes {
		members = append(members, n.self)
		all = append(all, n)
	}
	m.mu.Unlock()
	for _, n := range all {
		n.Members(membership.NewView(members))
	}
}

// join adds a node, and returns when it serves.
func (m *mesh) join(id membership.NodeID) *node {
	n := m.add(id)
	m.gossip()
	if len(m.nodes) > 1 {
		if err := n.Enter(m.t.Context()); err != nil {
			m.t.Fatal(err)
		}
	}
	if err := n.Serve(m.t.Context()); err != nil {
		m.t.Fatal(err)
	}
	time.Sleep(10 * latency)
	return n
}

func (m *mesh) stop() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, n := range m.nodes {
		n.cancel()
	}
	m.nodes = map[membership.NodeID]*node{}
}
