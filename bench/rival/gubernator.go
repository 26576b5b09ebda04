package rival

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	gubernator "github.com/gubernator-io/gubernator/v2"
	"github.com/sirupsen/logrus"

	"github.com/ringlimit/ringlimit/bench/load"
)

// gubernatorNodes is how many daemons its cluster has; all in one process, which
// spares them some switches.
const gubernatorNodes = nodes

// serveGubernator runs daemons, each of which knows all, at the addresses: the first
// argument says how many of them run elsewhere.
func serveGubernator(ctx context.Context, out io.Writer, args []string) error {
	if len(args) < 2 {
		return errors.New("gubernator needs the number of daemons elsewhere and all addresses")
	}
	elsewhere, err := strconv.Atoi(args[0])
	if err != nil || elsewhere < 0 || elsewhere >= len(args)-1 {
		return fmt.Errorf("%q is no number of daemons elsewhere", args[0])
	}
	for i, address := range args[1:] {
		if i < elsewhere {
			continue
		}
		d, err := spawnDaemon(ctx, address)
		if err != nil {
			return err
		}
		defer d.Close()
		d.SetPeers(peers(args[1:]))
	}
	fmt.Fprintln(out, serving+args[len(args)-1])
	<-ctx.Done()
	return nil
}

// spawnDaemon starts a daemon at gubernator's defaults, but for room for all keys,
// where the default would forget all but 50,000, and a patience like ours.
func spawnDaemon(ctx context.Context, address string) (*gubernator.Daemon, error) {
	log := logrus.New()
	log.SetLevel(logrus.ErrorLevel)
	log.SetOutput(io.Discard)
	return gubernator.SpawnDaemon(ctx, gubernator.DaemonConfig{
		InstanceID:        address,
		Logger:            log,
		GRPCListenAddress: address,
		AdvertiseAddress:  address,
		HTTPListenAddress: "127.0.0.1:0",
		CacheSize:         4_000_000,
		PeerDiscoveryType: "none",
		Behaviors:         gubernator.BehaviorConfig{BatchTimeout: deadline},
	})
}

func peers(addresses []string) []gubernator.PeerInfo {
	all := make([]gubernator.PeerInfo, len(addresses))
	for i, a := range addresses {
		all[i] = gubernator.PeerInfo{GRPCAddress: a}
	}
	return all
}

// gubernatorName is the first half of every counter's name there.
const gubernatorName = "bench"

func (l Limit) gubernator(name, key string) *gubernator.RateLimitReq {
	return &gubernator.RateLimitReq{
		Name: name, UniqueKey: key, Hits: 1, Limit: l.Count, Duration: l.Window.Milliseconds(),
		Algorithm: gubernator.Algorithm_TOKEN_BUCKET, Behavior: gubernator.Behavior_BATCHING,
	}
}

// gubernatorClient asks its three nodes over gRPC, as its users do, in turn: one key
// in a question, or as many as the load has.
type gubernatorClient struct {
	limit   Limit
	server  *child
	clients []gubernator.V1Client
}

func (g *gubernatorClient) Start(ctx context.Context, env *Env) error {
	addresses, err := freeAddresses(gubernatorNodes)
	if err != nil {
		return err
	}
	if g.server, _, err = env.serve(ctx, "gubernator", append([]string{"0"}, addresses...)...); err != nil {
		return err
	}
	for _, a := range addresses {
		c, err := gubernator.DialV1Server(a, nil)
		if err != nil {
			return err
		}
		g.clients = append(g.clients, c)
	}
	return nil
}

func (g *gubernatorClient) Caller(next int) load.Ask {
	return func(ctx context.Context, keys []string) (int, error) {
		next++
		return askGubernator(ctx, g.limit, gubernatorName, keys, func(ctx context.Context, req *gubernator.GetRateLimitsReq) (*gubernator.GetRateLimitsResp, error) {
			return g.clients[next%len(g.clients)].GetRateLimits(ctx, req)
		})
	}
}

func askGubernator(ctx context.Context, l Limit, name string, keys []string,
	ask func(context.Context, *gubernator.GetRateLimitsReq) (*gubernator.GetRateLimitsResp, error)) (admitted int, err error) {
	req := &gubernator.GetRateLimitsReq{Requests: make([]*gubernator.RateLimitReq, len(keys))}
	for i, key := range keys {
		req.Requests[i] = l.gubernator(name, key)
	}
	resp, err := ask(ctx, req)
	if err != nil {
		return 0, err
	}
	for _, r := range resp.Responses {
		if r.Error != "" {
			return 0, errors.New(r.Error)
		}
		if r.Status == gubernator.Status_UNDER_LIMIT {
			admitted++
		}
	}
	return admitted, nil
}

func (g *gubernatorClient) Stop() {}

// Used is of all three nodes.
func (g *gubernatorClient) Used(ctx context.Context) (int64, error) { return g.server.heap(ctx) }

// gubernatorEmbedded is one of the three nodes in the caller's process. The one key
// of a load is another node's; of many keys a third are its own.
type gubernatorEmbedded struct {
	limit Limit
	node  *gubernator.Daemon
	name  string
}

func (g *gubernatorEmbedded) Start(ctx context.Context, env *Env) error {
	addresses, err := freeAddresses(gubernatorNodes)
	if err != nil {
		return err
	}
	if g.node, err = spawnDaemon(ctx, addresses[0]); err != nil {
		return err
	}
	if _, _, err := env.serve(ctx, "gubernator", append([]string{"1"}, addresses...)...); err != nil {
		return err
	}
	g.node.SetPeers(peers(addresses))
	return g.choose(ctx, addresses[0])
}

// choose finds a name under which the first key is another node's.
func (g *gubernatorEmbedded) choose(ctx context.Context, self string) error {
	for i := range 100 {
		g.name = gubernatorName + strconv.Itoa(i)
		owner, err := g.node.V1Server.GetPeer(ctx, g.limit.gubernator(g.name, load.Name(0)).HashKey())
		if err != nil {
			return err
		}
		if owner.Info().GRPCAddress != self {
			return nil
		}
	}
	return errors.New("every counter is of one node")
}

func (g *gubernatorEmbedded) Caller(int) load.Ask {
	return func(ctx context.Context, keys []string) (int, error) {
		return askGubernator(ctx, g.limit, g.name, keys, g.node.V1Server.GetRateLimits)
	}
}

func (g *gubernatorEmbedded) Stop() { g.node.Close() }
