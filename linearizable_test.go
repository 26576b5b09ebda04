package ringlimit

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/ringlimit/ringlimit/limit"
)

// Rules under which the clock is as good as frozen: in the minutes that a run
// takes no counter gets a whole unit back.
const frozenRules = `
tiers:
  log:
    - {name: all, algorithm: sliding_window_log, limit: 20, window: 24h, durability: sync, on_failure: deny}
  counter:
    - {name: all, algorithm: sliding_window_counter, limit: 20, window: 24h, durability: sync, on_failure: deny}
  window:
    - {name: all, algorithm: fixed_window, limit: 20, window: 24h, durability: sync, on_failure: deny}
  bucket:
    - {name: all, algorithm: token_bucket, limit: 20, window: 24h, durability: sync, on_failure: deny}
  queue:
    - {name: all, algorithm: leaky_bucket, limit: 20, window: 24h, burst: 19, durability: sync, on_failure: deny}
`

const frozenLimit = 20

var frozenTiers = []string{"log", "counter", "window", "bucket", "queue"}

// entrance is a node that clients may ask.
type entrance struct {
	*Node
	using sync.WaitGroup
}

// entrances are the doors of a cluster, as a load balancer sees them.
type entrances struct {
	mu   sync.Mutex
	open []*entrance
}

func (e *entrances) add(n *Node) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.open = append(e.open, &entrance{Node: n})
}

func (e *entrances) use(ask func(*Node)) {
	e.mu.Lock()
	n := e.open[rand.IntN(len(e.open))]
	n.using.Add(1)
	e.mu.Unlock()
	defer n.using.Done()
	ask(n.Node)
}

// leave ends the node at the given place as the command does: it hands over and
// answers still, then its door closes, then it goes.
func (e *entrances) leave(t *testing.T, i int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	e.mu.Lock()
	n := e.open[i]
	e.mu.Unlock()
	if err := n.Drain(ctx); err != nil {
		t.Errorf("%s: drain: %v", n.Name(), err)
	}
	e.mu.Lock()
	e.open = slices.Delete(e.open, i, i+1)
	e.mu.Unlock()
	n.using.Wait()
	if err := n.Leave(ctx); err != nil {
		t.Errorf("%s: leave: %v", n.Name(), err)
	}
}

// client charges random counters at random nodes until ctx ends; each second
// there is one more in each tier. One that gives back takes two at a time: of
// those a node remembers no denial, which would lawfully outlive a refund
// elsewhere.
func (h *history) client(ctx context.Context, id int, gateways *entrances, givesBack bool) {
	held := map[counter]int{}
	name, cost := "kept", int64(1)
	if givesBack {
		name, cost = "lent", 2
	}
	for began := time.Now(); ctx.Err() == nil; {
		key := fmt.Sprint(name, "-", rand.IntN(1+int(time.Since(began)/time.Second)))
		at := counter{frozenTiers[rand.IntN(len(frozenTiers))], key, givesBack}
		c := charge{refund: held[at] > 0 && rand.IntN(2) == 0, cost: cost}
		gateways.use(func(n *Node) {
			a := h.record(id, at, c, func() answer { return ask(n, at, c) })
			switch {
			case c.refund:
				held[at]--
			case a.allowed && givesBack:
				held[at]++
			}
		})
		time.Sleep(time.Duration(rand.IntN(4)) * 10 * time.Millisecond) // with others, in one instant
	}
}

