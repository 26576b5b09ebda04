package rival

import (
	"context"
	"fmt"
	"net"

	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"

	"github.com/ringlimit/ringlimit"
	"github.com/ringlimit/ringlimit/bench/load"
	"github.com/ringlimit/ringlimit/bench/wire"
	"github.com/ringlimit/ringlimit/limit"
)

// together is n nodes of ringlimit in the caller's process, each with every n-th
// caller. With n nodes a check in n needs no hop.
type together struct {
	limit Limit
	n     int
	nodes []*ringlimit.Node
}

func (t *together) Start(ctx context.Context, _ *Env) error {
	for i := range t.n {
		cfg := ringlimit.Config{Name: fmt.Sprintf("node-%d", i)}
		if i > 0 {
			cfg.Join = []string{t.nodes[0].GossipAddr()}
		}
		n, err := start(ctx, t.limit, cfg)
		if err != nil {
			return err
		}
		t.nodes = append(t.nodes, n)
	}
	return seesAll(ctx, t.n, t.nodes...)
}

func (t *together) Caller(i int) load.Ask {
	n := t.nodes[i%t.n]
	return one(func(ctx context.Context, key string) (bool, error) {
		v, err := n.Check(ctx, ringlimit.Request{Key: key})
		if err == nil && v.Source.Decider() != "owner" {
			return false, fmt.Errorf("the verdict is by %q: %+v", v.Source, v)
		}
		return v.Allowed, err
	})
}

func (t *together) Stop() {
	for i := len(t.nodes) - 1; i >= 0; i-- {
		leave(t.nodes[i])
	}
}

// meshTogether is the same with nodes of a unary mesh.
type meshTogether struct {
	n      int
	meshes []*wire.Mesh
}

func (t *meshTogether) Start(context.Context, *Env) error {
	addresses, err := freeAddresses(t.n)
	if err != nil {
		return err
	}
	for i := range t.n {
		j, err := wire.NewJudge(overNetwork.Count)
		if err != nil {
			return err
		}
		m, err := wire.NewMesh(j, addresses, i)
		if err != nil {
			return err
		}
		t.meshes = append(t.meshes, m)
		l, err := net.Listen("tcp", addresses[i])
		if err != nil {
			return err
		}
		go func() { _ = m.Serve(l) }()
	}
	return nil
}

func (t *meshTogether) Caller(i int) load.Ask {
	m := t.meshes[i%t.n]
	return one(func(ctx context.Context, key string) (bool, error) {
		v, err := m.Check(ctx, &pb.CheckRequest{Key: key})
		return v.GetAllowed(), err
	})
}

func (t *meshTogether) Stop() {
	for _, m := range t.meshes {
		m.Close()
	}
}

// bothEnds is three nodes in one process, of which two own the counters and the
// third is asked: its figures are of both ends of the hop.
type bothEnds struct {
	limit Limit
	nodes []*ringlimit.Node
}

func (b *bothEnds) Start(ctx context.Context, _ *Env) error {
	for _, cfg := range []ringlimit.Config{{Name: "owner-0"}, {Name: "owner-1"}, {Name: "gateway", Forwarder: true}} {
		if len(b.nodes) > 0 {
			cfg.Join = []string{b.nodes[0].GossipAddr()}
		}
		n, err := start(ctx, b.limit, cfg)
		if err != nil {
			return err
		}
		b.nodes = append(b.nodes, n)
	}
	return seesAll(ctx, len(b.nodes), b.nodes...)
}

func (b *bothEnds) Caller(int) load.Ask {
	gateway := b.nodes[len(b.nodes)-1]
	return one(func(ctx context.Context, key string) (bool, error) {
		v, err := gateway.Check(ctx, ringlimit.Request{Key: key})
		return v.Allowed, expect(&v, limit.SourceForwarded, err)
	})
}

func (b *bothEnds) Stop() {
	for i := len(b.nodes) - 1; i >= 0; i-- {
		leave(b.nodes[i])
	}
}
