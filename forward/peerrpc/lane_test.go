package peerrpc

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/ringlimit/ringlimit/forward"
	"github.com/ringlimit/ringlimit/forward/peerrpc/peerpb"
	"github.com/ringlimit/ringlimit/owner"
)

// tape is a connection that keeps what is written, to be read again.
type tape struct {
	net.Conn
	bytes.Buffer
}

func (t *tape) Write(b []byte) (int, error) { return t.Buffer.Write(b) }
func (t *tape) Read(b []byte) (int, error)  { return t.Buffer.Read(b) }

// What is sent on a lane is received, long frames among short ones.
func TestLawLaneCarriesFrames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var conn tape
		out, in := &sendingLane{conn: &conn}, newReceivingLane(&conn, maxReply)
		sent := rapid.SliceOfN(drawFrame(), 1, 20).Draw(t, "frames")
		if long := rapid.IntRange(-1, len(sent)-1).Draw(t, "long"); long >= 0 {
			sent[long].Records = make([]byte, rapid.IntRange(laneBuffer-64, maxReply-headBytes).Draw(t, "bytes"))
		}
		for _, f := range sent {
			if err := out.Send(f); err != nil {
				t.Fatal(err)
			}
		}
		var got peerpb.Frame
		for i, want := range sent {
			if err := in.Recv(&got); err != nil || got.Id != want.Id || got.Era != want.Era || got.PatienceUs != want.PatienceUs || !bytes.Equal(got.Records, want.Records) {
				t.Fatalf("frame %d of %d: %v; %d bytes of records, want %d", i, len(sent), err, len(got.Records), len(want.Records))
			}
		}
		if err := in.Recv(&got); err != io.EOF {
			t.Fatalf("after the last one: %v", err)
		}
	})
}

// Whatever comes on a lane, no more is taken for a frame than may be one.
func FuzzLane(f *testing.F) {
	var conn tape
	out := &sendingLane{conn: &conn}
	for _, frame := range []*peerpb.Frame{{}, {Id: 1, Records: []byte("abc"), PatienceUs: 5, Era: 9}} {
		_ = out.Send(frame)
		f.Add(bytes.Clone(conn.Bytes()))
	}
	f.Add(binary.LittleEndian.AppendUint32(nil, maxFrame+headBytes+1))
	f.Add(binary.LittleEndian.AppendUint32(nil, maxFrame))
	f.Fuzz(func(t *testing.T, sent []byte) {
		conn := new(tape)
		conn.Buffer.Write(sent)
		in := newReceivingLane(conn, maxFrame+headBytes)
		var frame peerpb.Frame
		for n := 0; ; n++ {
			err := in.Recv(&frame)
			switch {
			case err == nil && len(frame.Records) > maxFrame+headBytes:
				t.Fatalf("%d bytes of records", len(frame.Records))
			case err == nil && n > len(sent)/laneHead:
				t.Fatal("there are more frames than lengths")
			case err != nil && !errors.Is(err, errBadFrame) && err != io.EOF && err != io.ErrUnexpectedEOF:
				t.Fatal(err)
			}
			if err != nil {
				return
			}
		}
	})
}

// dialled opens a lane by hand.
func dialled(t *testing.T, addr string, begin string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if _, err := io.WriteString(conn, begin); err != nil {
		t.Fatal(err)
	}
	return conn
}

// isClosed waits for the other to end the connection, and says whether it said
// something before.
func isClosed(conn net.Conn) (silent bool) {
	_ = conn.SetReadDeadline(time.Now().Add(20 * time.Second))
	said, err := io.ReadAll(conn)
	var late net.Error
	return len(said) == 0 && !(errors.As(err, &late) && late.Timeout())
}

// Nobody but who was admitted gets to an owner's ear.
func TestLaneOfAStranger(t *testing.T) {
	l := loopback(t)
	serve(t, serverConfig("owner", holding(testPartitions)), l)
	addr := l.Addr().String()
	stranger := newTicket()
	for what, begin := range map[string]string{
		"a ticket that nobody waits for": string(greetingOf(stranger)),
		"a greeting cut short":           laneGreeting[:5],
		"a ticket cut short":             string(greetingOf(stranger)[:len(laneGreeting)+3]),
		"nothing":                        "",
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			if !isClosed(dialled(t, addr, begin)) {
				t.Error("it stays")
			}
		})
	}
	t.Run("a ticket of one who is not admitted", func(t *testing.T) {
		stream := rawStream(t, addr, greeting(tokenKey, "guess", laneKey, stranger.String()))
		if _, err := stream.Recv(); status.Code(err) != codes.Unauthenticated {
			t.Fatal(err)
		}
		if !isClosed(dialled(t, addr, string(greetingOf(stranger)))) {
			t.Error("it stays")
		}
	})
}

