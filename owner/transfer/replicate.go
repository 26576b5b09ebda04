package transfer

import (
	"math"
	"slices"

	"github.com/ringlimit/ringlimit/membership"
	"github.com/ringlimit/ringlimit/owner"
)

const (
	copyMost    = 512     // counters in a batch
	copiesAhead = 2       // batches on their way for one partition
	copyAgain   = 10 * ms // without an acknowledgement
	// silent is how long a standby may say nothing before it is replaced: a
	// paused one would hold up every reply.
	silent = 40 * ms
)

type (
	// Replicate brings counters of partitions that the sender holds to their
	// standby.
	Replicate struct{ Copies []Copy }
	// Copy is some counters of one partition, as they are now.
	Copy struct {
		Partition int
		Stream    uint64 // one for each time that a holder takes a standby
		Number    uint64 // in the stream
		Chunk     Chunk
	}
	// Replicated acknowledges them.
	Replicated struct{ Receipts []Receipt }
	// Receipt repeats what Copy says.
	Receipt struct {
		Partition      int
		Stream, Number uint64
		Refused        bool // the sender holds the partition itself, or has just given it away
	}
	// Drop says that another has the copies now.
	Drop struct{ Partitions []int }
)

func (*Replicate) message()  {}
func (*Replicated) message() {}
func (*Drop) message()       {}

// Pay lets replies go: see Core.Charge.
type Pay struct {
	Partition int
	Tickets   []uint64
}

func (Pay) action() {}

// replica is where a holder's copy goes.
type replica struct {
	credit
	to     membership.NodeID // empty when there is nobody
	boot   membership.BootID
	stream uint64
	heard  int64 // when it last acknowledged, or had nothing to

	// The seed is all counters, one part after the other.
	seeding bool // it is this partition's turn
	seeded  bool
	from    owner.Cursor // where the part on its way begins
	part    uint64       // its number; 0 when it is yet to leave
	rest    Chunk        // where the next begins
	left    int64        // when it left
}

// busy says that the standby owes an acknowledgement.
func (r *replica) busy() bool { return r.to != "" && (r.seeding || len(r.sent) > 0) }

// Charge is the event that a counter of a partition that we hold was charged.
// The reply may go when ticket is 0, or else when Pay names it: then no more
// than slack units of the counter's charges would be lost with this node.
func (c *Core) Charge(now int64, p int, id owner.ID, cost, slack int64) (ticket uint64) {
	c.at(now)
	pt := &c.parts[p]
	r := &pt.replica
	if r.to == "" {
		return 0
	}
	if !r.seeded {
		slack = math.MaxInt64 // it must get there, but nobody waits for it
	}
	ticket = r.charge(id, cost, slack)
	c.pump(p)
	c.flush()
	return ticket
}

// appoint sees to it that a holder's copy goes to the right node.
func (c *Core) appoint(p int) {
	pt := &c.parts[p]
	to := c.standby(p)
	var boot membership.BootID
	if m := c.view.find(to); m != nil {
		boot = m.Boot
	}
	if r := &pt.replica; r.to == to && r.boot == boot {
		return
	}
	c.retire(p)
	if to == "" {
		return
	}
	c.streams++
	r := &pt.replica
	r.to, r.boot, r.stream, r.heard = to, boot, c.streams, c.now
	c.pump(p)
}

// retire ends a copy's stream. Nobody waits any more.
func (c *Core) retire(p int) {
	r := &c.parts[p].replica
	c.pay(p, r.forgive())
	*r = replica{credit: r.credit}
}

func (c *Core) pay(p int, tickets []uint64) {
	if len(tickets) > 0 {
		c.do(Pay{p, tickets})
	}
}

// reappoint looks for standbys where one refused, because it held, too, and does
// no more, and gives seeds their turn that waited for one that was broken off.
func (c *Core) reappoint() {
	for p := range c.parts {
		switch r := &c.parts[p].replica; {
		case c.parts[p].phase != owner.Holding:
		case r.to == "":
			c.appoint(p)
		case !r.seeded && !r.seeding:
			c.pump(p)
		}
	}
}

// standby is who would own the partition if this node died: the owner in the
// ring of the members without it, and without those that were silent.
func (c *Core) standby(p int) membership.NodeID {
	id := c.view.owner(p)
	if id == c.cfg.Self.ID {
		id = ""
		if i := c.view.ring.Standby(p); i >= 0 {
			id = c.view.ring.Nodes()[i]
		}
	}
	if id == "" || !c.mute(id) {
		return id
	}
	ids := slices.DeleteFunc(slices.Clone(c.view.owners), func(id membership.NodeID) bool {
		return id == c.cfg.Self.ID || c.mute(id)
	})
	if len(ids) == 0 {
		return ""
	}
	return ids[c.cfg.Ring(ids).Owner(p)]
}

func (c *Core) mute(id membership.NodeID) bool {
	m := c.view.find(id)
	return m != nil && c.now < m.mute
}

// pump sends what the standby should have.
func (c *Core) pump(p int) {
	r := &c.parts[p].replica
	if r.to == "" {
		return
	}
	if !r.busy() {
		r.heard = c.now
	}
	if !r.seeded && !r.seeding {
		r.seeding = c.seeds(r.to) < pullsAtOnce
	}
	if r.seeding && r.part == 0 {
		c.sow(p)
	}
	for len(r.dirty) > 0 && len(r.sent) < copiesAhead {
		c.sendBatch(p, r.batch(copyMost, c.now))
	}
	if r.busy() {
		c.arm(min(c.now+copyAgain, r.heard+silent))
	}
}

