package load

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Generator makes a steady and a bursty load. It is an open loop: a check is
// sent when it is due, however long others take.
type Generator struct {
	clients *Clients
	hot     int // percent of the load that goes to the first key

	steady, bursty atomic.Int64 // checks a second
	withheld       atomic.Int64 // not sent: too many were under way
	stalled        atomic.Int64 // the longest that the pace was missed by, ns
	underWay       chan struct{}
	running        sync.WaitGroup
}

const (
	pace        = 5 * time.Millisecond // how often the steady load looks what is due
	burstEvery  = 500 * time.Millisecond
	maxUnderWay = 2_000 // bounds goroutines and connections when nobody answers
)

// NewGenerator makes a generator that is silent until Set.
func NewGenerator(c *Clients, hot int) *Generator {
	return &Generator{clients: c, hot: hot, underWay: make(chan struct{}, maxUnderWay)}
}

// Set changes the load: checks a second that come evenly, and that come in
// bursts.
func (g *Generator) Set(steady, bursty int) {
	g.steady.Store(int64(steady))
	g.bursty.Store(int64(bursty))
}

// Withheld counts checks that were due and not sent.
func (g *Generator) Withheld() int64 { return g.withheld.Load() }

// Stalled is the longest time for which the load stood still because the machine
// gave the harness no time: nodes beside it fared no better.
func (g *Generator) Stalled() time.Duration { return time.Duration(g.stalled.Load()) }

// Run makes load until ctx ends, and then waits for the checks under way, which
// abandon ends.
func (g *Generator) Run(ctx, abandon context.Context) {
	tick := time.NewTicker(pace)
	defer tick.Stop()
	defer g.running.Wait()
	last := time.Now()
	burst, owed := last, 0.0
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			now := time.Now()
			g.stalled.Store(max(g.stalled.Load(), int64(now.Sub(last)-pace)))
			owed += now.Sub(last).Seconds() * float64(g.steady.Load())
			last = now
			due := int(owed)
			owed -= float64(due)
			if now.Sub(burst) >= burstEvery {
				burst = now
				due += int(float64(g.bursty.Load()) * burstEvery.Seconds())
			}
			g.send(abandon, due)
		}
	}
}

func (g *Generator) send(ctx context.Context, n int) {
	for range n {
		select {
		case g.underWay <- struct{}{}:
		default:
			g.withheld.Add(1)
			continue
		}
		key := g.choose()
		g.running.Go(func() {
			defer func() { <-g.underWay }()
			g.clients.Check(ctx, key)
		})
	}
}

func (g *Generator) choose() uint32 {
	keys := g.clients.Keys
	if g.hot > 0 && g.clients.intn(100) < g.hot {
		return keys.Key(0)
	}
	return keys.Key(g.clients.intn(keys.Size()))
}