// welcomedOn reads the owner's first words.
func welcomedOn(t *testing.T, lane net.Conn) {
	t.Helper()
	if err := awaitLaneWelcome(lane); err != nil {
		t.Fatal(err)
	}
}

// opened is a stream that waits for its lane.
func opened(t *testing.T, addr string) (checks, ticket) {
	t.Helper()
	with := newTicket()
	stream := rawStream(t, addr, greeting(laneKey, with.String()))
	if welcome, err := stream.Header(); err != nil || !offersLane(welcome) {
		t.Fatalf("the welcome is %v, %v", welcome, err)
	}
	return stream, with
}

// A ticket is good for one lane, and only while its stream stands.
func TestTicketIsUsedUp(t *testing.T) {
	l := loopback(t)
	table, rule := holding(testPartitions), tokens(t, 5)
	table.Learn(rule)
	serve(t, serverConfig("owner", table), l)
	addr := l.Addr().String()
	stream, with := opened(t, addr)
	first := dialled(t, addr, string(greetingOf(with)))
	welcomedOn(t, first)
	out, in := &sendingLane{conn: first}, newReceivingLane(first, maxReply)
	ask := &peerpb.Frame{Id: 1, PatienceUs: 1e6, Records: appendRecord(nil, &record{rule: rule.ID(), cost: 1, name: []byte("k")})}
	if err := out.Send(ask); err != nil {
		t.Fatal(err)
	}
	var answer peerpb.Frame
	if err := in.Recv(&answer); err != nil || answer.Id != 1 {
		t.Fatalf("answered %v, %v", &answer, err)
	}
	if !isClosed(dialled(t, addr, string(greetingOf(with)))) {
		t.Error("a second lane stays")
	}
	stream.CloseSend()
	if _, err := stream.Recv(); err != io.EOF {
		t.Errorf("the stream ended with %v", err)
	}
	if !isClosed(first) {
		t.Error("the lane outlives its stream")
	}
	if !isClosed(dialled(t, addr, string(greetingOf(with)))) {
		t.Error("a lane after the stream stays")
	}
}

// A bad frame ends the stream, and a frame beside the lane is one.
func TestBadFramesEndTheLane(t *testing.T) {
	l := loopback(t)
	var log journal
	cfg := serverConfig("owner", holding(testPartitions))
	cfg.Logger = log.logger()
	serve(t, cfg, l)
	addr := l.Addr().String()
	good := (&record{rule: 1, cost: 1, name: []byte("k")})
	for what, send := range map[string]func(checks, net.Conn){
		"too long": func(_ checks, lane net.Conn) {
			_, _ = lane.Write(binary.LittleEndian.AppendUint32(nil, maxFrame+headBytes+1))
		},
		"no protobuf":   func(_ checks, lane net.Conn) { _, _ = lane.Write([]byte{2, 0, 0, 0, 0xff, 0xff}) },
		"no records":    func(_ checks, lane net.Conn) { _ = (&sendingLane{conn: lane}).Send(&peerpb.Frame{Id: 1}) },
		"beside a lane": func(s checks, _ net.Conn) { _ = s.Send(&peerpb.Frame{Id: 1, Records: appendRecord(nil, good)}) },
	} {
		stream, with := opened(t, addr)
		lane := dialled(t, addr, string(greetingOf(with)))
		welcomedOn(t, lane)
		send(stream, lane)
		if !isClosed(lane) {
			t.Errorf("%s: the lane stays", what)
		}
		stream.CloseSend()
		if _, err := stream.Recv(); status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), errBadFrame.Error()) {
			t.Errorf("%s: the stream ended with %v", what, err)
		}
	}
	if said := log.take(); !strings.Contains(said, errBadFrame.Error()) { // the asker of a lane is not told
		t.Errorf("logged %q", said)
	}
}

// Who opens the lane of an owner that has said farewell hears it, once.
func TestFarewellBeforeTheLane(t *testing.T) {
	cfg := serverConfig("owner", holding(testPartitions))
	a := newAnswerer(&cfg, nil) // whose stream is not to be used
	lane := make(chan net.Conn, 1)
	a.expect(lane)
	a.farewell()
	near, far := net.Pipe()
	lane <- far
	served := make(chan error, 1)
	go func() { served <- a.serveLane(t.Context()) }()
	welcomedOn(t, near)
	in := newReceivingLane(near, maxReply)
	var heard peerpb.Frame
	if err := in.Recv(&heard); err != nil || !proto.Equal(&heard, &peerpb.Frame{Id: farewell}) {
		t.Errorf("heard %v, %v", &heard, err)
	}
	near.Close()
	if err := <-served; err != nil {
		t.Errorf("the lane ended with %v", err)
	}
}

