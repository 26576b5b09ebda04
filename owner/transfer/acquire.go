package transfer

import (
	"slices"

	"github.com/ringlimit/ringlimit/internal/planted"
	"github.com/ringlimit/ringlimit/membership"
	"github.com/ringlimit/ringlimit/owner"
)

const (
	askAgain   = 20 * ms  // without an answer, or after "busy"
	deadBudget = 100 * ms // for those declared dead, since they were last heard
	// pullsAtOnce is how many partitions one node sends us at a time. Nobody decides
	// for one that is being sent; with more of them each takes longer.
	pullsAtOnce = 2
)

// round is one attempt to collect a partition's counters from everybody.
type round struct {
	attempt uint64
	merging bool // we hold already; another that held too gives us its counters
	sources []source
}

// source is a member that is asked.
type source struct {
	node    membership.NodeID
	boot    membership.BootID
	step    step
	status  Status       // of its last answer
	release uint64       // which frozen copy it sends
	from    owner.Cursor // how far it has come
	heard   int64        // when it last gave us counters; at first, when the round began
	whole   bool         // all of what it has frozen is here
	asked   int64        // when it was asked for counters that it has not sent yet; 0: it has
	again   int64        // when to ask again
}

// step is how far a source is.
type step uint8

const (
	asking  step = iota
	queued       // it has counters and waits for its turn
	pulling      // it sends them
	done         // it has no more
)

// acquire begins a round with everybody. The counters that are here already, a
// copy or our own, take part.
func (c *Core) acquire(p int) {
	pt := &c.parts[p]
	c.setPhase(p, owner.Acquiring)
	c.begin(p, &round{})
	for i := range c.view.members {
		c.addSource(pt.round, &c.view.members[i])
	}
	c.advanceRound(p)
}

// merge begins a round with one node that holds what we hold.
func (c *Core) merge(p int, id membership.NodeID) {
	pt := &c.parts[p]
	if pt.round != nil {
		return // one after the other; it will nudge again
	}
	c.begin(p, &round{merging: true})
	c.addSource(pt.round, c.view.find(id))
	c.advanceRound(p)
}

func (c *Core) begin(p int, r *round) {
	c.attempt++
	r.attempt = c.attempt
	c.parts[p].round = r
	if i, ok := slices.BinarySearch(c.rounds, p); !ok {
		c.rounds = slices.Insert(c.rounds, i, p)
	}
}

// addSource adds a member that may have counters.
func (c *Core) addSource(r *round, m *member) {
	if m == nil || m.ID == c.cfg.Self.ID || m.State == Dead && c.now-m.died >= askTheDead {
		return
	}
	r.sources = append(r.sources, source{node: m.ID, boot: m.Boot, heard: c.now, again: c.now})
}

// renewRounds asks everybody again because somebody has come: who has denied
// may have got the counters from the one we did not know. What is being pulled
// is frozen and goes on.
func (c *Core) renewRounds() {
	for _, p := range c.rounds {
		if c.parts[p].round.merging {
			continue
		}
		old := c.parts[p].round
		c.begin(p, &round{})
		r := c.parts[p].round
		for i := range c.view.members {
			c.addSource(r, &c.view.members[i])
		}
		for i := range r.sources {
			r.sources[i].resume(old)
		}
	}
}

// resume keeps what the same run of the node has given already.
func (s *source) resume(old *round) {
	if was := old.find(s.node); was != nil && was.boot == s.boot && was.release != 0 {
		again := s.again
		*s = *was
		s.again, s.asked = again, 0
	}
}

func (r *round) find(id membership.NodeID) *source {
	for i := range r.sources {
		if r.sources[i].node == id {
			return &r.sources[i]
		}
	}
	return nil
}

