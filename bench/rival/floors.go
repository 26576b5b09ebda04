package rival

import (
	"context"
	"io"
	"net"
	"strconv"

	"github.com/cespare/xxhash/v2"

	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"

	"github.com/ringlimit/ringlimit/bench/load"
	"github.com/ringlimit/ringlimit/bench/wire"
)

// hop is owners behind a wire and nothing else; a key's hash says which of them to ask.
// They are processes of their own, or inside the caller's process.
type hop struct {
	inside    bool
	owners    int
	listeners []net.Listener // of those inside
}

// start starts the owners, a kind of server, and returns their addresses.
func (h *hop) start(ctx context.Context, env *Env, kind string, serve func(net.Listener, *wire.Judge) error) (addresses []string, err error) {
	for range h.owners {
		at := []string{""}
		if h.inside {
			at[0], err = h.run(serve)
		} else {
			_, at, err = env.serve(ctx, kind)
		}
		if err != nil {
			return nil, err
		}
		addresses = append(addresses, at[0])
	}
	return addresses, nil
}

// run is an owner inside this process.
func (h *hop) run(serve func(net.Listener, *wire.Judge) error) (address string, err error) {
	j, l, err := listen()
	if err != nil {
		return "", err
	}
	h.listeners = append(h.listeners, l)
	go func() { _ = serve(l, j) }() // until the listener is closed
	return l.Addr().String(), nil
}

func (h *hop) ownerOf(key string) uint64 { return xxhash.Sum64String(key) % uint64(h.owners) }

func (h *hop) stop() { closeAll(h.listeners) }

func closeAll[C io.Closer](closers []C) {
	for _, c := range closers {
		_ = c.Close()
	}
}

// tcp is owners behind bare TCP, with the batching of ringlimit.
type tcp struct {
	hop
	clients []*wire.Client
}

func (t *tcp) Start(ctx context.Context, env *Env) error {
	addresses, err := t.start(ctx, env, "tcp", wire.ServeTCP)
	if err != nil {
		return err
	}
	for _, a := range addresses {
		c, err := wire.DialTCP(a)
		if err != nil {
			return err
		}
		t.clients = append(t.clients, c)
	}
	return nil
}

func (t *tcp) Caller(int) load.Ask {
	return one(func(_ context.Context, key string) (bool, error) {
		v, err := t.clients[t.ownerOf(key)].Check(key)
		return v.Allowed, err
	})
}

func (t *tcp) Stop() {
	closeAll(t.clients)
	t.stop()
}

// unary is the same behind plain grpc-go.
type unary struct {
	hop
	clients []*wire.Unary
}

func (u *unary) Start(ctx context.Context, env *Env) error {
	addresses, err := u.start(ctx, env, "unary", wire.ServeUnary)
	if err != nil {
		return err
	}
	for _, a := range addresses {
		c, err := wire.DialUnary(a)
		if err != nil {
			return err
		}
		u.clients = append(u.clients, c)
	}
	return nil
}

func (u *unary) Caller(int) load.Ask {
	return one(func(ctx context.Context, key string) (bool, error) {
		v, err := u.clients[u.ownerOf(key)].Check(ctx, key)
		return v.Allowed, err
	})
}

func (u *unary) Stop() {
	closeAll(u.clients)
	u.stop()
}

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
