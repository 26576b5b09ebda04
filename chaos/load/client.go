package load

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ringlimit/ringlimit/chaos/history"
	"github.com/ringlimit/ringlimit/chaos/keyspace"
)

// Clients ask for keys and record the answers. Safe for concurrent use.
type Clients struct {
	Keys     *keyspace.Space
	History  *history.History
	Doors    func() []Door // that are ready now
	Patience time.Duration // after which an answer is not waited for any more

	homeless atomic.Int64

	mu   sync.Mutex
	rand *rand.Rand
	last string // the last error, for the reader
}

// New makes clients whose choices follow the seed.
func New(c *Clients, seed uint64) *Clients {
	c.rand = rand.New(rand.NewPCG(seed, 1))
	return c
}

func (c *Clients) intn(n int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.rand.IntN(n)
}

// LastError is what went wrong last, or empty.
func (c *Clients) LastError() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last
}

// pick chooses one of the doors, except those that were tried.
func (c *Clients) pick(tried map[int]bool) (Door, bool) {
	var doors []Door
	for _, d := range c.Doors() {
		if !tried[d.Node] {
			doors = append(doors, d)
		}
	}
	if len(doors) == 0 {
		return Door{}, false
	}
	return doors[c.intn(len(doors))], true
}

// call has ask run at a random door, and at another when the connection is
// refused, which proves that nothing was counted. Without any door nothing is
// asked, and ok is false.
func (c *Clients) call(ctx context.Context, ask func(context.Context, *Door) error) (node int, fault history.Fault, ok bool) {
	tried := map[int]bool{}
	for {
		door, found := c.pick(tried)
		if !found {
			return node, history.Refused, len(tried) > 0
		}
		node = door.Node
		err := c.patiently(ctx, &door, ask)
		if fault = faultOf(err); fault != history.Refused {
			c.note(err)
			return node, fault, true
		}
		tried[node] = true
	}
}

func (c *Clients) patiently(ctx context.Context, door *Door, ask func(context.Context, *Door) error) error {
	ctx, cancel := context.WithTimeout(ctx, c.Patience)
	defer cancel()
	return ask(ctx, door)
}

func (c *Clients) note(err error) {
	if err == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = err.Error()
}

// Homeless counts the checks that were not made because no node was ready.
func (c *Clients) Homeless() int64 { return c.homeless.Load() }

// Check asks once for a key.
func (c *Clients) Check(ctx context.Context, key uint32) {
	var got answer
	began := c.History.Now()
	node, fault, ok := c.call(ctx, func(ctx context.Context, d *Door) (err error) {
		got, err = d.check(ctx, c.ask(key))
		return err
	})
	if !ok {
		c.homeless.Add(1)
	}
	if ok && ctx.Err() == nil {
		c.History.Add(record(key, node, fault, &got, began, c.History.Now()))
	}
}

// batch asks for keys in one call, and returns the answers, or nil.
func (c *Clients) batch(ctx context.Context, keys []uint32) []answer {
	asks := make([]ask, len(keys))
	for i, key := range keys {
		asks[i] = c.ask(key)
	}
	var got []answer
	began := c.History.Now()
	node, fault, ok := c.call(ctx, func(ctx context.Context, d *Door) (err error) {
		got, err = d.checks(ctx, asks)
		return err
	})
	if !ok || ctx.Err() != nil {
		return nil
	}
	ended := c.History.Now()
	records := make([]history.Record, len(keys))
	if fault != history.Answered {
		got = make([]answer, len(keys))
	}
	for i, key := range keys {
		records[i] = record(key, node, fault, &got[i], began, ended)
		records[i].Batched = true
	}
	c.History.Add(records...)
	return got
}

func (c *Clients) ask(key uint32) ask { return ask{Key: c.Keys.Name(key), Route: c.Keys.Route(key)} }

func record(key uint32, node int, fault history.Fault, a *answer, began, ended int64) history.Record {
	r := history.Record{Call: began, Return: ended, Key: key, Cost: 1, Node: uint16(node), Fault: fault}
	if fault != history.Answered {
		return r
	}
	source, ok := history.ParseSource(a.Source)
	if !ok {
		r.Fault = history.Wrong
		return r
	}
	r.Source, r.Allowed = source, a.Allowed
	return r
}