// advance drives all rounds, those that checks wait for first.
func (c *Core) advance() {
	if len(c.rounds) == 0 {
		return
	}
	c.countPulls()
	rounds := slices.Clone(c.rounds) // a round that ends leaves the list
	for _, wanted := range [...]bool{true, false} {
		for _, p := range rounds {
			if pt := &c.parts[p]; pt.round != nil && pt.wanted == wanted {
				c.advanceRound(p)
			}
		}
	}
}

// advanceRound asks who is to be asked and ends the round when all are done.
func (c *Core) advanceRound(p int) {
	r := c.parts[p].round
	for i := range r.sources {
		if s := &r.sources[i]; s.step != done && c.over(s) {
			s.step = done
			r.lose(s)
		}
	}
	for i := range r.sources {
		c.advanceSource(p, r, &r.sources[i])
	}
	if !slices.ContainsFunc(r.sources, func(s source) bool { return s.step != done }) {
		c.complete(p)
	}
}

func (c *Core) advanceSource(p int, r *round, s *source) {
	if s.step == queued && r.ready(s) && c.pulling[s.node] < pullsAtOnce {
		s.step, s.again = pulling, c.now
		c.pulling[s.node]++
	}
	if s.step != asking && s.step != pulling {
		return
	}
	if c.now >= s.again && s.asked != 0 && !c.quiet(s.node, s.asked, askAgain, bulkAgain) {
		s.again = c.now + askAgain // it is at it
	}
	if c.now >= s.again {
		if s.again = c.now + askAgain; s.step == pulling {
			s.asked = c.now
		}
		c.asks.add(s.node, Ask{Partition: p, Attempt: r.attempt, Pull: s.step == pulling, Release: s.release, From: s.from})
	}
	c.arm(s.again)
}

// ready says that a source may be pulled. A holder decides until it is, so we
// leave it in peace while another has not even answered: that may be a dead one,
// for whom we wait for seconds. And while there are copies to come: nobody decides
// from when the holder is pulled until all is here.
func (r *round) ready(s *source) bool {
	return s.status != Held || !slices.ContainsFunc(r.sources, func(o source) bool {
		return o.step == asking || o.status == Copied && o.step != done
	})
}

// lose takes note that a source has ended. If it was a holder whose counters have
// not all come, the copies have to be pulled once more: it may have decided since
// they were.
func (r *round) lose(s *source) {
	if s.status != Held || s.whole {
		return
	}
	for i := range r.sources {
		if o := &r.sources[i]; o.status == Copied && o.step == done && o.whole {
			o.step, o.whole, o.from = queued, false, 0
		}
	}
}

// over says that no more will come from a source: its process refuses
// connections or runs no longer, or it is dead by gossip and silent.
func (c *Core) over(s *source) bool {
	m := c.view.find(s.node)
	if m == nil {
		return true // dead for so long that it is forgotten
	}
	if m.Boot != s.boot {
		// The next run has nothing, and says so.
		*s = source{node: m.ID, boot: m.Boot, heard: c.now, again: c.now}
		return false
	}
	if m.State == Dead {
		until := max(s.heard, m.died) + deadBudget + m.trip // for a distant one that is not dead
		c.arm(until)
		return c.now < m.refused || c.now >= until
	}
	return c.now < m.refused
}

// countPulls counts the partitions that each node is sending us.
func (c *Core) countPulls() {
	clear(c.pulling)
	for _, p := range c.rounds {
		for i := range c.parts[p].round.sources {
			if s := &c.parts[p].round.sources[i]; s.step == pulling {
				c.pulling[s.node]++
			}
		}
	}
}

// answered takes in what a node says to our asks. Most of it, in a large move,
// is one more chunk, and concerns nothing but its source.
func (c *Core) answered(from membership.NodeID, boot membership.BootID, m *Answers) {
	further := false
	for i := range m.Parts {
		part := &m.Parts[i]
		if part.Partition < 0 || part.Partition >= len(c.parts) {
			continue
		}
		r := c.parts[part.Partition].round
		if r == nil || r.attempt != part.Attempt {
			continue // an answer to a round that is over
		}
		s := r.find(from)
		if s == nil || s.boot != boot || s.step == done || part.Pulled != (s.step == pulling) {
			continue
		}
		if c.takePart(part, s); s.step == pulling {
			c.advanceSource(part.Partition, r, s)
		}
		further = further || s.step != pulling
	}
	if further {
		c.advance()
	}
}

