package peerrpc

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/ringlimit/ringlimit/forward"
	"github.com/ringlimit/ringlimit/forward/peerrpc/peerpb"
	"github.com/ringlimit/ringlimit/limit"
	"github.com/ringlimit/ringlimit/membership"
	"github.com/ringlimit/ringlimit/owner"
	"github.com/ringlimit/ringlimit/ring"
)

// All contenders carry the same records to the same judge on a real table, over
// loopback TCP, in one process: both ends share the cores, as two nodes on one
// machine would.

// asker makes one check and waits for its answer.
type asker func(name []byte) error

// BenchmarkChecks compares the stream with a plain unary gRPC call, as many
// callers see it. stream/unary-x is how many times as many checks a second the
// stream carries; tcp/stream-x is what bare TCP with the same batching would
// add: gRPC's share.
func BenchmarkChecks(b *testing.B) {
	for _, callers := range []int{1, 64, 256} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			rule := tokens(b, 1e9)
			stream, unary, tcp := streamAsker(b, rule), unaryAsker(b, rule), tcpAsker(b, rule)
			var s, u, t run
			// In turns, so that a noisy neighbour slows all of them.
			const turns = 20
			b.ResetTimer()
			for range turns {
				s.add(measure(b, callers, b.N/turns+1, stream))
				b.StopTimer()
				u.add(measure(b, callers, b.N/turns/8+1, unary))
				t.add(measure(b, callers, b.N/turns+1, tcp))
				b.StartTimer()
			}
			b.StopTimer()
			b.ReportMetric(s.rate(), "checks/s")
			b.ReportMetric(s.cpu(), "cpu-ns/check")
			b.ReportMetric(s.rate()/u.rate(), "stream/unary-x")
			b.ReportMetric(t.rate()/s.rate(), "tcp/stream-x")
			if callers == 1 {
				b.ReportMetric(s.p50(), "p50-ns")
				b.ReportMetric(u.p50(), "unary-p50-ns")
				b.ReportMetric(t.p50(), "tcp-p50-ns")
				b.ReportMetric(s.p50()/u.p50(), "p50-x")
			}
		})
	}
}

// run is what one contender did.
type run struct {
	n          int
	took, used time.Duration
	waits      []time.Duration // one caller only
}

func (r *run) add(o run) {
	r.n, r.took, r.used = r.n+o.n, r.took+o.took, r.used+o.used
	r.waits = append(r.waits, o.waits...)
}

func (r *run) rate() float64 { return float64(r.n) / r.took.Seconds() }
func (r *run) cpu() float64  { return float64(r.used) / float64(r.n) }

func (r *run) p50() float64 {
	slices.Sort(r.waits)
	return float64(r.waits[len(r.waits)/2])
}

func measure(b *testing.B, callers, n int, ask asker) run {
	r := run{n: n}
	if callers == 1 {
		r.waits = make([]time.Duration, 0, n)
	}
	var left atomic.Int64
	left.Store(int64(n))
	var wg sync.WaitGroup
	used, start := cpuTime(), time.Now()
	for c := range callers {
		wg.Go(func() {
			name := fmt.Appendf(nil, "default\x00global\x00customer-%08d", c)
			for left.Add(-1) >= 0 {
				asked := time.Now()
				if err := ask(name); err != nil {
					b.Error(err)
					return
				}
				if r.waits != nil {
					r.waits = append(r.waits, time.Since(asked))
				}
			}
		})
	}
	wg.Wait()
	r.took, r.used = time.Since(start), cpuTime()-used
	return r
}

// cpuTime is what the process has used.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func streamAsker(b *testing.B, rule *limit.Rule) asker {
	l := loopback(b)
	serve(b, serverConfig("owner", holding(testPartitions)), l)
	peer := newPool(b, nil).Peer(membership.Member{ID: "owner", Peer: l.Addr().String()})
	return func(name []byte) error {
		c := callOf(rule, string(name), 1)
		_, err := peer.Check(context.Background(), c, wall()+int64(5*time.Second))
		return err
	}
}

// benchJudge decides like the server.
func benchJudge(b *testing.B, rule *limit.Rule) func(records []byte) []byte {
	table := holding(testPartitions)
	table.Learn(rule)
	cfg := serverConfig("owner", table)
	judges := sync.Pool{New: func() any { return newJudge(&cfg) }}
	return func(records []byte) []byte {
		j := judges.Get().(*judge)
		defer judges.Put(j)
		answers, _, err := j.frame(asking(records), nil)
		if err != nil {
			b.Error(err)
		}
		return answers
	}
}

func benchRecord(buf []byte, rule *limit.Rule, name []byte) []byte {
	return appendRecord(buf, &record{rule: rule.ID(), cost: 1, name: name})
}

