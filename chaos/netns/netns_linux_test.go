package netns

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ringlimit/ringlimit/chaos/cluster"
	"github.com/ringlimit/ringlimit/chaos/process"
	"github.com/ringlimit/ringlimit/chaos/scenario"
)

func TestRules(t *testing.T) {
	for _, tt := range []struct {
		name string
		cut  scenario.Cut
		want string
	}{
		{"all", scenario.Cut{Percent: 100}, "  ip saddr 10.77.0.4 drop\n"},
		{"some", scenario.Cut{Percent: 30}, "  ip saddr 10.77.0.4 numgen random mod 100 < 30 drop\n"},
		{"udp", scenario.Cut{Percent: 100, Only: scenario.UDP}, "  ip saddr 10.77.0.4 meta l4proto udp drop\n"},
		{"gossip", scenario.Cut{Percent: 100, Only: scenario.Gossip}, "  ip saddr 10.77.0.4 th dport 7703 drop\n  ip saddr 10.77.0.4 th sport 7703 drop\n"},
		{"rejected", scenario.Cut{Percent: 100, Reject: true}, "  ip saddr 10.77.0.4 meta l4proto tcp reject with tcp reset\n  ip saddr 10.77.0.4 reject\n"},
	} {
		if got := rules(&tt.cut, 3); got != tt.want {
			t.Errorf("%s: rules are %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestSenders(t *testing.T) {
	for _, tt := range []struct {
		cut  scenario.Cut
		to   int
		want string
	}{
		{scenario.Cut{From: []int{0, 1}, To: []int{2, 3}}, 2, "[0 1]"},
		{scenario.Cut{From: []int{0, 1}, To: []int{2, 3}}, 0, "[]"},
		{scenario.Cut{From: []int{0, 1}, To: []int{2, 3}, Both: true}, 0, "[2 3]"},
		{scenario.Cut{From: []int{0, 1, 2}, To: []int{0, 1, 2}, Both: true}, 1, "[0 2]"},
	} {
		if got := fmt.Sprint(senders(&tt.cut, tt.to)); got != tt.want {
			t.Errorf("%+v: node %d loses from %s, want %s", tt.cut, tt.to, got, tt.want)
		}
	}
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pair makes a network of two nodes, or skips the test where that is impossible.
func pair(t *testing.T, kind scenario.Net) (*Net, [2]cluster.Place) {
	t.Helper()
	group := &process.Group{}
	t.Cleanup(group.Kill)
	n, err := New(group, t.TempDir(), kind, 1)
	var places [2]cluster.Place
	for i := range places {
		if err == nil {
			places[i], err = n.Place(i)
		}
	}
	if errors.Is(err, ErrUnable) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	return n, places
}

// Two nodes reach each other until they are cut, one way or both, and again
// when that is healed.
func TestCut(t *testing.T) {
	for _, kind := range []scenario.Net{scenario.Namespaces, scenario.Switched} {
		t.Run(string(kind), func(t *testing.T) { testCut(t, kind) })
	}
}

func testCut(t *testing.T, kind scenario.Net) {
	n, places := pair(t, kind)
	reach := n.listen(t, 1)
	expect := func(when string, want bool) {
		t.Helper()
		if got := reach(places[0]); got != want {
			t.Errorf("%s: node 0 reaches node 1: %v, want %v", when, got, want)
		}
	}
	expect("at first", true)
	for _, c := range []scenario.Cut{
		{From: []int{0}, To: []int{1}, Percent: 100},
		{From: []int{1}, To: []int{0}, Percent: 100},
		{From: []int{1}, To: []int{0}, Percent: 100, Both: true, Only: scenario.TCP},
		{From: []int{0}, To: []int{1}, Percent: 100, Only: scenario.Peer},
		{From: []int{0}, To: []int{1}, Percent: 100, Reject: true},
	} {
		if err := n.Cut(&c); err != nil {
			t.Fatal(err)
		}
		expect(fmt.Sprintf("cut by %+v", c), false)
		if err := n.Heal(); err != nil {
			t.Fatal(err)
		}
	}
	for _, only := range []scenario.Traffic{scenario.UDP, scenario.Gossip} {
		if err := n.Cut(&scenario.Cut{From: []int{0}, To: []int{1}, Both: true, Percent: 100, Only: only}); err != nil {
			t.Fatal(err)
		}
		expect(fmt.Sprintf("only %s is cut", only), true)
	}
}

// listen opens the peer port of a node and returns what tries to reach it.
func (n *Net) listen(t *testing.T, node int) func(from cluster.Place) bool {
	t.Helper()
	var l net.Listener
	err := n.homes[node].inside(func() (err error) {
		l, err = net.Listen("tcp", net.JoinHostPort(address(node), cluster.PeerPort))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return func(from cluster.Place) bool {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		conn, err := from.Dial(ctx, "tcp", l.Addr().String())
		if err == nil {
			conn.Close()
		}
		return err == nil
	}
}
