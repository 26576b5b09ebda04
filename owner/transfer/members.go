package transfer

import "github.com/ringlimit/ringlimit/membership"

// Refused is the event that a node's process refused a connection: it is gone.
// The others are told, so that its heirs need not wait for the gossip.
func (c *Core) Refused(now int64, id membership.NodeID) {
	c.at(now)
	if m := c.view.find(id); m != nil && id != c.cfg.Self.ID {
		if !m.gone(now) {
			c.moved = true
			c.tell(id)
		}
		m.refused = now + absence
	}
	c.settle()
}

// tell says to everybody whose process has refused us.
func (c *Core) tell(absent membership.NodeID) {
	for i := range c.view.members {
		if m := &c.view.members[i]; m.ID != absent && m.ID != c.cfg.Self.ID && !m.gone(c.now) {
			c.send(m.ID, &Views{Records: c.view.snapshot(c.now), Absent: []membership.NodeID{absent}})
		}
	}
}

// Heard is when the latest message of a member came; 0 when none did.
func (c *Core) Heard(id membership.NodeID) int64 {
	if m := c.view.find(id); m != nil {
		return m.heard
	}
	return 0
}

// Named is the event that others were refused by a node. We try ourselves before
// we believe it: a firewall may be between the two and not between it and us.
func (c *Core) Named(now int64, id membership.NodeID) {
	c.at(now)
	c.named(id)
}

func (c *Core) named(ids ...membership.NodeID) {
	for _, id := range ids {
		if m := c.view.find(id); m != nil && !m.gone(c.now) && id != c.cfg.Self.ID {
			c.do(Dial{id})
		}
	}
}

// learn merges records into the view.
func (c *Core) learn(records []Record) {
	for _, r := range records {
		m := c.view.find(r.ID)
		switch {
		case m != nil && !r.newer(m.Record):
			m.age(r, c.now)
		case r.ID == c.cfg.Self.ID:
			c.contradict(r)
		case m == nil && r.State == Dead && r.Age >= strangers:
			// whoever forgets it a little later must not remind us
		default:
			c.came = c.view.put(r, c.now) || c.came
			c.moved = true
		}
	}
}

// contradict answers what others say of this node: dead, or what we never said.
func (c *Core) contradict(r Record) {
	self := c.Self()
	if r.Boot != self.Boot {
		if r.State == Dead {
			c.later = max(c.later, r.Boot)
		}
		return // a later run under our name: the shell has to stop this one
	}
	if r.State == Dead {
		if c.going {
			return
		}
		self.State = c.damped(self.State)
	}
	self.Seq = r.Seq + 1
	c.declare(self)
}

// Later is the latest run under this node's name that the others remember as dead
// although this one's boot id is lower: a clock was set back between the two. To
// them this run is over, and they hear nothing that it says. 0 when there is none.
func (c *Core) Later() membership.BootID { return c.later }

// outdated tells a sender that a later run of its name is known, or it would wait
// for answers for ever. Not so when it has just told us something: two who are
// both outdated would go on without end.
func (c *Core) outdated(from membership.NodeID, m Message) {
	if _, told := m.(*Views); !told {
		c.send(from, &Views{Records: c.view.snapshot(c.now)})
	}
}

// flapping is how often we were declared dead, and what follows of it.
type flapping struct {
	deaths []int64 // when, lately
	holds  int     // how often we were held down
	until  int64   // until then we stay joining; 0 when we do not
}

// damped is the state to return in after we were declared dead: joining, for a
// while, when that happens again and again.
func (c *Core) damped(s membership.State) membership.State {
	recent := c.flaps.deaths[:0]
	for _, at := range c.flaps.deaths {
		if c.now-at < flapSpan {
			recent = append(recent, at)
		}
	}
	c.flaps.deaths = append(recent, c.now)
	if len(c.flaps.deaths) < flaps || s != membership.Serving {
		return s
	}
	c.flaps.until = c.now + holdDown<<min(c.flaps.holds, maxHolds)
	c.flaps.holds++
	c.flaps.deaths = nil
	c.arm(c.flaps.until)
	return membership.Joining
}

// declare changes our own record.
func (c *Core) declare(r Record) {
	c.view.put(r, c.now)
	c.moved = true
	c.do(Announce{r})
}

// returned says that a member's absence is over.
func (c *Core) returned() bool {
	over := false
	for i := range c.view.members {
		m := &c.view.members[i]
		switch {
		case m.refused == 0:
		case c.now >= m.refused:
			m.refused, over = 0, true
		default:
			c.arm(m.refused)
		}
		switch {
		case m.mute == 0:
		case c.now >= m.mute:
			m.mute, over = 0, true
		default:
			c.arm(m.mute)
		}
	}
	return over
}
