package netns

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/ringlimit/ringlimit/chaos/cluster"
	"github.com/ringlimit/ringlimit/chaos/scenario"
)

// What is sent to and fro takes at least what both ways take; after healing, as
// little as before.
func TestDelay(t *testing.T) {
	n, places := pair(t, scenario.Switched)
	for _, network := range []string{"tcp", "udp"} {
		echo := n.echo(t, network, places[0])
		shortest := func() time.Duration {
			least := echo()
			for range 9 {
				least = min(least, echo())
			}
			return least
		}
		if got := shortest(); got > 20*time.Millisecond {
			t.Errorf("%s: with no delay an echo takes %v at best", network, got)
		}
		there := scenario.Cut{From: []int{0}, To: []int{1}, Delay: 40 * time.Millisecond, Jitter: 10 * time.Millisecond}
		back := scenario.Cut{From: []int{1}, To: []int{0}, Delay: 20 * time.Millisecond}
		for _, c := range []*scenario.Cut{&there, &back} {
			if err := n.Cut(c); err != nil {
				t.Fatal(err)
			}
		}
		if got := shortest(); got < 50*time.Millisecond {
			t.Errorf("%s: an echo takes %v, less than the 50 ms that the ways take at least", network, got)
		}
		if err := n.Heal(); err != nil {
			t.Fatal(err)
		}
		if got := shortest(); got > 20*time.Millisecond {
			t.Errorf("%s: healed, an echo takes %v at best", network, got)
		}
	}
}

// echo has node 1 send back what it gets at its gossip port, and returns what
// measures how long that takes when asked from another node.
func (n *Net) echo(t *testing.T, network string, from cluster.Place) func() time.Duration {
	t.Helper()
	at := net.JoinHostPort(address(1), cluster.GossipPort)
	if network == "udp" {
		n.echoPackets(t, at)
	} else {
		n.echoStream(t, at)
	}
	conn, err := from.Dial(t.Context(), network, at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return func() time.Duration {
		began := time.Now()
		var answer [5]byte
		if err := conn.SetDeadline(began.Add(5 * time.Second)); err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Write([]byte("hello")); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(conn, answer[:]); err != nil || string(answer[:]) != "hello" {
			t.Fatalf("%s: got %q, %v", network, answer, err)
		}
		return time.Since(began)
	}
}

// echoPackets answers datagrams until the test is over.
func (n *Net) echoPackets(t *testing.T, at string) {
	t.Helper()
	var c net.PacketConn
	err := n.homes[1].inside(func() (err error) {
		c, err = net.ListenPacket("udp", at)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	serve(t, c, func() {
		buffer := make([]byte, 64)
		for {
			k, sender, err := c.ReadFrom(buffer)
			if err != nil {
				return
			}
			_, _ = c.WriteTo(buffer[:k], sender)
		}
	})
}

// echoStream answers one connection until its other end closes it.
func (n *Net) echoStream(t *testing.T, at string) {
	t.Helper()
	var l net.Listener
	err := n.homes[1].inside(func() (err error) {
		l, err = net.Listen("tcp", at)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	serve(t, l, func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		_, _ = io.Copy(c, c)
	})
}

// serve runs f beside the test until c is closed at its end.
func serve(t *testing.T, c io.Closer, f func()) {
	over := make(chan struct{})
	go func() {
		defer close(over)
		f()
	}()
	t.Cleanup(func() {
		c.Close()
		<-over
	})
}
