package driver

import (
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ringlimit/ringlimit/membership"
	"github.com/ringlimit/ringlimit/owner"
	"github.com/ringlimit/ringlimit/owner/transfer"
	"github.com/ringlimit/ringlimit/ring"
)

// Config is what a Driver needs. All fields are required. None of its functions
// may block or call the driver: they are called under its lock.
type Config struct {
	Self  membership.Member // joining
	Table *owner.Table
	Ring  ring.Params
	Now   func() int64 // Unix nanoseconds; must never run back
	// Send takes a message to a node, or loses it.
	Send func(to membership.NodeID, m transfer.Message)
	// Dial tries, in the background, whether a node's process refuses
	// connections, and then calls Refused.
	Dial func(id membership.NodeID)
	// Announce spreads what this node says of itself.
	Announce func(state membership.State, seq uint64)
	// Publish takes the ring that checks are to be sent by. It is called again
	// for the same ring when a member may have another address.
	Publish  func(*ring.Ring)
	Observer Observer
	Logger   *slog.Logger
}

// Observer is told what happens to partitions. Its methods must be quick.
type Observer interface {
	// Acquired says that this node holds one more partition, and how long its
	// checks had to wait for that at most.
	Acquired(took time.Duration)
	// GaveAway says that another node has taken a partition over.
	GaveAway()
	// Waited times a check of this node that was decided here, after it had waited
	// for its partition or for a copy of its charge.
	Waited(took time.Duration)
	// Fenced says that this node has stopped deciding, for it may have been
	// replaced.
	Fenced()
}

// Driver is a node's part in holding partitions. It is safe for concurrent use.
type Driver struct {
	cfg   Config
	core  *transfer.Core // guarded by mu, but for Charge
	hurry chan struct{}  // the core wants its tick sooner
	owing chan struct{}  // there are charges to send, in a while
	calls pools
	era   atomic.Uint64

	mu         sync.Mutex
	rings      rings
	parked     parking
	published  *ring.Ring
	alarm      int64 // when the timer will go off
	members    membership.View
	superseded bool
	fenced     bool // noteFence has seen it close and not yet open
	closings   int  // that noteFence has seen
	complained int64
	stuck      stuck
	unseen     unseen
	changed    chan struct{} // closed after the next event, if somebody watches
}

// New makes the driver of a node that knows only itself. It does nothing before
// Run is called.
func New(cfg Config) *Driver {
	d := &Driver{
		cfg:    cfg,
		hurry:  make(chan struct{}, 1),
		owing:  make(chan struct{}, 1),
		rings:  rings{params: cfg.Ring, log: cfg.Logger},
		parked: parking{queues: map[int]*queue{}},
		alarm:  math.MaxInt64,
	}
	now := cfg.Now()
	d.core = transfer.New(transfer.Config{
		Self:       recordOf(cfg.Self),
		Partitions: cfg.Ring.Partitions,
		Ring:       d.rings.of,
		Store:      newStore(d, now),
		Chunk:      chunk,
	}, now)
	return d
}

// chunk is how many counters travel in one message: some ten kilobytes.
const chunk = 512

// event lets the core make one step, and carries out what it wants.
func (d *Driver) event(step func(now int64)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	step(d.cfg.Now())
	d.obey()
}

// Receive is the event that a message came from a run of another node.
func (d *Driver) Receive(from membership.NodeID, boot membership.BootID, m transfer.Message) {
	d.event(func(now int64) { d.core.Receive(now, from, boot, m) })
}

// Refused is the event that a node's process refuses connections.
func (d *Driver) Refused(id membership.NodeID) {
	d.event(func(now int64) { d.core.Refused(now, id) })
}

// obey carries out what the core wants, also what it wants because of that. The
// caller holds mu.
func (d *Driver) obey() {
	d.bound()
	for actions := d.core.Actions(); len(actions) > 0; actions = d.core.Actions() {
		for _, a := range actions {
			d.do(a)
		}
		d.bound()
	}
	if r := d.core.Ring(); r != d.published {
		d.publish(r)
	}
	if next := d.core.Next(); next < d.alarm {
		d.alarm = next
		signal(d.hurry)
	}
	if d.changed != nil {
		close(d.changed)
		d.changed = nil
	}
}

func (d *Driver) do(action transfer.Action) {
	switch a := action.(type) {
	case transfer.Send:
		d.cfg.Send(a.To, a.Message)
	case transfer.Pay:
		for _, r := range a.Replies {
			d.calls.keep(r.(*promise))
		}
	case transfer.Wake:
		d.wake(a.Partition)
	case transfer.Dial:
		d.cfg.Dial(a.Node)
	case transfer.Announce:
		d.cfg.Announce(a.Record.State, a.Record.Seq)
	case transfer.Complain:
		d.complain(a)
	}
}

// complain logs, once a second at most.
func (d *Driver) complain(a transfer.Complain) {
	if now := d.cfg.Now(); now-d.complained >= int64(time.Second) {
		d.complained = now
		d.cfg.Logger.Warn("another node sent counters that cannot be used", "partition", a.Partition, "error", a.Err)
	}
}

func (d *Driver) publish(r *ring.Ring) {
	d.published = r
	d.cfg.Publish(r)
}

// bound tells the table until when it may decide. That comes before the actions:
// checks that one of them wakes are to be decided by the new bound. It comes after
// the era: no decision by the new bound is of the old era.
func (d *Driver) bound() {
	d.noteFence()
	d.cfg.Table.DecideUntil(d.decideUntil())
}

// decideUntil never lets a process decide that another has replaced.
func (d *Driver) decideUntil() int64 {
	if d.superseded {
		return math.MinInt64
	}
	return d.core.DecideUntil()
}

// noteFence logs when the fence closes and opens. Both may be in one event.
func (d *Driver) noteFence() {
	if n := d.core.Closings(); n != d.closings {
		d.closings, d.fenced = n, true
		d.cfg.Observer.Fenced()
		d.cfg.Logger.Warn("this node stood still or lost the others; it decides nothing until it has news of them")
	}
	if !d.fenced || d.core.Fenced() {
		return
	}
	d.fenced = false
	d.era.Add(1)
	if d.core.Alone() {
		d.cfg.Logger.Info("there are no others; this node takes its partitions up again")
	} else {
		d.cfg.Logger.Info("the others answer again; this node acquires its partitions anew")
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // it has been told already
	}
}
