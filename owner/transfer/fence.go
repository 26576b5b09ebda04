package transfer

import (
	"github.com/ringlimit/ringlimit/internal/planted"
	"github.com/ringlimit/ringlimit/membership"
	"github.com/ringlimit/ringlimit/owner"
)

const (
	beatEvery = 100 * ms
	// allEvery is how often records are asked for whatever the sums say.
	allEvery = 10_000 * ms
	// fenceAfter is less than the fastest detection of a death takes, so that a
	// node that lost the others stops before they go on without it.
	fenceAfter = 1_000 * ms
)

// Beat asks for a sign of life; BeatBack is it. At is the sender's time, which
// comes back unchanged: what counts is when the question left.
//
// Sum says which records the asker has, and only who has others answers with
// records: ten times a second everybody would tell everybody what all know. With a
// Sum of 0, as of a node that knows no sums, the records come in any case.
type (
	Beat struct {
		At  int64
		Sum uint64
	}
	BeatBack struct {
		At      int64
		Records []Record
	}
)

func (*Beat) message()     {}
func (*BeatBack) message() {}

// fence is what tells a node that it may have been replaced without noticing.
type fence struct {
	closed  bool
	times   int   // that it closed
	since   int64 // when it closed
	ticked  int64 // the latest tick: a process that stands still has none
	contact int64 // when the latest question left that a peer has answered
	beatAt  int64 // when to ask next
	allAt   int64 // when to ask for all records next
}

// DecideUntil is until when this node may decide. Past it no event may come
// before the next check, so whoever decides has to compare.
func (c *Core) DecideUntil() int64 {
	switch {
	case planted.Fault == planted.NoFence:
		return neverThis
	case c.fence.closed:
		return 0
	case c.Alone():
		return c.fence.ticked + fenceAfter
	}
	return min(c.fence.ticked, c.fence.contact) + fenceAfter
}

// Alone says that no process of a peer is known to run.
func (c *Core) Alone() bool {
	for i := range c.view.members {
		if m := &c.view.members[i]; m.ID != c.cfg.Self.ID && !m.gone(c.now) {
			return false
		}
	}
	return true
}

// at begins every event. It notices that time has passed without us.
func (c *Core) at(now int64) {
	c.now = now
	if !c.fence.closed && now > c.DecideUntil() {
		c.close()
	}
}

// close stops all deciding. Whatever we hold is as good as frozen: the owner, if
// it is another by now, may take it.
func (c *Core) close() {
	c.fence.closed, c.fence.since = true, c.now
	c.fence.times++
	for p := range c.parts {
		if pt := &c.parts[p]; pt.phase == owner.Holding {
			pt.doubt = true
			c.freeze(p, gift{})
		}
	}
	c.moved = true
	c.fence.beatAt = c.now
	c.arm(c.now)
}

// open begins again, after news from the others, or alone. What was frozen is
// acquired anew, from all, itself taking part.
func (c *Core) open() {
	c.fence.closed, c.fence.contact = false, c.now
	r := c.Self()
	r.Seq++
	c.declare(r)
}

// beat asks the others for a sign of life. Alone, there is nobody to lose.
func (c *Core) beat() {
	c.fence.ticked = c.now
	if c.Alone() {
		c.fence.contact = c.now
		if c.fence.closed {
			c.open()
		}
	}
	if c.now >= c.fence.beatAt {
		c.fence.beatAt = c.now + beatEvery
		c.ask()
		c.reappoint()
	}
	c.arm(c.fence.beatAt)
}

func (c *Core) ask() {
	sum := c.sumToTell()
	for i := range c.view.members {
		if m := &c.view.members[i]; m.ID != c.cfg.Self.ID && !m.gone(c.now) {
			c.send(m.ID, &Beat{c.now, sum})
		}
	}
}

// sumToTell is 0 now and then: the sum does not contain the ages of the dead, and
// two different views may have one sum. It is 0 behind the closed fence, too: who
// was cut off begins again with what the others know.
func (c *Core) sumToTell() uint64 {
	if c.fence.closed || c.now >= c.fence.allAt {
		c.fence.allAt = c.now + allEvery
		return 0
	}
	return c.view.sumOf(c.now)
}

// beaten leaves out what the asker has: it would change nothing there.
func (c *Core) beaten(from membership.NodeID, m *Beat) {
	back := &BeatBack{At: m.At}
	if m.Sum == 0 || m.Sum != c.view.sumOf(c.now) {
		back.Records = c.view.snapshot(c.now)
	}
	c.send(from, back)
}

func (c *Core) beatBack(from membership.NodeID, boot membership.BootID, m *BeatBack) {
	if m.At > c.now {
		return // not ours
	}
	if known := c.view.find(from); known != nil && known.Boot == boot {
		known.travelled(c.now - m.At)
	}
	c.learn(m.Records)
	if c.fence.closed && m.At >= c.fence.since {
		c.open()
	}
	if !c.fence.closed {
		c.fence.contact = max(c.fence.contact, m.At)
	}
}
