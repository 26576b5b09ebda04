package play

import (
	"context"
	"fmt"
	"time"

	"github.com/ringlimit/ringlimit/chaos/cluster"
	"github.com/ringlimit/ringlimit/chaos/scenario"
)

// random does one harm after another, each to keys of its own, which are used up
// after it. Then the cluster is as large as it was.
func (st *stage) random(ctx context.Context, r *scenario.Random) error {
	d := r.For
	if st.Duration > 0 {
		d = st.Duration
	}
	for began := time.Now(); time.Since(began) < d; {
		kind := r.Kinds[st.rand.IntN(len(r.Kinds))]
		st.meter.say("random harm: " + kind)
		if err := st.trial(ctx, r, kind); err != nil {
			return fmt.Errorf("%s, after %v: %w", kind, time.Since(began).Round(time.Second), err)
		}
	}
	return nil
}

func (st *stage) trial(ctx context.Context, r *scenario.Random, kind string) error {
	st.keys.Fresh()
	if err := wait(ctx, r.Pause); err != nil {
		return err
	}
	if err := st.harm(ctx, kind); err != nil {
		return err
	}
	return within(ctx, recovery, func(ctx context.Context) error { return st.clients.Fill(ctx, st.keys.Current()) })
}

// Bounds on one random harm.
const (
	longestPause = 5 * time.Second
	longestCut   = 10 * time.Second
	recovery     = 60 * time.Second // until all see each other again
)

func (st *stage) upTo(d time.Duration) time.Duration { return time.Duration(st.rand.Int64N(int64(d))) }

func (st *stage) harm(ctx context.Context, kind string) error {
	switch kind {
	case "pause":
		return st.pause(ctx, &scenario.Pause{Who: scenario.Any, For: st.upTo(longestPause)})
	case "cut":
		return st.cutOne(ctx)
	case "join":
		if err := st.join(ctx, &scenario.Join{Count: 1, Ready: true}); err != nil {
			return err
		}
		return st.leaveAndSettle(ctx, false)
	}
	if err := st.leaveAndSettle(ctx, kind == "kill"); err != nil {
		return err
	}
	return st.join(ctx, &scenario.Join{Count: 1, Ready: true})
}

func (st *stage) leaveAndSettle(ctx context.Context, kill bool) error {
	if err := st.signal(ctx, &scenario.Signal{Kill: kill, Who: scenario.Any, Wait: exitTime}); err != nil {
		return err
	}
	return st.settle(ctx, recovery)
}

// cutOne cuts a node off from all others for a while.
func (st *stage) cutOne(ctx context.Context) error {
	running := st.cluster.Running()
	at := st.rand.IntN(len(running))
	cut := &scenario.Cut{From: []int{running[at].Number}, To: others(running, at), Both: true, Percent: 100}
	if err := st.cut(cut); err != nil {
		return err
	}
	if err := wait(ctx, st.upTo(longestCut)); err != nil {
		return err
	}
	if err := st.heal(); err != nil {
		return err
	}
	return st.settle(ctx, recovery)
}

func others(nodes []*cluster.Node, but int) (numbers []int) {
	for i, n := range nodes {
		if i != but {
			numbers = append(numbers, n.Number)
		}
	}
	return numbers
}