func (c *Core) takePart(part *Part, s *source) {
	if part.Status == Held {
		c.parts[part.Partition].holder = s.node
	}
	s.asked = 0
	switch {
	case part.Status == Busy:
		s.step, s.status, s.again = asking, Busy, c.now+askAgain
	case part.Status == Denied:
		s.step = done
		c.parts[part.Partition].round.lose(s)
		s.status = Denied
	case !part.Pulled:
		s.step, s.status = queued, part.Status
		if c.parts[part.Partition].wanted {
			c.do(Wake{part.Partition}) // a holder decides on: what came before we knew of it can go there
		}
	default:
		c.takeChunk(part, s)
	}
}

// takeChunk merges counters, each chunk of a frozen copy in its turn.
func (c *Core) takeChunk(part *Part, s *source) {
	switch {
	case part.Release > s.release && part.From == 0: // it was frozen anew
		s.release, s.from = part.Release, 0
	case part.Release != s.release || part.From != s.from:
		return
	}
	if planted.Fault != planted.NoMerge {
		c.take(part.Partition, &part.Chunk)
	}
	s.status, s.heard, s.again = part.Status, c.now, c.now
	s.from = part.Chunk.Next
	if !part.Chunk.More {
		s.step, s.whole = done, true
	}
}

// complete ends a round in which everybody has answered: we hold.
func (c *Core) complete(p int) {
	pt := &c.parts[p]
	r, stream := pt.round, pt.replica.stream
	c.dropRound(p)
	for i := range r.sources {
		s := &r.sources[i]
		if !s.whole || s.status != Held {
			continue
		}
		rel := Release{p, s.boot, s.release}
		pt.remember(s.node, rel)
		c.acks.add(s.node, rel)
	}
	if !r.merging {
		pt.own, pt.doubt, pt.copied, pt.holder = false, false, false, c.cfg.Self.ID
		c.setPhase(p, owner.Holding)
	}
	c.appoint(p)
	if c.parts[p].replica.stream == stream {
		c.reseed(p)
	}
}

func (pt *partition) remember(id membership.NodeID, r Release) {
	if pt.taken == nil {
		pt.taken = make(map[membership.NodeID]Release)
	}
	pt.taken[id] = r
}

func (c *Core) dropRound(p int) {
	c.parts[p].round = nil
	if i, ok := slices.BinarySearch(c.rounds, p); ok {
		c.rounds = slices.Delete(c.rounds, i, i+1)
	}
}

// endRound breaks a round off and tells those who have frozen their counters
// for it.
func (c *Core) endRound(p int) {
	r := c.parts[p].round
	c.dropRound(p)
	for i := range r.sources {
		if s := &r.sources[i]; s.release != 0 && s.status == Held {
			c.nacks.add(s.node, Release{p, s.boot, s.release})
		}
	}
}

// giveUp ends an acquisition: another owns the partition. What we once decided
// with stays, frozen, until somebody has taken it. What was collected joins the
// copy, if there is one.
func (c *Core) giveUp(p int) {
	pt := &c.parts[p]
	c.endRound(p)
	switch {
	case pt.own:
		pt.own, pt.doubt = false, true
		c.freeze(p, gift{})
	default:
		c.lay(p)
	}
}

// lay ends our part in a partition, but for the copy that is kept here.
func (c *Core) lay(p int) {
	pt := &c.parts[p]
	pt.own, pt.doubt, pt.given = false, false, gift{}
	c.retire(p)
	c.setPhase(p, owner.None)
}
