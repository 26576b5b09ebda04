package ringlimit

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/ringlimit/ringlimit/forward/peerrpc/peerpb"
	"github.com/ringlimit/ringlimit/limit"
)

// BenchmarkJoin lets a third node join two that have 1,000,000 live counters,
// under load, and reports
//
//	join-s         until the new node holds what it owns
//	copied-s       until every partition has a complete copy again
//	MB/s           of everything the nodes sent each other in copied-s
//	stream/ratio   copied-s over what a plain gRPC stream takes for as many bytes
//	calm-ms        p99.9 of the checks of a calm period
//	join-ms        … of the join and the copying after it
//	join-max-ms    the longest
//	unanswered     checks without an owner's verdict
func BenchmarkJoin(b *testing.B) {
	for b.Loop() {
		benchmarkJoin(b)
	}
}

const joinCounters = 1_000_000

func benchmarkJoin(b *testing.B) {
	set := parseRules(b, `
tiers:
  default:
    - {name: all, algorithm: token_bucket, limit: 1000, window: 8760h}
`)
	var sent atomic.Int64
	dial := func(ctx context.Context, address string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, "tcp", address)
		return countingConn{c, &sent}, err
	}
	counted := func(name string, others ...*Node) *Node {
		return onLoopback(b, Config{Name: name, Rules: set, dial: dial}, others...)
	}
	one := counted("one")
	two := counted("two", one)
	nodes := []*Node{one, two}
	fill(b, nodes)
	waitForCopies(b, nodes...)

	calm := probe(b, nodes, 3*time.Second)
	sent.Store(0)
	began := time.Now()
	ended, moving := make(chan struct{}), make(chan probed)
	go func() { moving <- probeUntil(b, nodes, ended) }()
	three := counted("three", one)
	joined := time.Since(began)
	waitForCopies(b, one, two, three)
	copied := time.Since(began)
	close(ended)
	during := <-moving
	bytes := sent.Load()

	b.ReportMetric(joined.Seconds(), "join-s")
	b.ReportMetric(copied.Seconds(), "copied-s")
	b.ReportMetric(float64(bytes)/1e6/copied.Seconds(), "MB/s")
	b.ReportMetric(copied.Seconds()/overGRPC(b, bytes).Seconds(), "stream/ratio")
	b.ReportMetric(calm.at(0.999), "calm-ms")
	b.ReportMetric(during.at(0.999), "join-ms")
	b.ReportMetric(during.at(1), "join-max-ms")
	b.ReportMetric(float64(during.unanswered), "unanswered")
	leaveAll(b, one, two, three)
}

// countingConn counts what is written.
type countingConn struct {
	net.Conn
	sent *atomic.Int64
}

func (c countingConn) Write(p []byte) (int, error) {
	c.sent.Add(int64(len(p)))
	return c.Conn.Write(p)
}

// fill makes every counter.
func fill(b *testing.B, nodes []*Node) {
	var next atomic.Int64
	var all sync.WaitGroup
	for c := range 64 {
		all.Go(func() {
			for i := next.Add(1); i <= joinCounters; i = next.Add(1) {
				if v, err := nodes[c%len(nodes)].Check(context.Background(), Request{Key: keyOf(i)}); err != nil || !v.Allowed {
					b.Errorf("filling: %+v, %v", v, err)
				}
			}
		})
	}
	all.Wait()
}

func keyOf(i int64) string { return fmt.Sprintf("customer-%d", i) }

// probed is how long checks took, in ms.
type probed struct {
	took       []float64
	unanswered int
}

func (p probed) at(q float64) float64 {
	slices.SortFunc(p.took, cmp.Compare)
	return p.took[min(len(p.took)-1, int(q*float64(len(p.took))))]
}

func probe(b *testing.B, nodes []*Node, d time.Duration) probed {
	ended := make(chan struct{})
	time.AfterFunc(d, func() { close(ended) })
	return probeUntil(b, nodes, ended)
}

// probeUntil asks steadily, about 2,000 times a second.
func probeUntil(b *testing.B, nodes []*Node, ended <-chan struct{}) probed {
	const clients, pause = 4, 2 * time.Millisecond
	var mu sync.Mutex
	var all sync.WaitGroup
	var sum probed
	for c := range clients {
		all.Go(func() {
			var p probed
			tick := time.NewTicker(pause)
			defer tick.Stop()
			for i := int64(c); ; i += 7919 {
				select {
				case <-ended:
					mu.Lock()
					sum.took, sum.unanswered = append(sum.took, p.took...), sum.unanswered+p.unanswered
					mu.Unlock()
					return
				case <-tick.C:
				}
				began := time.Now()
				v, err := nodes[i%int64(len(nodes))].Check(context.Background(), Request{Key: keyOf(1 + i%joinCounters)})
				p.took = append(p.took, float64(time.Since(began))/1e6)
				if err != nil || v.Source == limit.SourceFallback {
					p.unanswered++
				}
			}
		})
	}
	all.Wait()
	return sum
}

// plainStream takes frames and does nothing with them.
type plainStream struct{ peerpb.UnimplementedPeerServer }

func (plainStream) Checks(s grpc.BidiStreamingServer[peerpb.Frame, peerpb.Frame]) error {
	for {
		if _, err := s.Recv(); err != nil {
			return s.Send(&peerpb.Frame{})
		}
	}
}

// overGRPC is how long a plain gRPC stream takes for so many bytes, in messages
// of 32 KiB.
func overGRPC(b *testing.B, bytes int64) time.Duration {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	server := grpc.NewServer()
	defer server.Stop()
	peerpb.RegisterPeerServer(server, plainStream{})
	go func() { _ = server.Serve(l) }()
	client, err := grpc.NewClient("passthrough:///"+l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		b.Fatal(err)
	}
	defer client.Close()
	stream, err := peerpb.NewPeerClient(client).Checks(context.Background())
	if err != nil {
		b.Fatal(err)
	}
	began, piece := time.Now(), &peerpb.Frame{Records: make([]byte, 32<<10)}
	for left := bytes; left > 0; left -= int64(len(piece.Records)) {
		if err := stream.Send(piece); err != nil {
			b.Fatal(err)
		}
	}
	if err := stream.CloseSend(); err != nil {
		b.Fatal(err)
	}
	if _, err := stream.Recv(); err != nil { // all has arrived
		b.Fatal(err)
	}
	return time.Since(began)
}
