package transfer

import (
	"slices"

	"github.com/ringlimit/ringlimit/membership"
	"github.com/ringlimit/ringlimit/owner"
)

const (
	copyMost    = 512     // counters in a batch
	copiesAhead = 2       // batches on their way for one partition
	copyAgain   = 10 * ms // without an acknowledgement
	// A standby that says nothing at all for so long, which is as long as so many
	// of our own ticks, is replaced: a paused one would hold up every reply. If we
	// had no ticks, it is we who stood still.
	silent      = 40 * ms
	silentTicks = 4
	// One that talks has much to do. To replace it would give it, and another,
	// more to do. But not to acknowledge for so long is silence, too.
	deaf = 10 * silent
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

// Pay lets replies go that wait, each of them once: see Core.Charge.
type Pay struct{ Replies []Reply }

func (Pay) action() {}

// replica is where a holder's copy goes.
type replica struct {
	to     membership.NodeID // empty when there is nobody
	boot   membership.BootID
	stream uint64
	heard  int64 // when it last acknowledged, or had nothing to
	ticks  int   // at which it was found quiet, in a row
	chased bool  // it is in Core.unacked
	seed   seed
}

// busy says that the standby owes an acknowledgement.
func (c *Core) busy(p int) bool {
	r := &c.parts[p].replica
	return r.to != "" && (r.seed.step == sowing || len(c.accounts[p].sent) > 0)
}

// appoint sees to it that a holder's copy goes to the right node.
func (c *Core) appoint(p int) {
	to := c.standby(p)
	var boot membership.BootID
	if m := c.view.find(to); m != nil {
		boot = m.Boot
	}
	if r := &c.parts[p].replica; r.to == to && r.boot == boot || c.passing(p) {
		return
	}
	c.retire(p)
	if to == "" {
		return
	}
	c.streams++
	r := &c.parts[p].replica
	r.to, r.boot, r.stream, r.heard = to, boot, c.streams, c.now
	c.accounts[p].open()
	c.pump(p)
}

// retire ends a copy's stream. Nobody waits any more.
func (c *Core) retire(p int) {
	r := &c.parts[p].replica
	if r.to == "" {
		return
	}
	if r.seed.step == sowing {
		c.endSeed(r.to)
	}
	*r = replica{chased: r.chased, seed: seed{queued: r.seed.queued}}
	c.pay(c.accounts[p].close())
}

// passing says that a partition is to be another's soon, and has a copy until
// then: its new owner is about to take all counters, and needs no copy of them.
func (c *Core) passing(p int) bool {
	owns, m := c.view.owner(p), c.view.find(c.parts[p].replica.to)
	return owns != "" && owns != c.cfg.Self.ID && m != nil && m.Boot == c.parts[p].replica.boot && !m.gone(c.now) && c.now >= m.mute
}

func (c *Core) pay(replies []Reply) {
	if len(replies) > 0 {
		c.do(Pay{replies})
	}
}

// reappoint looks for standbys where one refused, because it held, too, and does
// no more.
func (c *Core) reappoint() {
	for p := range c.parts {
		if pt := &c.parts[p]; pt.phase == owner.Holding && pt.replica.to == "" {
			c.appoint(p)
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
	if m := c.view.find(id); m != nil && c.now < m.mute {
		return c.heir(p)
	}
	return id
}

// pump sends what the standby should have.
func (c *Core) pump(p int) {
	r, k := &c.parts[p].replica, &c.accounts[p]
	if r.to == "" {
		return
	}
	if !c.busy(p) {
		r.heard = c.now
	}
	c.pumpSeed(p)
	for b, ok := k.batch(c.now); ok; b, ok = k.batch(c.now) {
		c.sendBatch(p, &b)
	}
	if !c.busy(p) {
		return
	}
	c.arm(c.now + copyAgain)
	if !r.chased {
		r.chased = true
		c.unacked = append(c.unacked, p)
	}
}

func (c *Core) sendBatch(p int, b *batch) {
	r := &c.parts[p].replica
	entries, n := c.exportThese(p, b.ids)
	if n < len(b.ids) {
		c.accounts[p].cut(b.number, n)
	}
	c.copies.add(r.to, Copy{Partition: p, Stream: r.stream, Number: b.number, Chunk: Chunk{Entries: entries}})
}

// chase sends again what was not acknowledged, and replaces who is silent.
func (c *Core) chase() {
	list := c.unacked
	c.unacked, c.chasing = c.chasing[:0], list
	for _, p := range list {
		r := &c.parts[p].replica
		switch r.chased = false; {
		case !c.busy(p):
		case c.silent(r):
			c.replace(p)
		default:
			c.resend(p)
			c.pump(p)
		}
	}
}

// silent counts a tick at which the standby owes us a word. The time that a word
// and its answer are on their way is no silence.
func (c *Core) silent(r *replica) bool {
	if !c.quiet(r.to, r.heard, copyAgain, deaf) {
		r.ticks = 0
		return false
	}
	r.ticks++
	trip := int64(0)
	if m := c.view.find(r.to); m != nil {
		trip = m.trip
	}
	return r.ticks >= silentTicks && c.quiet(r.to, r.heard, silent+trip, deaf+trip)
}

// replace takes another standby for one that is silent, for all partitions that
// have copies there. A frozen partition needs none: it is on its way itself.
func (c *Core) replace(p int) {
	pt := &c.parts[p]
	if m := c.view.find(pt.replica.to); m != nil && c.now >= m.mute {
		m.mute, m.deaf = c.now+absence, m.heard > pt.replica.heard
		c.view.heirs, c.moved = nil, true
	}
	if pt.phase == owner.Holding {
		c.appoint(p)
	} else {
		c.retire(p)
	}
}

// back is how soon one that was silent, and talks again, is a standby again. Not
// at once: it may come and go, and each time it would be given everything anew.
const back = 200 * ms

func (c *Core) hears(m *member) {
	m.heard = c.now
	if m.mute > c.now+back && !m.deaf {
		m.mute = c.now + back
		c.arm(m.mute)
	}
}

func (c *Core) resend(p int) {
	r, k := &c.parts[p].replica, &c.accounts[p]
	late := func(at int64) bool { return c.quiet(r.to, at, copyAgain, 3*copyAgain) }
	for b := k.late(late, c.now); b != nil; b = k.late(late, c.now) {
		c.sendBatch(p, b)
	}
	if c.quiet(r.to, r.seed.left, copyAgain, bulkAgain) {
		r.seed.part = 0
	}
}

// bulkAgain is how long an answer of many counters, or an acknowledgement of
// them, may take when the other talks: what is repeated makes it slower still.
const bulkAgain = 200 * ms

// quiet says that a node has said nothing for so long since a moment, or that,
// if it did talk, the longer time has passed.
func (c *Core) quiet(id membership.NodeID, since, silence, longer int64) bool {
	heard := since
	if m := c.view.find(id); m != nil {
		heard = max(since, m.heard)
	}
	return c.now >= heard+silence || c.now >= since+longer
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
		if r.seed.part != 0 && e.Number == r.seed.part {
			c.sown(e.Partition)
		} else {
			c.pay(c.accounts[e.Partition].acked(e.Number))
		}
		c.pump(e.Partition)
	}
}

// heir is the owner in the ring of the members without this node and those that
// are mute; empty when there is nobody.
func (c *Core) heir(p int) membership.NodeID {
	if c.view.heirs == nil {
		c.view.heirs = c.cfg.Ring(slices.DeleteFunc(slices.Clone(c.view.owners), func(id membership.NodeID) bool {
			return id == c.cfg.Self.ID || c.now < c.view.find(id).mute
		}))
	}
	if i := c.view.heirs.Owner(p); i >= 0 {
		return c.view.heirs.Nodes()[i]
	}
	return ""
}
