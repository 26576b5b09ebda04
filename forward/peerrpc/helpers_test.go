package peerrpc

import (
	"context"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/test/bufconn"

	"github.com/ringlimit/ringlimit/forward"
	"github.com/ringlimit/ringlimit/limit"
	"github.com/ringlimit/ringlimit/membership"
	"github.com/ringlimit/ringlimit/owner"
	"github.com/ringlimit/ringlimit/owner/transfer"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func silent() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

// journal is a log that several goroutines write.
type journal struct {
	mu   sync.Mutex
	text strings.Builder
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

// take returns what was written since the last call.
func (j *journal) take() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	defer j.text.Reset()
	return j.text.String()
}

func (j *journal) logger() *slog.Logger { return slog.New(slog.NewTextHandler(j, nil)) }

func wall() int64 { return time.Now().UnixNano() }

// tokens is a token bucket of so many a minute.
func tokens(t testing.TB, n int64) *limit.Rule {
	t.Helper()
	r, err := limit.NewRule(limit.Spec{Algorithm: limit.TokenBucket, Limit: n, Window: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// holding is a table that holds all its partitions.
func holding(partitions int) *owner.Table {
	t := owner.NewTable(owner.Config{Partitions: partitions, Now: wall})
	for p := range partitions {
		t.SetPhase(p, owner.Holding)
	}
	return t
}

const testPartitions = 64

func partitionOf(hash uint64) int { return int(hash % testPartitions) }

func callOf(rule *limit.Rule, name string, cost int64) *owner.Call {
	id := owner.Seed(1).ID([]byte(name))
	return &owner.Call{ID: id, Partition: partitionOf(id.Hi),
		Charge: limit.Charge{Counter: []byte(name), Rule: rule, Cost: cost}}
}

// table is what the tests decide with: an *owner.Table, or something instead.
type table interface {
	DecideFrame(now int64, calls []owner.Call, results []owner.Result)
	Rule(id limit.RuleID) *limit.Rule
}

// steady is the part of a Decider that a node has which stands still at most
// between the tests' own calls of Add.
type steady struct{ atomic.Uint64 }

func (s *steady) Era() uint64  { return s.Load() }
func (*steady) NotMine() error { return &transfer.NotMine{Ring: 7} }

// decider makes a Decider of a table. It puts nothing off.
type decider struct {
	table
	steady
	hint func(partition int) (membership.NodeID, uint64)
}

func (d *decider) DecideFrame(now, _ int64, calls []owner.Call, results []owner.Result, _ owner.Late, _ uint64) {
	d.table.DecideFrame(now, calls, results)
	for i := range results {
		if results[i].Err == owner.ErrNotHolder {
			id, ring := d.hint(calls[i].Partition)
			results[i].Err = &transfer.NotMine{Hint: id, Ring: ring}
		}
	}
}

// hinting is a Decider that says of what it does not hold what hint does.
func hinting(t table, hint func(int) (membership.NodeID, uint64)) Decider {
	return &decider{table: t, hint: hint}
}

// serverConfig is one that needs only a table.
func serverConfig(id membership.NodeID, t table) ServerConfig {
	return ServerConfig{
		Self: id, Token: "secret", Partitions: testPartitions, Seed: 1, Partition: partitionOf,
		Decider: hinting(t, func(int) (membership.NodeID, uint64) { return "other", 7 }),
		Receive: func(membership.NodeID, membership.BootID, transfer.Message) {},
		Now:     wall,
		Logger:  silent(),
	}
}

// serve runs a server until the test ends or stop is called.
func serve(t testing.TB, cfg ServerConfig, l net.Listener) (stop func()) {
	t.Helper()
	s := NewServer(cfg)
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	stop = sync.OnceFunc(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		s.Stop(ctx)
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

func loopback(t testing.TB) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func poolConfig(dial func(context.Context, string) (net.Conn, error)) PoolConfig {
	return PoolConfig{
		Self: "asker", Boot: 7, Token: "secret", Now: wall, Dial: dial,
		Refused: func(membership.NodeID) {}, Logger: silent(),
	}
}

func newPool(t testing.TB, dial func(context.Context, string) (net.Conn, error)) *Pool {
	t.Helper()
	p := NewPool(poolConfig(dial))
	t.Cleanup(func() { p.Close() })
	return p
}

// within is a deadline.
func within(d time.Duration) int64 { return wall() + int64(d) }

// scripted is a table that does as it is told.
type scripted struct {
	*owner.Table
	decide func(calls []owner.Call, results []owner.Result)
}

func (s *scripted) DecideFrame(_ int64, calls []owner.Call, results []owner.Result) {
	s.decide(calls, results)
}

// network is where in-memory listeners are found by their address.
type network struct {
	mu        sync.Mutex
	listeners map[string]*bufconn.Listener
	conns     []net.Conn
}

func newNetwork() *network { return &network{listeners: map[string]*bufconn.Listener{}} }

func (n *network) listen(addr string) net.Listener {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.listeners[addr] = bufconn.Listen(1 << 20)
	return n.listeners[addr]
}

// dial fails at once when nobody listens, like a refused connection.
func (n *network) dial(ctx context.Context, addr string) (net.Conn, error) {
	n.mu.Lock()
	l := n.listeners[addr]
	n.mu.Unlock()
	if l == nil {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	}
	c, err := l.DialContext(ctx)
	if err == nil {
		n.mu.Lock()
		n.conns = append(n.conns, c)
		n.mu.Unlock()
	}
	return c, err
}

// cut breaks all connections.
func (n *network) cut() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range n.conns {
		c.Close()
	}
	n.conns = nil
}

func (n *network) forget(addr string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.listeners, addr)
}

// pair is an asker and an owner with this table, in a bubble.
type pair struct {
	net  *network
	pool *Pool
	peer forward.Peer
	stop func()
}

var ownerMember = membership.Member{ID: "owner", Boot: 1, Peer: "owner:1"}

func newPair(t testing.TB, owner table) *pair { return newPairWith(t, serverConfig("owner", owner)) }

func newPairWith(t testing.TB, cfg ServerConfig) *pair {
	n := newNetwork()
	p := &pair{net: n, stop: serve(t, cfg, n.listen("owner:1"))}
	p.pool = newPool(t, n.dial)
	p.peer = p.pool.Peer(ownerMember)
	return p
}

func (p *pair) check(rule *limit.Rule, name string, cost int64, d time.Duration) (limit.Verdict, error) {
	return p.peer.Check(context.Background(), callOf(rule, name, cost), within(d))
}

// rawCodec sends bytes as they are, and messages as usual.
type rawCodec struct{ encoding.CodecV2 }

type rawBytes []byte

func (rawCodec) Name() string { return "proto" }

func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	if raw, ok := v.(rawBytes); ok {
		return mem.BufferSlice{mem.SliceBuffer(raw)}, nil
	}
	return encoding.GetCodecV2("proto").Marshal(v)
}

func (rawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	return encoding.GetCodecV2("proto").Unmarshal(data, v)
}