// unaryAsker calls a service of its own: a unary method that takes a frame.
func unaryAsker(b *testing.B, rule *limit.Rule) asker {
	decide := benchJudge(b, rule)
	handler := func(_ any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
		var ask peerpb.Frame
		if err := decode(&ask); err != nil {
			return nil, err
		}
		return &peerpb.Frame{Id: ask.Id, Records: decide(ask.Records)}, nil
	}
	server := grpc.NewServer()
	server.RegisterService(&grpc.ServiceDesc{
		ServiceName: "bench.Unary", HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{MethodName: "Check", Handler: handler}},
	}, struct{}{})
	l := loopback(b)
	go server.Serve(l)
	b.Cleanup(server.Stop)
	cc, err := grpc.NewClient("passthrough:///"+l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { cc.Close() })
	return func(name []byte) error {
		var reply peerpb.Frame
		if err := cc.Invoke(context.Background(), "/bench.Unary/Check",
			&peerpb.Frame{Id: 1, Records: benchRecord(nil, rule, name)}, &reply); err != nil {
			return err
		}
		var a answer
		_, err := cutAnswer(reply.Records, &a)
		return err
	}
}

// tcpAsker is the floor: the same batcher on a bare connection, frames with a
// length and an id before them.
func tcpAsker(b *testing.B, rule *limit.Rule) asker {
	l := loopback(b)
	b.Cleanup(func() { l.Close() })
	decide := benchJudge(b, rule)
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		eachFrame(conn, func(f *peerpb.Frame) {
			(&bareStream{conn: conn}).Send(&peerpb.Frame{Id: f.Id, Records: decide(f.Records)})
		})
	}()
	dialled, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { dialled.Close() })
	batch := newBatcher(wall, func(time.Duration) {})
	batch.start(&session{stream: &bareStream{conn: dialled}})
	go eachFrame(dialled, func(f *peerpb.Frame) { batch.answer(f) })
	c := &conn{batch: batch}
	return func(name []byte) error {
		r := record{rule: rule.ID(), cost: 1, name: name}
		return c.ask(context.Background(), &r, wall()+int64(5*time.Second)).err
	}
}

type bareStream struct {
	conn net.Conn
	buf  []byte
}

func (s *bareStream) Send(f *peerpb.Frame) error {
	s.buf = binary.LittleEndian.AppendUint32(s.buf[:0], uint32(len(f.Records)))
	s.buf = binary.LittleEndian.AppendUint64(s.buf, f.Id)
	_, err := s.conn.Write(append(s.buf, f.Records...))
	return err
}

func (s *bareStream) CloseSend() error { return nil }

func eachFrame(conn net.Conn, do func(*peerpb.Frame)) {
	in := bufio.NewReaderSize(conn, 64<<10)
	var head [12]byte
	for {
		if _, err := io.ReadFull(in, head[:]); err != nil {
			return
		}
		f := &peerpb.Frame{Id: binary.LittleEndian.Uint64(head[4:]), Records: make([]byte, binary.LittleEndian.Uint32(head[:]))}
		if _, err := io.ReadFull(in, f.Records); err != nil {
			return
		}
		do(f)
	}
}

// BenchmarkLate compares a stream on which every answer is put off, and given
// when an acknowledgement comes from another node, with one on which none is:
// what a rule of durability sync costs beyond the copies themselves. late/now-x is
// how many times as many checks a second it carries.
func BenchmarkLate(b *testing.B) {
	for _, callers := range []int{1, 64, 256} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			rule := tokens(b, 1e9)
			now, late := streamAsker(b, rule), lateAsker(b, rule)
			var n, l run
			const turns = 20
			b.ResetTimer()
			for range turns {
				l.add(measure(b, callers, b.N/turns+1, late))
				b.StopTimer()
				n.add(measure(b, callers, b.N/turns+1, now))
				b.StartTimer()
			}
			b.StopTimer()
			b.ReportMetric(l.rate(), "checks/s")
			b.ReportMetric(l.cpu(), "cpu-ns/check")
			b.ReportMetric(l.rate()/n.rate(), "late/now-x")
			if callers == 1 {
				b.ReportMetric(l.p50(), "p50-ns")
				b.ReportMetric(n.p50(), "now-p50-ns")
			}
		})
	}
}

func lateAsker(b *testing.B, rule *limit.Rule) asker {
	l := loopback(b)
	d := &acknowledged{table: holding(testPartitions), frames: make(chan acknowledgement, 8)}
	serve(b, deferringConfig("owner", d), l)
	var acks sync.WaitGroup
	acks.Go(d.acknowledge)
	b.Cleanup(func() { close(d.frames); acks.Wait() })
	peer := newPool(b, nil).Peer(membership.Member{ID: "owner", Peer: l.Addr().String()})
	return func(name []byte) error {
		_, err := peer.Check(context.Background(), callOf(rule, string(name), 1), wall()+int64(5*time.Second))
		return err
	}
}

// acknowledged answers all calls of a frame from another goroutine.
type acknowledged struct {
	table
	steady
	frames chan acknowledgement
}

type acknowledgement struct {
	late    owner.Late
	frame   uint64
	results []owner.Result
}

func (a *acknowledged) DecideFrame(now, _ int64, calls []owner.Call, results []owner.Result, late owner.Late, frame uint64) {
	a.table.DecideFrame(now, calls, results)
	decided := slices.Clone(results)
	for i := range results {
		results[i].Err = owner.ErrLater
	}
	a.frames <- acknowledgement{late, frame, decided}
}

