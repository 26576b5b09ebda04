package transfer

import (
	"slices"

	"github.com/ringlimit/ringlimit/membership"
)

// outgoing collects what one event has to say to each node, so that it leaves
// in one message.
type outgoing[T any] []letter[T]

type letter[T any] struct {
	to    membership.NodeID
	items []T
}

func (o *outgoing[T]) add(to membership.NodeID, item T) {
	i := slices.IndexFunc(*o, func(l letter[T]) bool { return l.to == to })
	if i < 0 {
		i = len(*o)
		*o = append(*o, letter[T]{to: to})
	}
	(*o)[i].items = append((*o)[i].items, item)
}

// take empties it.
func (o *outgoing[T]) take() []letter[T] {
	all := *o
	*o = nil
	return all
}

// flush sends what was collected.
func (c *Core) flush() {
	for _, l := range c.acks.take() {
		c.send(l.to, &Ack{l.items})
	}
	for _, l := range c.nacks.take() {
		c.send(l.to, &Nack{l.items})
	}
	for _, l := range c.copies.take() {
		c.sendCopies(l.to, l.items)
	}
	for _, l := range c.asks.take() {
		c.send(l.to, &Acquire{c.view.snapshot(c.now), c.absent(), l.items})
	}
}

func (c *Core) sendCopies(to membership.NodeID, copies []Copy) {
	fill(copies, c.cfg.Chunk, func(k *Copy) int { return weight(k.Chunk.Entries) }, func(some []Copy) {
		c.send(to, &Replicate{some})
	})
}

func (c *Core) sendParts(to membership.NodeID, parts []Part) {
	fill(parts, c.cfg.Chunk, func(p *Part) int { return weight(p.Chunk.Entries) }, func(some []Part) {
		c.send(to, &Answers{c.view.snapshot(c.now), some})
	})
}

// fill cuts items into messages of about so many counters each.
func fill[T any](items []T, most int, size func(*T) int, send func([]T)) {
	for len(items) > 0 {
		n, sum := 1, size(&items[0])
		for n < len(items) && sum+size(&items[n]) <= most {
			sum += size(&items[n])
			n++
		}
		send(items[:n:n])
		items = items[n:]
	}
}

// absent lists the members whose process refuses our connections.
func (c *Core) absent() (ids []membership.NodeID) {
	for i := range c.view.members {
		if m := &c.view.members[i]; c.now < m.refused && m.State != Dead {
			ids = append(ids, m.ID)
		}
	}
	return ids
}
