package attack

import (
	"bytes"
	"context"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// listen counts the connections, and the bytes that came over them.
func listen(t *testing.T) (p Port, connections, received *atomic.Int64) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	connections, received = new(atomic.Int64), new(atomic.Int64)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			connections.Add(1)
			go func() {
				defer conn.Close()
				n, _ := io.Copy(io.Discard, conn)
				received.Add(n)
			}()
		}
	}()
	t.Cleanup(func() { l.Close() })
	return Port{"tcp", l.Addr().String(), new(net.Dialer).DialContext}, connections, received
}

func TestGarbage(t *testing.T) {
	p, connections, received := listen(t)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	Garbage(ctx, p, 1)
	if connections.Load() < 2 || received.Load() < 1000 {
		t.Errorf("%d bytes over %d connections", received.Load(), connections.Load())
	}
}

func TestSlowHeaders(t *testing.T) {
	p, connections, _ := listen(t)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	SlowHeaders(ctx, p, 40)
	if n := connections.Load(); n != 40 {
		t.Errorf("%d connections, want 40", n)
	}
}

// A request that is sent slowly never ends.
func TestDribble(t *testing.T) {
	client, server := net.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan bool)
	go func() {
		done <- dribble(ctx, Port{Dial: func(context.Context, string, string) (net.Conn, error) { return client, nil }})
	}()
	b := make([]byte, 200)
	n, err := server.Read(b)
	if err != nil || bytes.Contains(b[:n], []byte("\r\n\r\n")) {
		t.Errorf("read %q, %v", b[:n], err)
	}
	cancel()
	if !<-done {
		t.Error("there was a connection")
	}
}
