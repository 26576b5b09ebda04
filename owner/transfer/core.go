package transfer

import (
	"github.com/ringlimit/ringlimit/membership"
	"github.com/ringlimit/ringlimit/owner"
	"github.com/ringlimit/ringlimit/ring"
)

// Config is what a core needs to know at first.
type Config struct {
	Self       Record
	Partitions int
	// Ring makes the ring of these members. It is called in the middle of
	// events, so a shell should remember rings it has made.
	Ring  func([]membership.NodeID) *ring.Ring
	Store Store
	Chunk int // counters in a message
}

// Core is the state machine of one node. But for Charge it is not safe for
// concurrent use. Every method that is told the time is an event; after it,
// Actions says what to do and Next when to call Tick. Time is in nanoseconds and
// never runs back.
type Core struct {
	cfg   Config
	now   int64
	wake  int64 // see Next
	view  view
	parts []partition
	fence fence
	flaps flapping
	moved bool              // the records changed since the last review
	came  bool              // and somebody came who must be asked
	later membership.BootID // see Later
	going bool              // see Depart

	// What the event wants to be done.
	actions []Action
	asks    outgoing[Ask]
	acks    outgoing[Release]
	nacks   outgoing[Release]
	copies  outgoing[Copy]

	// Partitions on their way to us and from us.
	rounds  []int                     // that have a round, ascending
	pulling map[membership.NodeID]int // how many a node is sending us
	attempt uint64
	number  uint64 // of the latest frozen copy
	nudgeAt int64

	copying
}

// copying is what a core knows of the copies of all its partitions.
type copying struct {
	accounts []account // by partition: what deciding goroutines reach
	owing    owing
	owed     []int // the buffer of Owe
	unacked  []int // partitions whose standby owes an acknowledgement
	chasing  []int // the buffer of chase

	streams uint64                    // so far
	unsown  []int                     // partitions whose seed waits for its turn
	turn    bool                      // which may have come
	sowing  map[membership.NodeID]int // how many seeds a node is being given
}

// partition is what a core knows of one partition.
type partition struct {
	phase  owner.Phase
	copied bool // when we do not hold: a holder has put a copy here
	own    bool // in Acquiring: the counters are what we once decided with
	// doubt says that another may have decided since these counters were frozen.
	doubt   bool
	wanted  bool // checks wait for it
	round   *round
	given   gift              // in Released
	replica replica           // in Holding and Released
	holder  membership.NodeID // who has it, as far as we have heard
	// taken says which frozen copies of others the counters contain, or did
	// when they left here: a node whose Ack was lost will ask.
	taken map[membership.NodeID]Release
}

// Action is one thing for the shell to do, in order.
type Action interface{ action() }

type (
	// Send a message. If the process at the other end refuses the connection,
	// call Refused; no other failure matters.
	Send struct {
		To      membership.NodeID
		Message Message
	}
	// Wake the checks that wait for a partition: each asks Route again.
	Wake struct{ Partition int }
	// Dial tries whether a node's process refuses connections.
	Dial struct{ Node membership.NodeID }
	// Complain of counters that no honest node sends.
	Complain struct {
		Partition int
		Err       error
	}
	// Announce our record by gossip.
	Announce struct{ Record Record }
)

func (Send) action()     {}
func (Wake) action()     {}
func (Dial) action()     {}
func (Announce) action() {}
func (Complain) action() {}

// New makes the core of a node that knows only itself and holds nothing.
func New(cfg Config, now int64) *Core {
	c := &Core{
		cfg: cfg, now: now, wake: now, parts: make([]partition, cfg.Partitions),
		pulling: map[membership.NodeID]int{},
		copying: copying{accounts: make([]account, cfg.Partitions), sowing: map[membership.NodeID]int{}},
	}
	c.fence.ticked, c.fence.contact = now, now
	c.view.put(cfg.Self, now)
	c.moved = true
	c.settle()
	return c
}

// Actions hands over what there is to do.
func (c *Core) Actions() []Action {
	a := c.actions
	c.actions = nil
	return a
}

// Next is when Tick should be called next. A later call does no harm but delay.
func (c *Core) Next() int64 { return c.wake }

// Self is what this node says of itself.
func (c *Core) Self() Record { return c.me().Record }

// Records is what this node knows of the members; nobody may change it.
func (c *Core) Records() []Record { return c.view.snapshot(c.now) }

// Ring is the ring of the members as this node sees them.
func (c *Core) Ring() *ring.Ring { return c.view.ring }

// Phase is what this node does with a partition.
func (c *Core) Phase(p int) owner.Phase { return c.parts[p].phase }

func (c *Core) me() *member { return c.view.find(c.cfg.Self.ID) }

// owns says whether we should hold the partition. A fenced node owns nothing.
func (c *Core) owns(p int) bool { return !c.fence.closed && c.view.owner(p) == c.cfg.Self.ID }

