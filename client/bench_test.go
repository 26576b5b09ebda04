package client_test

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	ringlimitv1 "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/client"
	"github.com/ringlimit/ringlimit/front/grpcfront"
	"github.com/ringlimit/ringlimit/internal/floor"
	"github.com/ringlimit/ringlimit/limit"
)

// BenchmarkCheck compares the client's stream with plain unary calls of the generated
// client, as many callers see them, over loopback to one node in the same process.
// unary-x compares checks a second, unary-cpu-x processor time a check: more is better
// for the stream. p50-x is its median wait over unary's: less is better.
func BenchmarkCheck(b *testing.B) {
	for _, callers := range []int{1, 64, 256} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			address := listen(b)
			stream, unary := streamAsker(b, address), unaryAsker(b, address)
			var s, u floor.Run
			const turns = 20 // so that a noisy neighbour slows both
			for range turns {
				s.Add(measure(b, callers, b.N/turns+1, stream))
				u.Add(measure(b, callers, b.N/turns/8+1, unary))
			}
			b.ReportMetric(s.Rate(), "checks/s")
			b.ReportMetric(s.CPU(), "cpu-ns/check")
			b.ReportMetric(s.AllocsPer(), "allocs/check")
			b.ReportMetric(s.Rate()/u.Rate(), "unary-x")
			b.ReportMetric(u.CPU()/s.CPU(), "unary-cpu-x")
			b.ReportMetric(u.AllocsPer(), "unary-allocs/check")
			if callers == 1 {
				b.ReportMetric(s.P50(), "p50-ns")
				b.ReportMetric(s.P50()/u.P50(), "p50-x")
			}
		})
	}
}

func measure(b *testing.B, callers, n int, ask asker) floor.Run {
	keys := make([]string, callers)
	for i := range keys {
		keys[i] = fmt.Sprintf("customer-%08d", i)
	}
	r, err := floor.Measure(callers, n, func(caller, _ int) error { return ask(keys[caller]) })
	if err != nil {
		b.Fatal(err)
	}
	return r
}

// listen runs a door on loopback whose checker answers at once.
func listen(b *testing.B) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	c := says{limit.Verdict{Allowed: true, Rule: perMinute(b, 100).rule, Source: limit.SourceOwner, Limit: 100, Remaining: 99, ResetAfter: time.Minute}}
	s := grpcfront.New(grpcfront.Config{Checker: c, Explainer: perMinute(b, 1)})
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := s.Serve(l); err != nil {
			b.Error(err)
		}
	})
	b.Cleanup(func() { s.Stop(context.Background()); serving.Wait() })
	return l.Addr().String()
}

// says is a checker with one verdict.
type says struct{ verdict limit.Verdict }

func (s says) Check(context.Context, limit.Request) (limit.Verdict, error)  { return s.verdict, nil }
func (s says) Refund(context.Context, limit.Request) (limit.Verdict, error) { return s.verdict, nil }

// asker makes one check and waits for its answer.
type asker func(key string) error

func streamAsker(b *testing.B, address string) asker {
	c, err := client.New(client.Config{Addresses: []string{address}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(c.Close)
	return func(key string) error {
		_, err := c.Check(context.Background(), limit.Request{Key: key, Route: "POST /v1/charges"})
		return err
	}
}

func unaryAsker(b *testing.B, address string) asker {
	cc, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { cc.Close() })
	c := ringlimitv1.NewRateLimiterClient(cc)
	return func(key string) error {
		_, err := c.Check(context.Background(), &ringlimitv1.CheckRequest{Key: key, Route: "POST /v1/charges"})
		return err
	}
}
