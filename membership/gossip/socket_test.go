package gossip

import (
	"context"
	"net"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ringlimit/ringlimit/membership"
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
				checkAddresses(t, v, map[membership.NodeID]string{"n1": a.Addr(), "n2": b.Addr()})
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
	want := "gossip: listen tcp " + a.Addr() + ": bind: address already in use"
	if err == nil || err.Error() != want {
		t.Errorf("port in use: %v, want %s", err, want)
	}
	if err := b.Leave(ctx); err != nil {
		t.Error(err)
	}
}

// checkAddresses: each member is shown at the address that its gossip is at.
func checkAddresses(t *testing.T, v membership.View, want map[membership.NodeID]string) {
	t.Helper()
	for _, m := range v.Members {
		if m.Gossip != want[m.ID] {
			t.Errorf("%s gossips at %q, want %s", m.ID, m.Gossip, want[m.ID])
		}
	}
}