// batches is client for one who charges several counters at once, some of them twice,
// and gives nothing back.
func (h *history) batches(ctx context.Context, id int, gateways *entrances) {
	for began := time.Now(); ctx.Err() == nil; {
		asked := make([]counter, 1+rand.IntN(8))
		reqs := make([]Request, len(asked))
		for i := range asked {
			key := fmt.Sprint("kept-", rand.IntN(1+int(time.Since(began)/time.Second)))
			asked[i] = counter{frozenTiers[rand.IntN(len(frozenTiers))], key, false}
			reqs[i] = Request{Key: key, Tier: asked[i].tier}
		}
		gateways.use(func(n *Node) {
			call := h.clock.Add(1)
			n.CheckAll(context.Background(), reqs, func(i int, v *Verdict, err error) {
				var a answer
				if err == nil && v.Source != limit.SourceFallback {
					a = answer{true, v.Allowed, v.Remaining}
				}
				h.note(asked[i], porcupine.Operation{ClientId: id, Input: charge{cost: 1}, Call: call}, a)
			})
		})
		time.Sleep(time.Duration(rand.IntN(4)) * 10 * time.Millisecond)
	}
}

func ask(n *Node, at counter, c charge) answer {
	call := n.Check
	if c.refund {
		call = n.Refund
	}
	v, err := call(context.Background(), Request{Key: at.key, Tier: at.tier, Cost: c.cost})
	if err != nil || v.Source == limit.SourceFallback {
		return answer{}
	}
	return answer{true, v.Allowed, v.Remaining}
}

// However nodes come and go, the checks of one key are answered as if there were
// one counter, asked by one client at a time. Refunds hold while nobody comes or
// goes; a move may undo them, since copies are merged to the stricter.
func TestLinearizable(t *testing.T) {
	for name, moves := range map[string]bool{"moving": true, "steady": false} {
		t.Run(name, func(t *testing.T) {
			h := history{asks: map[counter][]porcupine.Operation{}}
			synctest.Test(t, func(t *testing.T) { h.write(t, moves) })
			h.judge(t, moves) // outside, where its time limit is real
			h.demand(t)
		})
	}
}

// write runs clients of a cluster of three, for a while or until it has moved.
func (h *history) write(t *testing.T, moves bool) {
	m, set := newMemory(), parseRules(t, frozenRules)
	gateways := &entrances{}
	for _, n := range cluster(t, m, 3, set) {
		gateways.add(n)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	for id := range 8 {
		clients.Go(func() { h.client(ctx, id, gateways, id%2 == 1) })
	}
	for id := 8; id < 12; id++ {
		clients.Go(func() { h.batches(ctx, id, gateways) })
	}
	if moves {
		gateways.move(t, func(i int) Config { return m.config(t, i, set) })
	} else {
		time.Sleep(3 * time.Second)
	}
	cancel()
	clients.Wait()
	var left []*Node
	for _, n := range gateways.open {
		left = append(left, n.Node)
	}
	stop(t, left...)
}

// move lets a node join, another leave, and restarts all one by one.
func (e *entrances) move(t *testing.T, config func(i int) Config) {
	pause := func() { time.Sleep(time.Second) }
	pause()
	e.add(start(t, config(3)))
	pause()
	e.leave(t, 1)
	pause()
	for range 3 { // the oldest goes, and comes back as the youngest
		i := index(e.open[0])
		e.leave(t, 0)
		cfg := config(i)
		cfg.Join = []string{e.open[0].GossipAddr()}
		e.add(start(t, cfg))
		pause()
	}
}

func index(n *entrance) (i int) {
	fmt.Sscanf(n.Name(), "node-%d", &i)
	return i
}

// demand is what makes the law worth something: counters were used up, and an
// owner decided, however the cluster changed.
func (h *history) demand(t *testing.T) {
	t.Helper()
	var admitted, denied, undecided int
	for _, ops := range h.asks {
		for _, op := range ops {
			switch a := op.Output.(answer); {
			case !a.decided:
				undecided++
			case a.allowed:
				admitted++
			default:
				denied++
			}
		}
	}
	t.Logf("%d counters: %d admitted and given back, %d denied, %d without a verdict", len(h.asks), admitted, denied, undecided)
	if admitted < 300 || denied < 300 {
		t.Error("few counters were used up: the law was not tried")
	}
	if undecided > 0 {
		t.Errorf("%d charges had no verdict of an owner", undecided)
	}
}
