package rival

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/ringlimit/ringlimit/bench/profile"
)

// fleet is real nodes of ringlimit, a process each, as `ringlimit serve` makes them.
type fleet struct {
	limit Limit
	nodes []fleetNode
}

type fleetNode struct {
	Name   string `json:"name"`
	HTTP   string `json:"http"`
	GRPC   string `json:"grpc"`
	Gossip string `json:"gossip"`
	Admin  string `json:"admin"`
	owns   bool
}

// start starts so many nodes that own counters and then some that only forward, and
// returns when all have the ring and every copy is made.
func (f *fleet) start(ctx context.Context, env *Env, owners, forwarders int) error {
	file, err := env.write("rules.yaml", ruleText(f.limit))
	if err != nil {
		return err
	}
	for i := range owners + forwarders {
		n, err := f.add(ctx, env, file, fmt.Sprintf("node-%d", i), i < owners)
		if err != nil {
			return fmt.Errorf("ringlimit serve: %w", err)
		}
		f.nodes = append(f.nodes, n)
	}
	return f.settle(ctx, len(f.nodes))
}

func (f *fleet) add(ctx context.Context, env *Env, rules, name string, owns bool) (fleetNode, error) {
	args := []string{"serve", "--output", "json", "--name", name, "--rules", rules,
		"--deadline", deadline.String(), "--memory", strconv.Itoa(room), "--owner=" + strconv.FormatBool(owns)}
	for _, port := range []string{"--http", "--grpc", "--peer", "--gossip", "--admin"} {
		args = append(args, port, "127.0.0.1:0")
	}
	if len(f.nodes) > 0 {
		args = append(args, "--join", f.nodes[0].Gossip)
	}
	c, err := env.spawn(env.Ringlimit, args...)
	if err != nil {
		return fleetNode{}, err
	}
	n := fleetNode{owns: owns}
	if err := c.unmarshalLine(ctx, &n); err != nil {
		return n, err
	}
	env.sources = append(env.sources, profile.Source{Name: n.Name, Addr: n.Admin, Kinds: []string{profile.CPU}})
	return n, nil
}

// settle waits until each node sees so many members and nothing is on the move.
func (f *fleet) settle(ctx context.Context, members int) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for _, n := range f.nodes {
		for {
			ready, err := n.settled(ctx, members, f.owners() > 1)
			if err != nil {
				return err
			}
			if ready {
				break
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("%s has not settled in %v", n.Name, patience)
			case <-time.After(50 * time.Millisecond):
			}
		}
	}
	return nil
}

func (f *fleet) owners() (n int) {
	for i := range f.nodes {
		if f.nodes[i].owns {
			n++
		}
	}
	return n
}

// settled reads the node's metrics. A lone owner has nobody to copy to.
func (n *fleetNode) settled(ctx context.Context, members int, copies bool) (bool, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+n.Admin+"/metrics", nil)
	if err != nil {
		return false, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	seen := map[string]string{}
	for in := bufio.NewScanner(resp.Body); in.Scan(); {
		if name, value, ok := strings.Cut(in.Text(), " "); ok {
			seen[name] = value
		}
	}
	return seen["ringlimit_members"] == strconv.Itoa(members) &&
		seen["ringlimit_partitions_acquiring"] == "0" &&
		(!copies || seen["ringlimit_partitions_unguarded"] == "0"), nil
}
