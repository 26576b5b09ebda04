package rival

import (
	"context"
	"io"
	"strconv"

	"github.com/cespare/xxhash/v2"

	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"

	"github.com/ringlimit/ringlimit/bench/load"
	"github.com/ringlimit/ringlimit/bench/wire"
)

// tcp is two processes with a table each behind bare TCP; a key's hash says which of
// them to ask. It has the topology of forward.
type tcp struct{ clients []*wire.Client }

func (t *tcp) Start(ctx context.Context, env *Env) error {
	for range forwardOwners {
		_, at, err := env.serve(ctx, "tcp")
		if err != nil {
			return err
		}
		c, err := wire.DialTCP(at[0])
		if err != nil {
			return err
		}
		t.clients = append(t.clients, c)
	}
	return nil
}

func (t *tcp) Caller(int) load.Ask {
	return one(func(_ context.Context, key string) (bool, error) {
		v, err := t.clients[ownerOf(key)].Check(key)
		return v.Allowed, err
	})
}

func ownerOf(key string) uint64 { return xxhash.Sum64String(key) % forwardOwners }

func (t *tcp) Stop() { closeAll(t.clients) }

func closeAll[C io.Closer](closers []C) {
	for _, c := range closers {
		_ = c.Close()
	}
}

// unary is the same behind plain grpc-go.
type unary struct{ clients []*wire.Unary }

func (u *unary) Start(ctx context.Context, env *Env) error {
	for range forwardOwners {
		_, at, err := env.serve(ctx, "unary")
		if err != nil {
			return err
		}
		c, err := wire.DialUnary(at[0])
		if err != nil {
			return err
		}
		u.clients = append(u.clients, c)
	}
	return nil
}

func (u *unary) Caller(int) load.Ask {
	return one(func(ctx context.Context, key string) (bool, error) {
		v, err := u.clients[ownerOf(key)].Check(ctx, key)
		return v.Allowed, err
	})
}

func (u *unary) Stop() { closeAll(u.clients) }

// mesh is three processes that do all by unary calls, and a client with a connection
// to each; callers take them in turn.
type mesh struct{ doors []grpcDoor }

const nodes = 3

func (m *mesh) Start(ctx context.Context, env *Env) error {
	addresses, err := freeAddresses(nodes)
	if err != nil {
		return err
	}
	for i := range addresses {
		if _, _, err := env.serve(ctx, "mesh", append([]string{strconv.Itoa(i)}, addresses...)...); err != nil {
			return err
		}
	}
	m.doors, err = dialDoors(addresses)
	return err
}

func (m *mesh) Caller(i int) load.Ask { return inTurn(m.doors, i) }

func (m *mesh) Stop() { closeAll(m.doors) }

// grpcDoor is a client of ringlimit's public gRPC service.
type grpcDoor struct {
	io.Closer
	pb.RateLimiterClient
}

func dialDoors(addresses []string) ([]grpcDoor, error) {
	var doors []grpcDoor
	for _, a := range addresses {
		conn, err := wire.Dial(a)
		if err != nil {
			return nil, err
		}
		doors = append(doors, grpcDoor{conn, pb.NewRateLimiterClient(conn)})
	}
	return doors, nil
}

// inTurn asks one door after the other.
func inTurn(doors []grpcDoor, next int) load.Ask {
	return one(func(ctx context.Context, key string) (bool, error) {
		next++
		v, err := doors[next%len(doors)].Check(ctx, &pb.CheckRequest{Key: key})
		if err != nil {
			return false, err
		}
		return v.Allowed, expectSource(v)
	})
}
