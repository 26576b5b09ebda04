package transfer

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ringlimit/ringlimit/limit"
	"github.com/ringlimit/ringlimit/membership"
	"github.com/ringlimit/ringlimit/owner"
	"github.com/ringlimit/ringlimit/ring"
)

const benchPartitions = 1024

// cluster is cores that talk to each other without a network.
type cluster struct {
	now   int64
	rings map[string]*ring.Ring
	nodes []*peer
}

func (c *cluster) ringOf(ids []membership.NodeID) *ring.Ring {
	key := fmt.Sprint(ids)
	if c.rings[key] == nil {
		p := ring.Defaults()
		p.Partitions = benchPartitions
		r, err := ring.New(p, ids)
		if err != nil {
			panic(err)
		}
		c.rings[key] = r
	}
	return c.rings[key]
}

func newCluster(n int) *cluster {
	c := &cluster{now: int64(1_700_000_000) * int64(time.Second), rings: map[string]*ring.Ring{}}
	for i := range n {
		c.add(membership.NodeID(fmt.Sprintf("n%02d", i)))
	}
	c.acquaint()
	return c
}

func (c *cluster) add(id membership.NodeID) *peer {
	p := &peer{table: owner.NewTable(owner.Config{Partitions: benchPartitions, Memory: 4 << 30})}
	p.Core = New(Config{Self: record(id, membership.Joining), Partitions: benchPartitions, Ring: c.ringOf, Store: p.table, Chunk: 512}, c.now)
	c.nodes = append(c.nodes, p)
	return p
}

// acquaint lets all know each other, serve and settle down.
func (c *cluster) acquaint() {
	var all []Record
	for _, p := range c.nodes {
		r := p.Self()
		r.Seq, r.State = 2, membership.Serving
		all = append(all, r)
	}
	for _, p := range c.nodes {
		p.Learn(c.now, slices.DeleteFunc(slices.Clone(all), func(r Record) bool { return r.ID == p.Self().ID }))
		if p.Self().State == membership.Joining {
			p.Become(c.now, membership.Serving)
		}
	}
	c.talk()
}

// talk carries messages until nobody has anything to say.
func (c *cluster) talk() (messages int) {
	for quiet := false; !quiet; {
		quiet = true
		for _, p := range c.nodes {
			for _, a := range p.Actions() {
				s, ok := a.(Send)
				if !ok {
					continue
				}
				i := slices.IndexFunc(c.nodes, func(q *peer) bool { return q.Self().ID == s.To })
				c.nodes[i].Receive(c.now, p.Self().ID, 1, s.Message)
				quiet = false
				messages++
			}
		}
	}
	return messages
}

// BenchmarkTick is one tick of a node among twenty that hold all there is.
func BenchmarkTick(b *testing.B) {
	c := newCluster(20)
	p := c.nodes[0]
	if p.Unguarded() > 0 || p.Acquiring() > 0 {
		b.Fatalf("%d, %d", p.Unguarded(), p.Acquiring())
	}
	b.ReportAllocs()
	for b.Loop() {
		c.now += 10 * ms
		p.fence.contact = c.now // the others answer
		p.Tick(c.now)
		p.Actions()
	}
}

// chargeable is a node with a standby, and some of its partitions.
func chargeable(b *testing.B, n int) (c *cluster, p *peer, mine []int) {
	c = newCluster(2)
	p = c.nodes[0]
	for i := range benchPartitions {
		if p.Phase(i) == owner.Holding && len(mine) < n {
			mine = append(mine, i)
		}
	}
	if len(mine) < n || p.Unguarded() > 0 {
		b.Fatalf("it holds %d partitions", len(mine))
	}
	return c, p, mine
}

// BenchmarkOwe sends what 64 partitions owe, one counter each, and takes the
// acknowledgement.
func BenchmarkOwe(b *testing.B) {
	c, p, mine := chargeable(b, 64)
	b.ReportAllocs()
	for n := uint64(0); b.Loop(); n++ {
		for _, i := range mine {
			p.Charge(i, owner.ID{Lo: n % 8}, 1, 100, nil)
		}
		p.Owe(c.now)
		c.talk()
	}
}

// counters is where charges go: so many counters in so many partitions.
const benchCounters = 1 << 13