func (a *acknowledged) acknowledge() {
	for ack := range a.frames {
		for i, r := range ack.results {
			ack.late.Answer(ack.frame, i, r)
		}
	}
}

// BenchmarkGroup is a request with two limits, as one caller sees it, beside one
// with one limit: one-owner-x when both limits are of one other node, two-owners-x
// when they are of two others. Over loopback both others compute on the caller's
// cores, so that two-owners-x is about two-owners-cpu-x; over a wire it is what a
// caller in a cluster sees.
func BenchmarkGroup(b *testing.B) {
	b.Run("loopback", func(b *testing.B) { benchGroup(b, nil) })
	b.Run("wire", func(b *testing.B) { benchGroup(b, dialWire) })
}

func benchGroup(b *testing.B, dial func(context.Context, string) (net.Conn, error)) {
	rule := tokens(b, 1e9)
	var peers []forward.Peer
	for _, id := range []membership.NodeID{"owner", "another"} {
		l := loopback(b)
		serve(b, serverConfig(id, holding(ringParams.Partitions)), l)
		peers = append(peers, newPool(b, dial).Peer(membership.Member{ID: id, Peer: l.Addr().String()}))
	}
	r, names := benchRouter(b, peers)
	decide := func(names ...[]byte) asker {
		calls, verdicts := make([]owner.Call, len(names)), make([]limit.Verdict, len(names))
		return func([]byte) error {
			for i := range names {
				calls[i].Charge = limit.Charge{Counter: names[i], Rule: rule, Cost: 1}
			}
			return r.DecideAll(context.Background(), calls, verdicts)
		}
	}
	var one, both, two run
	const turns = 20
	for range turns {
		one.add(measure(b, 1, b.N/turns+1, decide(names[0])))
		both.add(measure(b, 1, b.N/turns+1, decide(names[0], names[1])))
		two.add(measure(b, 1, b.N/turns+1, decide(names[0], names[2])))
	}
	b.ReportMetric(one.p50(), "one-p50-ns")
	b.ReportMetric(both.p50()/one.p50(), "one-owner-x")
	b.ReportMetric(two.p50()/one.p50(), "two-owners-x")
	b.ReportMetric(two.cpu()/one.cpu(), "two-owners-cpu-x")
}

// slowWire delivers what is written to a connection half a millisecond later, or as
// much more as the timers of the machine are late.
type slowWire struct {
	net.Conn
	sent   chan delayed
	closed chan struct{}
	once   sync.Once
}

type delayed struct {
	due  time.Time
	data []byte
}

func dialWire(ctx context.Context, addr string) (net.Conn, error) {
	c, err := dialTCP(ctx, addr)
	if err != nil {
		return nil, err
	}
	w := &slowWire{Conn: c, sent: make(chan delayed, 1024), closed: make(chan struct{})}
	go w.deliver()
	return w, nil
}

func (w *slowWire) Write(p []byte) (int, error) {
	select {
	case w.sent <- delayed{time.Now().Add(500 * time.Microsecond), slices.Clone(p)}:
		return len(p), nil
	case <-w.closed:
		return 0, net.ErrClosed
	}
}

func (w *slowWire) Close() error {
	w.once.Do(func() { close(w.closed) })
	return w.Conn.Close()
}

func (w *slowWire) deliver() {
	for {
		select {
		case <-w.closed:
			return
		case d := <-w.sent:
			time.Sleep(time.Until(d.due))
			if _, err := w.Conn.Write(d.data); err != nil {
				return
			}
		}
	}
}

var ringParams = ring.Params{Partitions: testPartitions, VirtualNodes: 20, Load: 1.25}

// deaf hears nothing.
type deaf struct{}

func (deaf) ForwardFailed(string)    {}
func (deaf) FallbackActive(bool)     {}
func (deaf) Forwarded(time.Duration) {}
func (deaf) Waited(time.Duration)    {}
func (deaf) RingMismatch()           {}

// benchRouter asks these peers, who own everything. Of the counters the first two
// are the first one's and the last is the other's.
func benchRouter(b *testing.B, peers []forward.Peer) (r *forward.Router, names [][]byte) {
	r = forward.NewRouter(forward.Config{
		Self: "asker", Local: tableLocal{holding(testPartitions)}, Fallback: holding(1), Seed: 1,
		Now: wall, Deadline: 5 * time.Second, Observer: deaf{}, Logger: silent(),
	})
	b.Cleanup(r.Close)
	rg, err := ring.New(ringParams, []membership.NodeID{"another", "owner"})
	if err != nil {
		b.Fatal(err)
	}
	r.Publish(rg, "asker", func(id membership.NodeID) forward.Peer {
		return peers[map[membership.NodeID]int{"owner": 0, "another": 1}[id]]
	})
	for _, want := range []membership.NodeID{"owner", "owner", "another"} {
		for i := len(names) * 1000; ; i++ {
			name := fmt.Appendf(nil, "counter-%d", i)
			if _, id, _ := r.Locate(name); id == want {
				names = append(names, name)
				break
			}
		}
	}
	return r, names
}
