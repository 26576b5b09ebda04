package peerrpc

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/ringlimit/ringlimit/forward/peerrpc/peerpb"
	"github.com/ringlimit/ringlimit/membership"
	"github.com/ringlimit/ringlimit/owner"
)

// rawStream opens a stream with this metadata, below the client.
func rawStream(t *testing.T, addr string, md metadata.MD, opts ...grpc.DialOption) grpc.BidiStreamingClient[peerpb.Frame, peerpb.Frame] {
	t.Helper()
	opts = append(opts, grpc.WithTransportCredentials(insecure.NewCredentials()))
	cc, err := grpc.NewClient("passthrough:///"+addr, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cc.Close() })
	stream, err := peerpb.NewPeerClient(cc).Checks(metadata.NewOutgoingContext(context.Background(), md))
	if err != nil {
		t.Fatal(err)
	}
	return stream
}

func greeting(changes ...string) metadata.MD {
	md := metadata.Pairs(versionKey, strconv.Itoa(version), nodeKey, `"owner"`, tokenKey, "secret",
		fromKey, `"asker"`, bootKey, "7")
	for i := 0; i < len(changes); i += 2 {
		md.Set(changes[i], changes[i+1])
	}
	return md
}

func TestHandshake(t *testing.T) {
	l := loopback(t)
	serve(t, serverConfig("owner", holding(testPartitions)), l)
	for _, c := range []struct {
		what string
		md   metadata.MD
		code codes.Code
		says string
	}{
		{"the same version", greeting(), codes.OK, ""},
		{"the next version", greeting(versionKey, strconv.Itoa(version+1)), codes.OK, ""},
		{"the first version", greeting(versionKey, strconv.Itoa(max(oldest, version-1))), codes.OK, ""},
		{"one before it", greeting(versionKey, strconv.Itoa(max(oldest, version-1)-1)), codes.FailedPrecondition, versionKey},
		{"a far version", greeting(versionKey, strconv.Itoa(version+2)), codes.FailedPrecondition, versionKey},
		{"no version", greeting(versionKey, ""), codes.FailedPrecondition, versionKey},
		{"another node", greeting(nodeKey, `"x"`), codes.FailedPrecondition, `"x" was meant, but this address is now "owner"`},
		{"a wrong token", greeting(tokenKey, "guess"), codes.Unauthenticated, "secret"},
		{"no name", greeting(fromKey, `""`), codes.FailedPrecondition, fromKey},
		{"a bare name", greeting(fromKey, "asker"), codes.FailedPrecondition, fromKey},
		{"a long name", greeting(fromKey, strconv.Quote(strings.Repeat("x", maxHint+1))), codes.FailedPrecondition, fromKey},
		{"no run", greeting(bootKey, ""), codes.FailedPrecondition, bootKey},
		{"no number of a run", greeting(bootKey, "xyz"), codes.FailedPrecondition, bootKey},
		{"nothing", metadata.MD{}, codes.Unauthenticated, tokenKey},
		{"two tokens", metadata.Join(greeting(), metadata.Pairs(tokenKey, "secret")), codes.Unauthenticated, tokenKey},
	} {
		stream := rawStream(t, l.Addr().String(), c.md)
		stream.CloseSend()
		_, err := stream.Recv()
		if err == io.EOF {
			err = nil
		}
		if status.Code(err) != c.code || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", c.what, err)
		}
	}
}

// A frame that is none ends its stream with a clear status, and nothing else.
func TestBadFramesEndTheStream(t *testing.T) {
	l := loopback(t)
	table, rule := holding(testPartitions), tokens(t, 5)
	table.Learn(rule)
	serve(t, serverConfig("owner", table), l)
	good := appendRecord(nil, &record{rule: rule.ID(), cost: 1, name: []byte("k")})
	for what, c := range map[string]struct {
		records []byte
		code    codes.Code
	}{
		"empty":         {nil, codes.InvalidArgument},
		"cut short":     {good[:len(good)-1], codes.InvalidArgument},
		"garbage":       {bytes.Repeat([]byte{0xff}, 100), codes.InvalidArgument},
		"absurd length": {append(bytes.Clone(good[:10]), 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f), codes.InvalidArgument},
		"too large":     {bytes.Repeat(appendRecord(nil, &record{rule: 1, cost: 1, name: make([]byte, maxName)}), maxFrame/maxName+1), codes.InvalidArgument},
	} {
		stream := rawStream(t, l.Addr().String(), greeting())
		if err := stream.Send(&peerpb.Frame{Id: 1, Records: c.records}); err != nil {
			t.Fatal(err)
		}
		if _, err := stream.Recv(); status.Code(err) != c.code {
			t.Errorf("%s: %v", what, err)
		}
	}
	for _, id := range []uint64{farewell, lateAnswers} {
		stream := rawStream(t, l.Addr().String(), greeting())
		if err := stream.Send(&peerpb.Frame{Id: id, Records: good}); err != nil {
			t.Fatal(err)
		}
		if _, err := stream.Recv(); status.Code(err) != codes.InvalidArgument {
			t.Errorf("a question with id %d: %v", id, err)
		}
	}
	stream := rawStream(t, l.Addr().String(), greeting())
	if err := stream.Send(&peerpb.Frame{Id: math.MaxUint64 - 1, Records: good}); err != nil {
		t.Fatal(err)
	}
	if f, err := stream.Recv(); err != nil || f.Id != math.MaxUint64-1 {
		t.Errorf("a good frame afterwards: %v, %v", f, err)
	}
}

