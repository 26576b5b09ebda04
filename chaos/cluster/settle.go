package cluster

import (
	"bytes"
	"context"
	"fmt"
	"os"
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
	var last error
	for {
		err := holds(ctx)
		switch {
		case err == nil:
			return nil
		case last == nil || ctx.Err() == nil: // else it may be about ctx's end only
			last = err
		}
		select {
		case <-ctx.Done():
			return last
		case <-tick.C:
		}
	}
}

// AwaitReady waits until all of the nodes are ready. It does not wait for one
// that is gone: the error is an *Ended.
func (c *Cluster) AwaitReady(ctx context.Context, nodes ...*Node) error {
	var gone *Ended
	err := Await(ctx, func(context.Context) error {
		for _, n := range nodes {
			switch {
			case n.Ready():
			case n.Down():
				gone = n.ended()
				return nil
			default:
				return fmt.Errorf("%s is not ready", n.Name)
			}
		}
		return nil
	})
	if gone != nil {
		return gone
	}
	return err
}

// Ended is the error of a node that ended before it was ready.
type Ended struct {
	Name string
	Code int    // what it ended with, -1 for a signal
	Last string // line of its log
}

func (e *Ended) Error() string {
	return fmt.Sprintf("%s ended before it was ready, with exit code %d: %s", e.Name, e.Code, e.Last)
}

// ended describes the last process of a node that is down.
func (n *Node) ended() *Ended {
	n.mu.Lock()
	defer n.mu.Unlock()
	e := &Ended{Name: n.Name, Code: -1}
	if n.proc != nil {
		e.Code = n.proc.ExitCode()
	}
	if log, err := os.ReadFile(n.Log()); err == nil {
		log = bytes.TrimSpace(log)
		e.Last = string(log[bytes.LastIndexByte(log, '\n')+1:])
	}
	return e
}

// Settled says why the cluster is not at rest. It is when all that run are
// ready, each sees all of them serving and nobody else, and every partition has
// one holder, its owner.
func (c *Cluster) Settled(ctx context.Context) error {
	running := c.Running()
	if err := seeEachOther(ctx, running); err != nil {
		return err
	}
	return holdAll(ctx, running)
}

func seeEachOther(ctx context.Context, running []*Node) error {
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

func holdAll(ctx context.Context, running []*Node) error {
	held, all, fingerprint := 0, 0, ""
	for i, n := range running {
		r, err := n.Ring(ctx)
		switch {
		case err != nil:
			return err
		case i > 0 && r.Fingerprint != fingerprint:
			return fmt.Errorf("%s and %s see other rings", running[0].Name, n.Name)
		case r.Incoming > 0 || r.Outgoing > 0:
			return fmt.Errorf("%s has %d partitions incoming and %d outgoing", n.Name, r.Incoming, r.Outgoing)
		}
		fingerprint = r.Fingerprint
		held += r.Phases["holding"]
		all = len(r.Partitions)
	}
	if held != all {
		return fmt.Errorf("%d of %d partitions are held", held, all)
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
