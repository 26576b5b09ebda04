package sim

import "github.com/ringlimit/ringlimit/owner/transfer"

// link is a way from one node to another.
type link struct{ from, to *node }

// trip is how a message gets on.
type trip struct {
	lose, double, hold float64 // percent
}

var (
	// datagram is the worst that a message between cores can meet: in truth
	// they travel on streams.
	datagram = trip{lose: 1, double: 2, hold: 5}
	// call is a check or its answer: a stream doubles nothing, and what it
	// loses is not sent again.
	call = trip{lose: 0.05, hold: 1}
)

// carry takes a message from one node to another. refused is called when no
// process listens there.
func (w *world) carry(from, to *node, t trip, deliver, refused func()) {
	if w.calm() {
		t = trip{}
	}
	copies := 1
	if w.chance(t.double) {
		copies = 2
	}
	for range copies {
		if w.chance(t.lose) {
			continue
		}
		delay := w.between(200_000, max(w.cfg.Delay, 1*ms))
		if w.chance(t.hold) {
			delay += w.between(0, 20*ms)
		}
		w.after(delay, func() { w.arrive(from, to, deliver, refused) })
	}
}

func (w *world) arrive(from, to *node, deliver, refused func()) {
	switch {
	case from != to && w.cut[link{from, to}]:
	case !to.up:
		if !w.cut[link{to, from}] && from.up && refused != nil {
			from.run(refused)
		}
	default:
		to.run(deliver)
	}
}

// post sends a core's message.
func (w *world) post(from *node, to *node, m transfer.Message) {
	if w.spy != nil {
		w.spy(from, to, m)
	}
	boot, id := from.core.Self().Boot, from.id
	run := from.boots
	w.carry(from, to, datagram,
		func() { to.core.Receive(to.clock(), id, boot, m); to.obey() },
		func() {
			if from.boots == run {
				from.refused(to)
			}
		})
}

// reach says whether gossip gets from one node to another and back, if need be
// by way of a third.
func (w *world) reach(a, b *node) bool {
	if w.touch(a, b) {
		return true
	}
	for _, c := range w.nodes {
		if c != a && c != b && w.touch(a, c) && w.touch(c, b) {
			return true
		}
	}
	return false
}

// touch says whether two running processes reach each other, both ways.
func (w *world) touch(a, b *node) bool {
	return a.running() && b.running() && !w.cut[link{a, b}] && !w.cut[link{b, a}]
}