// Whatever bytes arrive on the port, the server closes that connection and
// serves the others.
func TestGarbageOnThePort(t *testing.T) {
	l := loopback(t)
	serve(t, serverConfig("owner", holding(testPartitions)), l)
	preface := "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
	for _, garbage := range []string{
		"GET / HTTP/1.1\r\nHost: x\r\n\r\n", strings.Repeat("\x00", 100), strings.Repeat("\xff", 100),
		preface + "\xff\xff\xff\x00\x00\x00\x00\x00\x00", preface + strings.Repeat("\xff", 100),
	} {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(c, garbage); err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, c); err != nil && !strings.Contains(err.Error(), "reset") {
			t.Errorf("%q: %v", garbage[:8], err)
		}
		c.Close()
	}
	stream := rawStream(t, l.Addr().String(), greeting())
	stream.CloseSend()
	if _, err := stream.Recv(); err != io.EOF {
		t.Errorf("afterwards: %v", err)
	}
}

// A peer that does not go when it is told is cut off when ctx ends.
func TestStopIsHardInTheEnd(t *testing.T) {
	l := loopback(t)
	s := NewServer(serverConfig("owner", holding(testPartitions)))
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	stream := rawStream(t, l.Addr().String(), greeting())
	if _, err := stream.Header(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	stopped := make(chan struct{})
	go func() { s.Stop(ctx); close(stopped) }()
	if f, err := stream.Recv(); err != nil || f.Id != farewell {
		t.Fatalf("farewell: %v, %v", f, err)
	}
	cancel()
	<-stopped
	if _, err := stream.Recv(); err == nil || err == io.EOF {
		t.Errorf("the stream ended with %v", err)
	}
	if err := <-served; err != nil {
		t.Errorf("Serve: %v", err)
	}
}

// A peer that does not go when it is told holds Stop up for so long, though the
// context never ends.
func TestStopEndsByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		s := NewServer(serverConfig("owner", holding(testPartitions)))
		go s.Serve(n.listen("owner:1"))
		rawStream(t, "owner:1", greeting(), grpc.WithContextDialer(n.dial))
		synctest.Wait()
		start := time.Now()
		s.Stop(context.Background())
		if took := time.Since(start); took != farewellTime {
			t.Errorf("it took %v", took)
		}
	})
}

// Peers that do not read what they are sent keep the farewell from no other.
func TestStuckStreamsDelayNoFarewell(t *testing.T) {
	l, rule := loopback(t), tokens(t, 1)
	table := owner.NewTable(owner.Config{Partitions: testPartitions, Now: wall})
	table.Learn(rule)
	cfg, asked := serverConfig("owner", table), make(chan struct{}, 5*maxRecords)
	cfg.Decider = hinting(table, func(p int) (membership.NodeID, uint64) { asked <- struct{}{}; return longestHint(p) })
	s := NewServer(cfg)
	go s.Serve(l)
	var stuck []checks
	for range 4 {
		stuck = append(stuck, rawStream(t, l.Addr().String(), greeting()))
		for range 5 { // one reply fills the stream's window, and the next waits in Send
			if err := stuck[len(stuck)-1].Send(&peerpb.Frame{Id: 1, Records: manyRecords(rule)}); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 * maxRecords {
			<-asked
		}
	}
	fair := rawStream(t, l.Addr().String(), greeting())
	if _, err := fair.Header(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		if f, err := fair.Recv(); err != nil || f.Id != farewell {
			t.Errorf("the other stream hears %v, %v", f, err)
		}
		cancel()
	}()
	s.Stop(ctx)
	if ctx.Err() == nil {
		t.Error("it stopped though streams were stuck: the test tests nothing")
	}
}

// A stream whose handler has returned is gRPC's: no farewell is sent on it.
func TestNoFarewellAfterTheEnd(t *testing.T) {
	cfg := serverConfig("owner", holding(1))
	a := newAnswerer(&cfg, nil) // without a stream: to send would panic
	a.end()
	a.farewell()
}

// stranger is a stream that is refused.
type stranger struct {
	grpc.BidiStreamingServer[peerpb.Frame, peerpb.Frame]
	md metadata.MD
}

func (s stranger) Context() context.Context {
	return metadata.NewIncomingContext(context.Background(), s.md)
}

// Whoever reaches the port may be refused as often as he likes: the log stays
// short, and says what it leaves out.
func TestRefusalsAreLoggedInBounds(t *testing.T) {
	var now int64 = 1e18
	logs := &journal{}
	cfg := serverConfig("owner", holding(testPartitions))
	cfg.Now, cfg.Logger = func() int64 { return now }, logs.logger()
	s := NewServer(cfg)
	knock := func(times int) (lines []string) {
		for range times {
			if err := s.Checks(stranger{md: metadata.Pairs(fromKey, strings.Repeat("x", 8000))}); status.Code(err) != codes.Unauthenticated {
				t.Fatal(err)
			}
		}
		return slices.Collect(strings.Lines(logs.take()))
	}
	if lines := knock(100); len(lines) != refusalsPerSecond || len(lines[0]) > 500 || !strings.Contains(lines[0], "dropped=0") {
		t.Errorf("%d lines: %q", len(lines), lines)
	}
	now += int64(time.Second)
	if lines := knock(2); len(lines) != 2 || !strings.Contains(lines[0], fmt.Sprint("dropped=", 100-refusalsPerSecond)) || !strings.Contains(lines[1], "dropped=0") {
		t.Errorf("a second later: %q", lines)
	}
}

func TestServeReportsABrokenListener(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newNetwork().listen("x")
		l.Close()
		s := NewServer(serverConfig("owner", holding(testPartitions)))
		if err := s.Serve(l); err == nil {
			t.Error("no error")
		}
		s.Stop(context.Background())
		time.Sleep(time.Minute)
	})
}