// seeds counts the partitions that a node is being given a seed of. Too many at
// once would hold up what replies wait for.
func (c *Core) seeds(id membership.NodeID) (n int) {
	for p := range c.parts {
		if r := &c.parts[p].replica; r.seeding && r.to == id {
			n++
		}
	}
	return n
}

// seedNext lets partitions whose turn has not come follow those that are done.
func (c *Core) seedNext(id membership.NodeID) {
	free := pullsAtOnce - c.seeds(id)
	for p := 0; p < len(c.parts) && free > 0; p++ {
		if r := &c.parts[p].replica; r.to == id && !r.seeded && !r.seeding {
			c.pump(p)
			free--
		}
	}
}

// sow sends the next part of the seed, or the last one again. It has a new
// number: another part, of counters that changed meanwhile, is not it.
func (c *Core) sow(p int) {
	r := &c.parts[p].replica
	r.rest = c.export(p, r.from)
	r.part, r.left = r.next(), c.now
	c.copies.add(r.to, Copy{Partition: p, Stream: r.stream, Number: r.part, Chunk: r.rest})
	r.rest.Entries = nil
}

func (c *Core) sendBatch(p int, b *batch) {
	r := &c.parts[p].replica
	c.copies.add(r.to, Copy{Partition: p, Stream: r.stream, Number: b.number, Chunk: Chunk{Entries: c.cfg.Store.ExportThese(p, c.now, b.ids)}})
}

// chase sends again what was not acknowledged, and replaces who is silent.
func (c *Core) chase() {
	for p := range c.parts {
		r := &c.parts[p].replica
		switch {
		case !r.busy():
			continue
		case c.now >= r.heard+silent:
			c.view.find(r.to).mute = c.now + absence
			c.moved = true // for all partitions that have copies there
			c.appoint(p)
			continue
		}
		for b := r.late(c.now-copyAgain, c.now); b != nil; b = r.late(c.now-copyAgain, c.now) {
			c.sendBatch(p, b)
		}
		if c.now >= r.left+copyAgain {
			r.part = 0
		}
		c.pump(p)
	}
}

// replicated takes acknowledgements.
func (c *Core) replicated(from membership.NodeID, boot membership.BootID, m *Replicated) {
	for _, e := range m.Receipts {
		if e.Partition < 0 || e.Partition >= len(c.parts) {
			continue
		}
		r := &c.parts[e.Partition].replica
		switch {
		case r.to != from || r.boot != boot || r.stream != e.Stream:
			continue
		case e.Refused:
			c.retire(e.Partition) // two hold; until that is sorted out there is no standby
			continue
		}
		r.heard = c.now
		if e.Number == r.part {
			r.seeding, r.seeded = r.rest.More, !r.rest.More
			r.from, r.part = r.rest.Next, 0
		} else {
			c.pay(e.Partition, r.acked(e.Number))
		}
		c.pump(e.Partition)
	}
	c.seedNext(from)
}

// replicate keeps a copy of what another holds. Not behind a closed fence: what
// has waited there with us would seem younger than it is. It is sent again.
func (c *Core) replicate(from membership.NodeID, m *Replicate) {
	if c.fence.closed {
		return
	}
	back := &Replicated{}
	for i := range m.Copies {
		k := &m.Copies[i]
		if k.Partition < 0 || k.Partition >= len(c.parts) {
			continue
		}
		e := Receipt{Partition: k.Partition, Stream: k.Stream, Number: k.Number}
		if e.Refused = c.parts[k.Partition].decided(); !e.Refused {
			c.keep(k)
		}
		back.Receipts = append(back.Receipts, e)
	}
	c.send(from, back)
}

// decided says that the counters here are not anybody's copy.
func (pt *partition) decided() bool { return pt.phase == owner.Holding || pt.phase == owner.Released }

func (c *Core) keep(k *Copy) {
	pt := &c.parts[k.Partition]
	if !pt.copied {
		pt.copied = true
		if pt.phase == owner.None {
			c.setPhase(k.Partition, owner.None)
		}
	}
	c.take(k.Partition, k.Chunk.Entries)
}

// misplaced says that we keep a copy that another should keep.
func (c *Core) misplaced(p int) bool {
	if !c.parts[p].copied || c.parts[p].phase != owner.None {
		return false
	}
	i := c.view.ring.Standby(p)
	return i < 0 || c.view.ring.Nodes()[i] != c.cfg.Self.ID
}

// relieve tells nodes that their copies are needed no longer.
func (c *Core) relieve(from membership.NodeID, copies []int) {
	drop := &Drop{}
	for _, p := range copies {
		if p < 0 || p >= len(c.parts) || c.parts[p].phase != owner.Holding {
			continue
		}
		if r := &c.parts[p].replica; r.to != from && (r.seeded || r.to == "") {
			drop.Partitions = append(drop.Partitions, p)
		}
	}
	if len(drop.Partitions) > 0 {
		c.send(from, drop)
	}
}

// drop gives copies up, if the one who says so owns the partitions.
func (c *Core) drop(from membership.NodeID, m *Drop) {
	for _, p := range m.Partitions {
		if p >= 0 && p < len(c.parts) && c.misplaced(p) && c.view.owner(p) == from {
			c.parts[p].copied = false
			c.setPhase(p, owner.None)
		}
	}
}