// Something between two nodes may let through only gRPC. Checks go that way then.
func TestWithoutALane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		serve(t, serverConfig("owner", holding(testPartitions)), n.listen("owner:1"))
		var dials atomic.Int64
		p := newPool(t, func(ctx context.Context, addr string) (net.Conn, error) {
			if dials.Add(1) == 2 {
				return nil, errors.New("only gRPC may pass")
			}
			return n.dial(ctx, addr)
		})
		peer := p.Peer(ownerMember)
		time.Sleep(time.Second)
		for range 3 {
			v, err := peer.Check(t.Context(), callOf(tokens(t, 3), "k", 1), within(time.Second))
			if err != nil || !v.Allowed {
				t.Fatalf("%+v, %v", v, err)
			}
		}
		if n := dials.Load(); n != 3 {
			t.Errorf("dialled %d times, want a connection, a lane, and a connection without", n)
		}
	})
}

// What lets only gRPC through may take any connection all the same, and then break it,
// answer for itself, or keep silent.
func TestWithoutAWayForLanes(t *testing.T) {
	for what, meddle := range map[string]func(net.Conn){
		"breaks":  func(c net.Conn) { c.Close() },
		"answers": func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 400 Bad Request\r\n\r\n") },
		"hangs":   func(net.Conn) {},
	} {
		synctest.Test(t, func(t *testing.T) {
			n := newNetwork()
			serve(t, serverConfig("owner", holding(testPartitions)), n.listen("owner:1"))
			var dials atomic.Int64
			p := newPool(t, func(ctx context.Context, addr string) (net.Conn, error) {
				if dials.Add(1) != 2 {
					return n.dial(ctx, addr)
				}
				near, far := net.Pipe()
				go func() {
					_, _ = io.ReadFull(far, make([]byte, len(laneGreeting)+len(ticket{})))
					meddle(far)
				}()
				t.Cleanup(func() { far.Close() })
				return near, nil
			})
			peer := p.Peer(ownerMember)
			time.Sleep(2 * connectTimeout)
			v, err := peer.Check(t.Context(), callOf(tokens(t, 3), "k", 1), within(time.Second))
			if err != nil || !v.Allowed {
				t.Errorf("it %s: %+v, %v", what, v, err)
			}
			if n := dials.Load(); n != 3 {
				t.Errorf("it %s: dialled %d times, want a connection, a lane, and a connection without", what, n)
			}
		})
	}
}

// A lane that breaks alone takes with it what is in flight, and no more: the next
// check goes on a new one at once.
func TestLaneBreaks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := holding(testPartitions)
		asked, goOn := make(chan struct{}, 1), make(chan struct{})
		decider := &scripted{Table: table, decide: func(calls []owner.Call, results []owner.Result) {
			select {
			case asked <- struct{}{}:
				<-goOn
			default:
			}
			table.DecideFrame(wall(), calls, results)
		}}
		p := newPair(t, decider)
		defer p.stop()
		rule := tokens(t, 9)
		ended := make(chan error, 1)
		go func() {
			_, err := p.check(rule, "k", 1, 10*time.Second)
			ended <- err
		}()
		<-asked
		p.net.mu.Lock()
		lane := p.net.conns[1]
		p.net.mu.Unlock()
		lane.Close()
		if err := <-ended; !errors.Is(err, forward.ErrUnreachable) {
			t.Errorf("what was in flight: %v", err)
		}
		close(goOn)
		began := time.Now()
		if v, err := p.check(rule, "k", 1, time.Second); err != nil || !v.Allowed {
			t.Errorf("the next check: %+v, %v", v, err)
		}
		if took := time.Since(began); took > laneGrace+50*time.Millisecond {
			t.Errorf("it took %v", took)
		}
	})
}

// A lane that comes while its stream ends is closed by somebody.
func TestLaneIsNotForgotten(t *testing.T) {
	l := newLanes()
	with := newTicket()
	lane := l.expect(with)
	near, far := net.Pipe()
	defer near.Close()
	if !l.give(with, far) {
		t.Fatal("nobody waits")
	}
	l.forget(with, lane)
	_ = near.SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := near.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("a lane that nobody took: %v", err)
	}
	if l.give(with, near) || len(l.waiting) != 0 {
		t.Error("the stream waits on")
	}
}
