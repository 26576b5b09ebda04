package ringlimit

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	ringlimitv1 "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/client"
	"github.com/ringlimit/ringlimit/front/grpcfront"
	"github.com/ringlimit/ringlimit/internal/floor"
	"github.com/ringlimit/ringlimit/membership"
)

// BenchmarkDoors is checks of clients into three nodes that own a third of the
// counters each: over the streams of package client, and as plain unary calls to the
// three in turn. unary-x compares checks a second, unary-cpu-x processor time a check,
// of clients and nodes together: more is better for the stream. tax-x is processor
// time of a unary call whose counter another node owns over that of one which the
// node asked owns itself.
func BenchmarkDoors(b *testing.B) {
	set := parseRules(b, `
tiers:
  default:
    - {name: global, algorithm: token_bucket, limit: 1000000000, window: 1s, durability: none}
`)
	nodes := []*Node{onLoopback(b, Config{Name: "node-0", Rules: set})}
	for i := 1; i < 3; i++ {
		nodes = append(nodes, onLoopback(b, Config{Name: fmt.Sprint("node-", i), Rules: set}, nodes[0]))
	}
	defer leaveAll(b, nodes...)
	waitForCopies(b, nodes...)
	var addresses []string
	for _, n := range nodes {
		addresses = append(addresses, openDoor(b, n))
	}
	keys := benchKeys(10_000)
	stream, unary := askStreams(b, addresses, keys), askUnary(b, addresses, keys)
	own := askUnary(b, addresses[:1], keysOf(b, nodes[0], keys, true))
	others := askUnary(b, addresses[:1], keysOf(b, nodes[0], keys, false))
	for _, callers := range []int{1, 64, 256} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			var s, u, owned, forwarded floor.Run
			for range turns {
				s.Add(measure(b, callers, b.N/turns+1, stream))
				u.Add(measure(b, callers, b.N/turns/8+1, unary))
				owned.Add(measure(b, callers, b.N/turns/16+1, own))
				forwarded.Add(measure(b, callers, b.N/turns/16+1, others))
			}
			b.ReportMetric(s.Rate(), "checks/s")
			b.ReportMetric(s.CPU(), "cpu-ns/check")
			b.ReportMetric(s.AllocsPer(), "allocs/check")
			b.ReportMetric(s.Rate()/u.Rate(), "unary-x")
			b.ReportMetric(u.CPU()/s.CPU(), "unary-cpu-x")
			b.ReportMetric(forwarded.CPU()/owned.CPU(), "tax-x")
		})
	}
}

func openDoor(b *testing.B, n *Node) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	s := grpcfront.New(grpcfront.Config{Checker: n, Explainer: n})
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := s.Serve(l); err != nil {
			b.Error(err)
		}
	})
	b.Cleanup(func() { s.Stop(context.Background()); serving.Wait() })
	return l.Addr().String()
}

func askStreams(b *testing.B, addresses, keys []string) func(caller, i int) error {
	c, err := client.New(client.Config{Addresses: addresses})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(c.Close)
	return func(_, i int) error {
		v, err := c.Check(context.Background(), Request{Key: keys[i%len(keys)], Route: "POST /v1/charges"})
		if err == nil && !v.Allowed {
			return errNotForwarded
		}
		return err
	}
}

func askUnary(b *testing.B, addresses, keys []string) func(caller, i int) error {
	var clients []ringlimitv1.RateLimiterClient
	for _, address := range addresses {
		cc, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = cc.Close() })
		clients = append(clients, ringlimitv1.NewRateLimiterClient(cc))
	}
	return func(_, i int) error {
		v, err := clients[i%len(clients)].Check(context.Background(), &ringlimitv1.CheckRequest{Key: keys[i%len(keys)], Route: "POST /v1/charges"})
		if err == nil && !v.Allowed {
			return errNotForwarded
		}
		return err
	}
}

// keysOf are those that the node owns, or those that others do.
func keysOf(b *testing.B, n *Node, keys []string, own bool) (some []string) {
	for _, key := range keys {
		at, err := n.Locate(context.Background(), Request{Key: key})
		if err != nil {
			b.Fatal(err)
		}
		if (at.Owner == membership.NodeID(n.Name())) == own {
			some = append(some, key)
		}
	}
	return some
}
