package rival

import (
	"context"
	"fmt"

	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"

	"github.com/ringlimit/ringlimit/bench/load"
)

// grpcService is three real nodes asked by unary gRPC; callers take them in turn.
type grpcService struct {
	fleet fleet
	doors []grpcDoor
}

func (g *grpcService) Start(ctx context.Context, env *Env) (err error) {
	if err := g.fleet.start(ctx, env, nodes, 0); err != nil {
		return err
	}
	g.doors, err = dialDoors(g.fleet.grpc())
	return err
}

func (f *fleet) grpc() (addresses []string) {
	for _, n := range f.nodes {
		addresses = append(addresses, n.GRPC)
	}
	return addresses
}

func (g *grpcService) Caller(i int) load.Ask { return inTurn(g.doors, i) }

func (g *grpcService) Stop() { closeAll(g.doors) }

func expectSource(v *pb.Verdict) error {
	if v.Source != pb.Source_SOURCE_OWNER {
		return fmt.Errorf("the verdict is by %v, not by an owner", v.Source)
	}
	return nil
}

// grpcBatch asks the same nodes with CheckBatch.
type grpcBatch struct{ grpcService }

func (g *grpcBatch) Caller(next int) load.Ask {
	return func(ctx context.Context, keys []string) (admitted int, err error) {
		next++
		req := &pb.CheckBatchRequest{Checks: make([]*pb.CheckRequest, len(keys))}
		for i, key := range keys {
			req.Checks[i] = &pb.CheckRequest{Key: key}
		}
		resp, err := g.doors[next%len(g.doors)].CheckBatch(ctx, req)
		if err != nil {
			return 0, err
		}
		for _, r := range resp.Results {
			v := r.GetVerdict()
			if v == nil {
				return 0, fmt.Errorf("no verdict but %v", r.GetError())
			}
			if err := expectSource(v); err != nil {
				return 0, err
			}
			if v.Allowed {
				admitted++
			}
		}
		return admitted, nil
	}
}

// grpcTax is a node that owns everything and one that only forwards to it. All checks
// go to one of them: to the owner, or to the other one and from there to the owner.
type grpcTax struct {
	fleet     fleet
	forwarded bool
	doors     []grpcDoor
}

func (g *grpcTax) Start(ctx context.Context, env *Env) (err error) {
	if err := g.fleet.start(ctx, env, 1, 1); err != nil {
		return err
	}
	g.doors, err = dialDoors([]string{g.fleet.door(g.forwarded).GRPC})
	return err
}

// door is the first node, or the last.
func (f *fleet) door(last bool) fleetNode {
	if last {
		return f.nodes[len(f.nodes)-1]
	}
	return f.nodes[0]
}

func (g *grpcTax) Caller(i int) load.Ask { return inTurn(g.doors, i) }

func (g *grpcTax) Stop() { closeAll(g.doors) }
