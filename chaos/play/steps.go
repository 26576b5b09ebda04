package play

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/ringlimit/ringlimit/chaos/attack"
	"github.com/ringlimit/ringlimit/chaos/cluster"
	"github.com/ringlimit/ringlimit/chaos/history"
	"github.com/ringlimit/ringlimit/chaos/keyspace"
	"github.com/ringlimit/ringlimit/chaos/scenario"
)

func (st *stage) steps(ctx context.Context, steps []scenario.Step) error {
	for i := range steps {
		s := &steps[i]
		if s.Repeat != nil {
			if err := st.repeat(ctx, s.Repeat); err != nil {
				return err
			}
			continue
		}
		st.meter.begin(describe(s))
		if err := st.step(ctx, s); err != nil {
			return fmt.Errorf("line %d (%s): %w", s.Line, describe(s), err)
		}
	}
	return nil
}

// repeat does its steps as often as the file says, or, when the caller gave a
// duration, until that has passed.
func (st *stage) repeat(ctx context.Context, r *scenario.Repeat) error {
	began := time.Now()
	for n := 0; ; n++ {
		if st.Duration == 0 && n == r.Times || st.Duration > 0 && n > 0 && time.Since(began) >= st.Duration {
			return nil
		}
		if err := st.steps(ctx, r.Steps); err != nil {
			return fmt.Errorf("round %d: %w", n+1, err)
		}
	}
}

func (st *stage) step(ctx context.Context, s *scenario.Step) error {
	switch {
	case s.Load != nil:
		st.load.Set(s.Load.Steady, s.Load.Bursty)
	case s.Fill != nil:
		return within(ctx, s.Fill.Within, func(ctx context.Context) error { return st.clients.Fill(ctx, st.keys.Current()) })
	case s.Flood != nil:
		return within(ctx, s.Flood.Within, func(ctx context.Context) error { return st.clients.Flood(ctx, st.keys.Once()) })
	case s.Wait > 0:
		return wait(ctx, s.Wait)
	case s.Fresh:
		st.keys.Fresh()
	case s.Settle > 0:
		return st.settle(ctx, s.Settle)
	case s.Resets != "":
		return st.resets(ctx, s.Resets)
	case s.Limit != nil:
		return st.limit(ctx, s.Limit)
	default:
		return st.disturb(ctx, s)
	}
	return nil
}

// disturb does the steps that happen to nodes.
func (st *stage) disturb(ctx context.Context, s *scenario.Step) error {
	switch {
	case s.Join != nil:
		return st.join(ctx, s.Join)
	case s.Signal != nil:
		return st.signal(ctx, s.Signal)
	case s.Pause != nil:
		return st.pause(ctx, s.Pause)
	case s.Restart != nil:
		return st.restart(ctx, s.Restart)
	case s.Attack != nil:
		return st.attack(ctx, s.Attack)
	case s.Random != nil:
		return st.random(ctx, s.Random)
	case s.Cut != nil:
		return st.cut(s.Cut)
	case s.Heal:
		return st.heal()
	}
	nodes, err := st.choose(ctx, s.Start)
	if err != nil {
		return err
	}
	return st.cluster.Start(0, nodes...)
}

func (st *stage) cut(c *scenario.Cut) error {
	st.history.Mark(history.Event{Kind: history.Cut, Node: history.NoNode, Text: describeCut(c)})
	return st.links.Cut(c)
}

