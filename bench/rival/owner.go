package rival

import (
	"context"
	"fmt"
	"time"

	"github.com/ringlimit/ringlimit"
	"github.com/ringlimit/ringlimit/bench/load"
	"github.com/ringlimit/ringlimit/limit"
	"github.com/ringlimit/ringlimit/rules"
)

// deadline of the nodes here: on a busy machine a late answer is to count as late.
// With the default, on_failure would answer it, and the cell would be lost.
const deadline = 5 * time.Second

// room is what the nodes may use for counters.
const room = 4 << 30

// ruleText is the rules of every node. Copies to a standby cost, and no rival makes
// any: so the default tier has none, and the tier auto is what users get unless they
// choose.
func ruleText(l Limit) string {
	return fmt.Sprintf(`tiers:
  default:
    - {name: all, algorithm: token_bucket, limit: %[1]d, window: %[2]v, durability: none}
  auto:
    - {name: all, algorithm: token_bucket, limit: %[1]d, window: %[2]v, durability: auto}
  refused:
    - {name: all, algorithm: token_bucket, limit: 1, window: 24h, durability: none}
`, l.Count, l.Window)
}

// start is a node on free ports of loopback.
func start(ctx context.Context, l Limit, cfg ringlimit.Config) (*ringlimit.Node, error) {
	set, err := rules.Parse("rules.yaml", []byte(ruleText(l)))
	if err != nil {
		return nil, err
	}
	cfg.Rules, cfg.Peer, cfg.Gossip, cfg.Deadline, cfg.Memory = set, "127.0.0.1:0", "127.0.0.1:0", deadline, room
	return ringlimit.Start(ctx, cfg)
}

// leave ends a node without hurry for its counters, which nobody needs.
func leave(n *ringlimit.Node) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = n.Leave(ctx)
}

// owner is one node that owns all counters, asked in its own process.
type owner struct {
	limit Limit
	node  *ringlimit.Node
}

func (o *owner) Start(ctx context.Context, _ *Env) (err error) {
	o.node, err = start(ctx, o.limit, ringlimit.Config{Name: "alone"})
	return err
}

func (o *owner) Caller(int) load.Ask {
	return one(func(ctx context.Context, key string) (bool, error) {
		v, err := o.node.Check(ctx, ringlimit.Request{Key: key})
		return v.Allowed, expect(&v, limit.SourceOwner, err)
	})
}

func (o *owner) Stop() { leave(o.node) }

func (o *owner) Used(context.Context) (int64, error) { return heap(), nil }

// expect refuses a verdict that somebody else gave: on_failure answers fast.
func expect(v *ringlimit.Verdict, source limit.Source, err error) error {
	if err == nil && v.Source != source {
		return fmt.Errorf("the verdict is by %q, not by %q: %+v", v.Source, source, *v)
	}
	return err
}