// Learn is the event that gossip brought records.
func (c *Core) Learn(now int64, records []Record) {
	c.at(now)
	c.learn(records)
	c.settle()
}

// Become is the event that this node enters another state: it has seen the
// members and serves, or it drains.
func (c *Core) Become(now int64, s membership.State) {
	c.at(now)
	if s == membership.Serving && now < c.flaps.until {
		return
	}
	r := c.Self()
	r.State, c.flaps.until = s, 0
	r.Seq++
	c.declare(r)
	c.settle()
}

// Depart is the event that this node says goodbye by gossip: it has given away what
// it had. Who hears of it takes it for dead, and it does not contradict. Nobody would
// be left to notice that what it says of itself is its last word.
func (c *Core) Depart(now int64) {
	c.at(now)
	c.going = true
	c.settle()
}

// Suspended is the event that the machine stood still, clock and all. What
// others did meanwhile is not known.
func (c *Core) Suspended(now int64) {
	c.at(now)
	if !c.fence.closed {
		c.close()
	}
	c.settle()
}

// Tick is the event that time has passed.
func (c *Core) Tick(now int64) {
	c.at(now)
	c.wake = neverThis
	c.beat()
	c.moved = c.returned() || c.moved
	c.forget()
	if c.flaps.until != 0 && now >= c.flaps.until {
		c.Become(now, membership.Serving)
	}
	c.settle()
	c.advance()
	c.chase()
	c.settle()
	if now >= c.nudgeAt {
		c.nudgeAt = now + nudgeEvery
		c.nudge()
	}
	c.flush()
	c.rearm()
}

// Receive is the event that another node's message came.
func (c *Core) Receive(now int64, from membership.NodeID, boot membership.BootID, m Message) {
	c.at(now)
	if known := c.view.find(from); known != nil {
		if boot < known.Boot {
			c.outdated(from, m)
			return
		}
		c.hears(known)
	}
	switch m := m.(type) {
	case *Beat:
		c.beaten(from, m)
	case *BeatBack:
		c.beatBack(from, boot, m)
	case *Replicate:
		c.replicate(from, m)
	case *Replicated:
		c.replicated(from, boot, m)
	case *Drop:
		c.drop(from, m)
	case *Views:
		c.learn(m.Records)
		c.named(m.Absent...)
	case *Acquire:
		c.learn(m.Records)
		c.settle()
		c.asked(from, boot, m)
	case *Answers:
		c.learn(m.Records)
		c.settle()
		c.answered(from, boot, m)
	case *Nudge:
		c.learn(m.Records)
		c.settle()
		c.nudged(from, boot, m)
	case *Ack:
		c.acked(from, boot, m)
	case *Nack:
		c.nacked(from, boot, m)
	}
	c.settle()
}

// settle brings the ring up to date with the records, and the phases with the
// ring. It ends every event.
func (c *Core) settle() {
	if c.moved {
		changed := c.view.rebuild(c.cfg.Ring, c.now)
		if changed {
			c.nudgeAt = c.now
			c.arm(c.now)
		}
		if c.came {
			c.renewRounds()
		}
		c.moved, c.came = false, false
		for p := range c.parts {
			c.review(p)
		}
		c.advance()
	}
	if c.turn {
		c.seedNext()
	}
	c.flush()
}

// review brings a partition's phase in line with who owns it now. A holder
// changes nothing here: it decides until it is asked.
func (c *Core) review(p int) {
	pt := &c.parts[p]
	switch pt.phase {
	case owner.None:
		if c.owns(p) {
			c.acquire(p)
		}
	case owner.Acquiring:
		if !c.owns(p) {
			c.giveUp(p)
		}
	case owner.Holding:
		if pt.round != nil && !c.owns(p) {
			c.endRound(p)
		}
		c.appoint(p)
	case owner.Released:
		if c.owns(p) && c.stranded(pt) {
			c.reacquire(p)
		}
	}
}

func (c *Core) setPhase(p int, ph owner.Phase) {
	c.parts[p].phase = ph
	if ph == owner.None && c.parts[p].copied {
		ph = owner.Acquiring // to the store, a copy is counters that come from elsewhere
	}
	c.cfg.Store.SetPhase(p, ph)
	if c.parts[p].wanted {
		c.parts[p].wanted = false
		c.do(Wake{p})
	}
}

func (c *Core) do(a Action)                          { c.actions = append(c.actions, a) }
func (c *Core) arm(at int64)                         { c.wake = min(c.wake, at) }
func (c *Core) send(to membership.NodeID, m Message) { c.do(Send{to, m}) }

// rearm finds out what the next tick is for.
func (c *Core) rearm() {
	if c.flaps.until != 0 {
		c.arm(c.flaps.until)
	}
	c.arm(c.nudgeAt)
	for i := range c.view.members {
		m := &c.view.members[i]
		if m.refused != 0 {
			c.arm(m.refused)
		}
		if m.mute != 0 {
			c.arm(m.mute)
		}
	}
}
