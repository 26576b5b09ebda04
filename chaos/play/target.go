package play

import (
	"context"
	"errors"
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

// responsible finds the first key's owner, its standby, or both.
func (st *stage) responsible(ctx context.Context, t scenario.Target) ([]*cluster.Node, error) {
	running := st.cluster.Running()
	if len(running) == 0 {
		return nil, errors.New("no node runs, so none owns a key")
	}
	key := st.keys.Key(0)
	at, err := running[0].Locate(ctx, st.keys.Name(key), st.keys.Route(key))
	if err != nil {
		return nil, err
	}
	owner, err := st.named(at.Owner)
	if err != nil || t == scenario.OwnerOf {
		return []*cluster.Node{owner}, err
	}
	standby, err := st.standby(ctx, owner, at.Partition)
	if t == scenario.Standby {
		return []*cluster.Node{standby}, err
	}
	return []*cluster.Node{owner, standby}, err
}

func (st *stage) standby(ctx context.Context, owner *cluster.Node, partition int) (*cluster.Node, error) {
	r, err := owner.Ring(ctx)
	if err != nil {
		return nil, err
	}
	if partition >= len(r.Partitions) {
		return nil, fmt.Errorf("%s knows no partition %d", owner.Name, partition)
	}
	return st.named(r.Partitions[partition].Standby)
}

// named finds a running node by its name.
func (st *stage) named(name string) (*cluster.Node, error) {
	for _, n := range st.cluster.Running() {
		if n.Name == name {
			return n, nil
		}
	}
	return nil, stuck{fmt.Errorf("the first key's partition is said to be with %q, which does not run", name)}
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
		at, err := survivors[0].Locate(ctx, st.keys.Name(key), st.keys.Route(key))
		if err != nil {
			return nil, err
		}
		owned[at.Owner] = append(owned[at.Owner], key)
	}
	return owned, nil
}
