package play

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/ringlimit/ringlimit/chaos/cluster"
	"github.com/ringlimit/ringlimit/chaos/scenario"
)

// choose finds the nodes that a target means now.
func (st *stage) choose(ctx context.Context, t scenario.Target) ([]*cluster.Node, error) {
	running := st.cluster.Running()
	switch t {
	case scenario.All:
		return running, nil
	case scenario.Down:
		return slices.DeleteFunc(st.cluster.Nodes(), func(n *cluster.Node) bool { return !n.Down() }), nil
	case scenario.OwnerOf, scenario.Standby, scenario.Pair:
		return st.responsible(ctx, t)
	}
	if number, err := strconv.Atoi(string(t)); err == nil {
		nodes := st.cluster.Nodes()
		if number >= len(nodes) {
			return nil, fmt.Errorf("there is no node %d; the last is %d", number, len(nodes)-1)
		}
		return nodes[number : number+1], nil
	}
	if len(running) == 0 {
		return nil, fmt.Errorf("no node runs, so none can be chosen as %q", t)
	}
	at := st.rand.IntN(len(running))
	switch t {
	case scenario.Any:
		return running[at : at+1], nil
	case scenario.AllButA:
		return slices.Delete(running, at, at+1), nil
	}
	return running[len(running)-1:], nil // the newest
}

// named finds a running node by its name.
func (st *stage) named(name string) (*cluster.Node, error) {
	for _, n := range st.cluster.Running() {
		if n.Name == name {
			return n, nil
		}
	}
	return nil, fmt.Errorf("the first key's owner is said to be %q, which does not run", name)
}

func (st *stage) responsible(ctx context.Context, t scenario.Target) ([]*cluster.Node, error) {
	if t != scenario.OwnerOf {
		return nil, fmt.Errorf("the target %q is not known here", t)
	}
	running := st.cluster.Running()
	if len(running) == 0 {
		return nil, fmt.Errorf("no node runs, so none owns a key")
	}
	key := st.keys.Key(0)
	name, err := running[0].Owner(ctx, st.keys.Name(key), st.keys.Route(key))
	if err != nil {
		return nil, err
	}
	n, err := st.named(name)
	return []*cluster.Node{n}, err
}

// sample bounds for how many keys the owner is looked up.
const sample = 500

// owned lists, by node, the current keys that one of the doomed owns, as a
// survivor sees it. Without a survivor there is nobody left to ask.
func (st *stage) owned(ctx context.Context, doomed []*cluster.Node) (map[string][]uint32, error) {
	owned := map[string][]uint32{}
	survivors := slices.DeleteFunc(st.cluster.Running(), func(n *cluster.Node) bool { return slices.Contains(doomed, n) || !n.Ready() })
	if len(survivors) == 0 {
		return owned, nil
	}
	keys := st.keys.Current()
	st.rand.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	for _, key := range keys[:min(len(keys), sample)] {
		name, err := survivors[0].Owner(ctx, st.keys.Name(key), st.keys.Route(key))
		if err != nil {
			return nil, err
		}
		owned[name] = append(owned[name], key)
	}
	return owned, nil
}
