package sim

import (
	"fmt"

	"github.com/ringlimit/ringlimit/membership"
	"github.com/ringlimit/ringlimit/owner"
	"github.com/ringlimit/ringlimit/owner/transfer"
)

// node is a machine on which one process runs at a time.
type node struct {
	w        *world
	id       membership.NodeID
	skew     int64 // its clock minus virtual time
	up       bool
	paused   bool
	asleep   []func() // what came while it was paused
	boots    int      // processes so far
	forwards bool     // it owns nothing

	core    *transfer.Core
	table   *owner.Table
	waiting []*check
	unpaid  map[*check]bool // charged, and not told so yet
	tickAt  int64
	own     map[int]bool // partitions that it acquires with counters of its own
	silence map[*node]silence
}

// addNode makes a machine. Clocks differ by whole minutes, so that windows begin
// together, and by up to 20 ms, so that they do not quite.
func (w *world) addNode() *node {
	n := &node{w: w, id: membership.NodeID(fmt.Sprintf("n%d", len(w.nodes)+1))}
	n.skew = epoch + w.between(-600, 600)*60*s + w.between(-skewed, skewed)
	w.nodes = append(w.nodes, n)
	return n
}

func (n *node) running() bool { return n.up && !n.paused }

// clock is the node's own time. A paused process does not see it.
func (n *node) clock() int64 { return n.w.now + n.skew }

// start runs a new process.
func (n *node) start() {
	n.w.boots++
	n.boots++
	n.w.rules[n] = n.w.changed // it reads the latest
	n.up, n.waiting, n.asleep, n.silence, n.unpaid, n.own = true, nil, nil, map[*node]silence{}, map[*check]bool{}, map[int]bool{}
	n.table = owner.NewTable(owner.Config{Partitions: n.w.cfg.Partitions, Now: n.clock})
	n.core = transfer.New(transfer.Config{
		Self:       transfer.Record{ID: n.id, Boot: n.w.boots, Seq: 1, State: membership.Joining, Owner: !n.forwards},
		Partitions: n.w.cfg.Partitions, Ring: n.w.ringOf, Store: &store{n.table, n}, Chunk: chunkSize,
	}, n.clock())
	n.tickAt = 0
	n.obey()
}

// stop ends the process, in order or not.
func (n *node) stop() { n.up, n.paused = false, false }

// run does what the process does, now or when it is awake again.
func (n *node) run(f func()) {
	switch {
	case !n.up:
	case n.paused:
		n.asleep = append(n.asleep, f)
	default:
		f()
	}
}

// later does something in the process that runs now, if it still does then.
func (n *node) later(d int64, f func()) {
	if d == 0 {
		f()
		return
	}
	run := n.boots
	n.w.after(d, func() {
		if n.boots == run {
			n.run(f)
		}
	})
}

func (n *node) resume() {
	n.paused = false
	late := n.asleep
	n.asleep = nil
	for _, f := range late {
		n.run(f)
	}
}

// obey carries out what the core wants, and plans its next tick.
func (n *node) obey() {
	for _, a := range n.core.Actions() {
		switch a := a.(type) {
		case transfer.Send:
			if to := n.w.node(a.To); to != nil {
				n.w.post(n, to, a.Message)
			}
		case transfer.Pay:
			n.pay(a)
		case transfer.Complain:
			n.w.wrong("%s cannot use what it got: %v", n.id, a.Err)
		case transfer.Wake:
			n.wake(a.Partition)
		case transfer.Dial:
			n.dial(n.w.node(a.Node))
		}
	}
	n.plan()
}

// plan sees to it that the core gets its tick.
func (n *node) plan() {
	at := max(n.core.Next()-n.skew, n.w.now+1)
	if n.tickAt > n.w.now && n.tickAt <= at {
		return
	}
	n.tickAt = at
	run := n.boots
	n.w.after(at-n.w.now, func() {
		n.run(func() {
			if n.boots == run && n.tickAt == at {
				n.tickAt = 0
				n.core.Tick(n.clock())
				n.obey()
			}
		})
	})
}

// dial tries whether a process refuses connections.
func (n *node) dial(to *node) {
	n.w.carry(n, to, trip{}, func() {}, func() { n.refused(to) })
}

func (n *node) refused(by *node) {
	n.core.Refused(n.clock(), by.id)
	n.obey()
}

func (w *world) node(id membership.NodeID) *node {
	for _, n := range w.nodes {
		if n.id == id {
			return n
		}
	}
	return nil
}
