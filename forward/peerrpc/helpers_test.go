package peerrpc

import (
	"context"
	"io"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/ringlimit/ringlimit/limit"
	"github.com/ringlimit/ringlimit/membership"
	"github.com/ringlimit/ringlimit/owner"
)

func silent() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

func wall() int64 { return time.Now().UnixNano() }

// tokens is a token bucket of so many a minute.
func tokens(t testing.TB, n int64) *limit.Rule {
	t.Helper()
	r, err := limit.NewRule(limit.Spec{Algorithm: limit.TokenBucket, Limit: n, Window: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// holding is a table that holds all its partitions.
func holding(partitions int) *owner.Table {
	t := owner.NewTable(owner.Config{Partitions: partitions, Now: wall})
	for p := range partitions {
		t.SetPhase(p, owner.Holding)
	}
	return t
}

const testPartitions = 64

func partitionOf(hash uint64) int { return int(hash % testPartitions) }

func callOf(rule *limit.Rule, name string, cost int64) *owner.Call {
	id := owner.Seed(1).ID([]byte(name))
	return &owner.Call{ID: id, Partition: partitionOf(id.Hi),
		Charge: limit.Charge{Counter: []byte(name), Rule: rule, Cost: cost}}
}

// serverConfig is one that needs only a table.
func serverConfig(id membership.NodeID, table Table) ServerConfig {
	return ServerConfig{
		Self: id, Token: "secret", Table: table, Seed: 1, Partition: partitionOf,
		Hint:   func(int) (membership.NodeID, uint64) { return "other", 7 },
		Now:    wall,
		Logger: silent(),
	}
}

// serve runs a server until the test ends or stop is called.
func serve(t testing.TB, cfg ServerConfig, l net.Listener) (stop func()) {
	t.Helper()
	s := NewServer(cfg)
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	stop = sync.OnceFunc(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		s.Stop(ctx)
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

func loopback(t testing.TB) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func newPool(t testing.TB, dial func(context.Context, string) (net.Conn, error)) *Pool {
	t.Helper()
	p := NewPool(PoolConfig{Self: "asker", Token: "secret", Now: wall, Dial: dial, Logger: silent()})
	t.Cleanup(func() { p.Close() })
	return p
}

func soon() int64 { return wall() + int64(50*time.Millisecond) }