// BenchmarkCharge compares a charge with what nobody could do without: a lock
// and an entry in a map.
func BenchmarkCharge(b *testing.B) {
	c, p, mine := chargeable(b, 64)
	ids := make([]owner.ID, benchCounters)
	for i := range ids {
		ids[i] = owner.Seed(1).ID([]byte(fmt.Sprint(i)))
	}
	floors := make([]struct {
		sync.Mutex
		m map[owner.ID]int64
	}, len(mine))
	floor := func(n int) {
		f := &floors[n%len(mine)]
		f.Lock()
		defer f.Unlock()
		if f.m == nil {
			f.m = map[owner.ID]int64{}
		}
		f.m[ids[n%benchCounters]]++
	}
	charge := func(n int) { p.Charge(mine[n%len(mine)], ids[n%benchCounters], 1, 1<<40, nil) }
	clear := func() {
		for i := range floors {
			floors[i].m = nil
		}
		p.Owe(c.now)
		c.talk()
	}
	best := func(f func(int)) time.Duration {
		least := time.Hour
		for range 5 {
			clear()
			start := time.Now()
			for n := range 4 * benchCounters {
				f(n)
			}
			least = min(least, time.Since(start))
		}
		return least
	}
	ours, floored := best(charge), best(floor)
	clear()
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		if charge(n); n%benchCounters == benchCounters-1 {
			b.StopTimer()
			clear()
			b.StartTimer()
		}
	}
	b.ReportMetric(float64(ours.Nanoseconds())/(4*benchCounters), "best-ns/charge")
	b.ReportMetric(float64(ours)/float64(floored), "map-under-lock/ratio")
}

// BenchmarkChargeWhole is a charge with all that follows of it: every 64th time
// what is owed is sent, kept by the standby and acknowledged.
func BenchmarkChargeWhole(b *testing.B) {
	for _, slack := range []int64{0, 1 << 40} {
		b.Run(map[bool]string{true: "sync", false: "auto"}[slack == 0], func(b *testing.B) {
			c, p, mine := chargeable(b, 64)
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				p.Charge(mine[n%len(mine)], owner.ID{Lo: uint64(n % 1000)}, 1, slack, c)
				if n%64 == 63 {
					p.Owe(c.now)
					c.talk()
				}
			}
		})
	}
}

// BenchmarkChargeParallel is what deciding goroutines pay for each other.
func BenchmarkChargeParallel(b *testing.B) {
	c, p, mine := chargeable(b, 64)
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
				p.Owe(c.now)
				c.talk()
			}
		}
	}()
	b.RunParallel(func(pb *testing.PB) {
		for n := 0; pb.Next(); n++ {
			p.Charge(mine[n%len(mine)], owner.ID{Lo: uint64(n % 1000)}, 1, 1<<40, nil)
		}
	})
	close(stop)
	<-done
}

// BenchmarkJoinMillion moves half of a million counters to a second node, and a
// copy of the other half: all but the network.
func BenchmarkJoinMillion(b *testing.B) {
	const n = 1_000_000
	r, err := limit.NewRule(limit.Spec{Algorithm: limit.TokenBucket, Limit: 100, Window: time.Hour})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	moved, took := 0, time.Duration(0)
	for b.Loop() {
		b.StopTimer()
		c := newCluster(1)
		first := c.nodes[0]
		for i := range n {
			name := fmt.Appendf(nil, "client-%07d", i)
			id := owner.Seed(1).ID(name)
			call := owner.Call{ID: id, Partition: int(id.Hi % benchPartitions), Charge: limit.Charge{Counter: name, Rule: r, Cost: 1}}
			var v limit.Verdict
			if err := first.table.Decide(c.now, &call, &v); err != nil {
				b.Fatal(err)
			}
		}
		second := c.add("n01")
		b.StartTimer()
		start := time.Now()
		c.acquaint()
		took += time.Since(start)
		b.StopTimer()
		moved += int(second.table.Stats().Counters + first.table.Stats().Counters)
		if second.Acquiring() != 0 || first.Unguarded() != 0 || second.Unguarded() != 0 {
			b.Fatalf("not all has moved: %d, %d, %d", second.Acquiring(), first.Unguarded(), second.Unguarded())
		}
		b.StartTimer()
	}
	b.ReportMetric(float64(moved-n*b.N)/took.Seconds(), "counters-moved-or-copied/s")
	b.ReportMetric(took.Seconds()/float64(b.N), "s/join")
}
