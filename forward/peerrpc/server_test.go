package peerrpc

import (
	"bytes"
	"context"
	"io"
	"math"
	"net"
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
)

// rawStream opens a stream with this metadata, below the client.
func rawStream(t *testing.T, addr string, md metadata.MD) grpc.BidiStreamingClient[peerpb.Frame, peerpb.Frame] {
	t.Helper()
	cc, err := grpc.NewClient("passthrough:///"+addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
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
	md := metadata.Pairs(versionKey, strconv.Itoa(version), nodeKey, `"owner"`, tokenKey, "secret")
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
		{"the version before", greeting(versionKey, strconv.Itoa(version-1)), codes.OK, ""},
		{"a far version", greeting(versionKey, strconv.Itoa(version+2)), codes.FailedPrecondition, versionKey},
		{"no version", greeting(versionKey, ""), codes.FailedPrecondition, versionKey},
		{"another node", greeting(nodeKey, `"x"`), codes.FailedPrecondition, `"x" was meant, but this address is now "owner"`},
		{"a wrong token", greeting(tokenKey, "guess"), codes.Unauthenticated, "secret"},
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
		"too large":     {make([]byte, maxFrame+1), codes.ResourceExhausted},
	} {
		stream := rawStream(t, l.Addr().String(), greeting())
		if err := stream.Send(&peerpb.Frame{Id: 1, Records: c.records}); err != nil {
			t.Fatal(err)
		}
		if _, err := stream.Recv(); status.Code(err) != c.code {
			t.Errorf("%s: %v", what, err)
		}
	}
	stream := rawStream(t, l.Addr().String(), greeting())
	if err := stream.Send(&peerpb.Frame{Id: math.MaxUint64, Records: good}); err != nil {
		t.Fatal(err)
	}
	if f, err := stream.Recv(); err != nil || f.Id != math.MaxUint64 {
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