func (st *stage) heal() error {
	defer st.history.Mark(history.Event{Kind: history.Healed, Node: history.NoNode})
	return st.links.Heal()
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

func (st *stage) join(ctx context.Context, j *scenario.Join) error {
	var nodes []*cluster.Node
	for range j.Count {
		n, err := st.cluster.Add(cluster.Stranger{Secret: j.Alien, Binary: st.Builds[j.Build], Refused: j.Refused != ""})
		if err != nil {
			return err
		}
		nodes = append(nodes, n)
	}
	err := st.cluster.Start(j.Clock, nodes...)
	switch {
	case err != nil:
		return err
	case j.Refused != "":
		return within(ctx, bootTime, func(ctx context.Context) error { return cluster.AwaitRefused(ctx, j.Refused, nodes...) })
	case j.Ready:
		return within(ctx, bootTime, func(ctx context.Context) error { return st.cluster.AwaitReady(ctx, nodes...) })
	}
	return nil
}

// signal ends nodes, all at once, and waits for their end.
func (st *stage) signal(ctx context.Context, s *scenario.Signal) error {
	nodes, err := st.choose(ctx, s.Who)
	if err != nil {
		return err
	}
	if err := st.end(ctx, s.Kill, nodes); err != nil || s.Wait == 0 {
		return err
	}
	return gone(ctx, s.Wait, nodes)
}

func (st *stage) end(ctx context.Context, kill bool, nodes []*cluster.Node) error {
	if !kill {
		for _, n := range nodes {
			if err := n.Terminate(); err != nil {
				return err
			}
		}
		return nil
	}
	owned, err := st.owned(ctx, nodes)
	if err != nil {
		return err
	}
	for _, n := range nodes {
		if err := n.Kill(owned[n.Name]); err != nil {
			return err
		}
	}
	return nil
}

func gone(ctx context.Context, d time.Duration, nodes []*cluster.Node) error {
	return within(ctx, d, func(ctx context.Context) error {
		return cluster.Await(ctx, func(context.Context) error { return allDown(nodes) })
	})
}

func allDown(nodes []*cluster.Node) error {
	for _, n := range nodes {
		if !n.Down() {
			return fmt.Errorf("%s has not ended; see %s", n.Name, n.Log())
		}
	}
	return nil
}

func (st *stage) pause(ctx context.Context, p *scenario.Pause) error {
	nodes, err := st.choose(ctx, p.Who)
	if err != nil {
		return err
	}
	for _, n := range nodes {
		if err := n.Pause(); err != nil {
			return err
		}
	}
	if err := wait(ctx, p.For); err != nil {
		return err
	}
	for _, n := range nodes {
		if err := n.Resume(); err != nil {
			return err
		}
	}
	return nil
}

// exitTime is how long a node may take from SIGTERM to its end when it is
// restarted: longer than it waits for its last requests and its goodbye.
const exitTime = 40 * time.Second

func (st *stage) restart(ctx context.Context, r *scenario.Restart) error {
	nodes, err := st.choose(ctx, r.Who)
	if err != nil {
		return err
	}
	for _, n := range nodes {
		if err := st.restartOne(ctx, n, r); err != nil {
			return fmt.Errorf("%s: %w", n.Name, err)
		}
	}
	return nil
}

func (st *stage) restartOne(ctx context.Context, n *cluster.Node, r *scenario.Restart) error {
	one := []*cluster.Node{n}
	if err := st.end(ctx, r.Kill, one); err != nil {
		return err
	}
	if err := gone(ctx, exitTime, one); err != nil {
		return err
	}
	if err := wait(ctx, r.Down); err != nil {
		return err
	}
	if r.Settle == 0 {
		return st.cluster.Start(0, n)
	}
	if err := st.bring(ctx, n); err != nil {
		return err
	}
	return st.settle(ctx, r.Settle)
}

// attack has strangers bother nodes while the load goes on.
func (st *stage) attack(ctx context.Context, a *scenario.Attack) error {
	nodes, err := st.choose(ctx, a.Who)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, a.For)
	defer cancel()
	var attacks sync.WaitGroup
	defer attacks.Wait()
	for _, n := range nodes {
		switch a.Kind {
		case scenario.Garbage:
			for _, p := range n.Ports() {
				seed := st.rand.Uint64()
				attacks.Go(func() { attack.Garbage(ctx, p, seed) })
			}
		case scenario.SlowHeaders:
			attacks.Go(func() { attack.SlowHeaders(ctx, n.Ports()[0], a.Connections) })
		}
	}
	return nil
}

// limit changes a rule at a node. A node that does not take it breaks a promise.
func (st *stage) limit(ctx context.Context, l *scenario.Limit) error {
	nodes, err := st.choose(ctx, l.Node)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(st.Counts, func(c scenario.Class) bool { return c.Name == l.Class })
	for _, n := range nodes {
		st.history.Mark(history.Event{Kind: history.Note, Node: n.Number, Text: fmt.Sprintf("limit of %s to %d at %s", l.Class, l.To, n.Name)})
		if err := n.SetRule(ctx, keyspace.Rule(&st.Counts[i], l.To)); err != nil {
			return stuck{err}
		}
	}
	return nil
}

// resets notes when budgets are back, or compares with the note.
func (st *stage) resets(ctx context.Context, what scenario.Resets) error {
	at, err := st.clients.Resets(ctx, st.keys.Current())
	if err != nil {
		return stuck{err}
	}
	if what == scenario.NoteResets {
		st.noted = at
		return nil
	}
	for key, now := range at {
		if before, ok := st.noted[key]; ok {
			st.moved = max(st.moved, now.Sub(before).Abs())
		}
	}
	return nil
}
