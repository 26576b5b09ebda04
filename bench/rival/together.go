package rival

import (
	"context"
	"fmt"
	"net"

	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"

	"github.com/ringlimit/ringlimit"
	"github.com/ringlimit/ringlimit/bench/load"
	"github.com/ringlimit/ringlimit/bench/wire"
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
