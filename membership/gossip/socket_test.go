package gossip

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The one test on real sockets: two nodes on free ports of the loopback, the
// same port for TCP and UDP, and a third that wants a port in use.
func TestRealSockets(t *testing.T) {
	a, err := Start(Config{Self: member("n1"), Bind: "0.0.0.0:0", Advertise: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	b, err := Start(Config{Self: member("n2"), Bind: "127.0.0.1:0", Join: []string{a.Addr()}})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := b.Join(ctx); err != nil {
		t.Fatal(err)
	}
	for _, g := range []*Gossip{a, b} {
		for members := 0; members != 2; {
			select {
			case v := <-g.Views():
				members = len(v.Members)
			case <-ctx.Done():
				t.Fatalf("%s did not see both", g.Addr())
			}
		}
	}
	if c, err := net.ListenPacket("udp", a.Addr()); err == nil {
		_ = c.Close()
		t.Errorf("UDP is not bound at %s", a.Addr())
	}
	_, err = Start(Config{Self: member("n3"), Bind: a.Addr()})
	if err == nil || !strings.Contains(err.Error(), a.Addr()) || !strings.Contains(err.Error(), "address already in use") {
		t.Errorf("port in use: %v", err)
	}
	if err := b.Leave(ctx); err != nil {
		t.Error(err)
	}
}
