package cluster

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// every is how often a condition is looked at.
const every = 20 * time.Millisecond

// Await waits until holds finds no fault, and says which it found last when ctx
// ends first.
func Await(ctx context.Context, holds func(context.Context) error) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		err := holds(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-tick.C:
		}
	}
}

// AwaitReady waits until all of the nodes are ready.
func (c *Cluster) AwaitReady(ctx context.Context, nodes ...*Node) error {
	return Await(ctx, func(context.Context) error {
		for _, n := range nodes {
			switch {
			case n.Ready():
			case n.Down():
				return fmt.Errorf("%s ended before it was ready; see %s", n.Name, n.Log())
			default:
				return fmt.Errorf("%s is not ready", n.Name)
			}
		}
		return nil
	})
}

// Settled says why the cluster is not at rest: all that run are ready, and each
// sees all of them serving, and nobody else.
func (c *Cluster) Settled(ctx context.Context) error {
	running := c.Running()
	var names []string
	for _, n := range running {
		names = append(names, n.Name)
	}
	slices.Sort(names)
	for _, n := range running {
		if !n.Ready() {
			return fmt.Errorf("%s is not ready", n.Name)
		}
		seen, err := n.Members(ctx)
		if err != nil {
			return err
		}
		if got := serving(seen); !slices.Equal(got, names) {
			return fmt.Errorf("%s sees %v, of those that run: %v", n.Name, got, names)
		}
	}
	return nil
}

// serving lists the members by name; one that is not serving stands out.
func serving(members []Member) []string {
	names := []string{}
	for _, m := range members {
		if m.State == "serving" {
			names = append(names, m.ID)
		} else {
			names = append(names, m.ID+" ("+m.State+")")
		}
	}
	slices.Sort(names)
	return names
}
