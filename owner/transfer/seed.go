package transfer

import (
	"slices"

	"github.com/ringlimit/ringlimit/membership"
	"github.com/ringlimit/ringlimit/owner"
)

// seed is how far a new standby has got with all counters that a partition has,
// one part after the other. What is charged meanwhile goes beside it.
type seed struct {
	step   seedStep
	queued bool         // it is in Core.unsown
	from   owner.Cursor // where the part on its way begins
	part   uint64       // its number; 0 when it is yet to leave
	rest   Chunk        // where the next begins
	left   int64        // when it left
}

type seedStep uint8

const (
	unsown seedStep = iota
	sowing          // it is this partition's turn
	sown
)

// pumpSeed sends the next part when the last has arrived. A node is given a few
// partitions at a time: more would hold up what replies wait for.
func (c *Core) pumpSeed(p int) {
	r := &c.parts[p].replica
	switch {
	case r.seed.step == unsown && c.sowing[r.to] < pullsAtOnce:
		r.seed.step = sowing
		c.sowing[r.to]++
	case r.seed.step == unsown && !r.seed.queued:
		r.seed.queued = true
		c.unsown = append(c.unsown, p)
	}
	if r.seed.step == sowing && r.seed.part == 0 {
		c.sow(p)
	}
}

// reseed begins anew: counters have come that nobody has charged here. Replies
// wait for their charges all the same.
func (c *Core) reseed(p int) {
	r := &c.parts[p].replica
	if r.seed.step == sowing {
		c.endSeed(r.to)
	}
	r.seed = seed{queued: r.seed.queued}
	c.pump(p)
}

// sow sends the next part of the seed, or the last one again. It has a new
// number: another part, of counters that changed meanwhile, is not it. Counters
// that want no copy are left out; they only travel when the partition does.
func (c *Core) sow(p int) {
	r := &c.parts[p].replica
	chunk := c.export(p, r.seed.from)
	all := len(chunk.Entries)
	chunk.Entries = slices.DeleteFunc(chunk.Entries, func(e owner.Entry) bool { return e.Rule.Slack() < 0 })
	if kept := len(chunk.Entries); kept < all {
		chunk.Counters, chunk.Names = chunk.Counters*kept/all, chunk.Names*kept/all // as a guess for the rest
	}
	r.seed.part, r.seed.left = c.accounts[p].next(), c.now
	c.copies.add(r.to, Copy{Partition: p, Stream: r.stream, Number: r.seed.part, Chunk: chunk})
	chunk.Entries = nil
	r.seed.rest = chunk
}

// sown takes note that the part on its way has arrived.
func (c *Core) sown(p int) {
	r := &c.parts[p].replica
	r.seed.from, r.seed.part = r.seed.rest.Next, 0
	if r.seed.rest.More {
		return
	}
	r.seed.step = sown
	c.endSeed(r.to)
	c.accounts[p].complete()
}

// endSeed lets others have their turn, at the end of the event.
func (c *Core) endSeed(to membership.NodeID) {
	c.sowing[to]--
	c.turn = true
}

// seedNext begins with those whose turn has come.
func (c *Core) seedNext() {
	c.turn = false
	c.unsown = slices.DeleteFunc(c.unsown, func(p int) bool {
		r := &c.parts[p].replica
		if r.to != "" && r.seed.step == unsown && c.sowing[r.to] >= pullsAtOnce {
			return false
		}
		r.seed.queued = false
		c.pump(p)
		return true
	})
}
