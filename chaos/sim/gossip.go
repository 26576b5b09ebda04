package sim

import (
	"github.com/ringlimit/ringlimit/membership"
	"github.com/ringlimit/ringlimit/owner/transfer"
)

// gossip is news that spread in some hundred milliseconds, and deaths that are
// noticed after two to three and a half seconds, as memberlist does with our
// settings.
const (
	spreadEvery = 80 * ms
	watchEvery  = 100 * ms
	shortest    = 2000 * ms
	longest     = 3500 * ms
)

// silence is how long one node has not heard of another.
type silence struct{ since, enough int64 }

func (w *world) startGossip() {
	w.every(spreadEvery, func() {
		for _, n := range w.nodes {
			w.spread(n)
		}
	})
	w.every(watchEvery, func() {
		for _, n := range w.nodes {
			n.watch()
		}
	})
}

// spread lets a node talk to one other. Now and then that is one that is
// believed dead: otherwise a healed partition would stay two clusters.
func (w *world) spread(n *node) {
	other := w.nodes[w.rand.IntN(len(w.nodes))]
	again := w.chance(25)
	delay := w.between(5*ms, 60*ms)
	if other == n || !w.reach(n, other) || n.believesDead(other) && !again {
		return
	}
	w.after(delay, func() { w.exchange(n, other) })
}

func (w *world) exchange(a, b *node) {
	if !w.reach(a, b) {
		return
	}
	ra, rb := a.core.Records(), b.core.Records()
	a.core.Learn(a.clock(), rb)
	b.core.Learn(b.clock(), ra)
	a.obey()
	b.obey()
}

func (n *node) believesDead(other *node) bool {
	r, ok := n.record(other)
	return ok && r.State == transfer.Dead
}

func (n *node) record(other *node) (transfer.Record, bool) {
	for _, r := range n.core.Records() {
		if r.ID == other.id {
			return r, true
		}
	}
	return transfer.Record{}, false
}

// watch notices deaths.
func (n *node) watch() {
	if !n.running() {
		clear(n.silence) // the probes of a paused process stand still, too
		return
	}
	for _, other := range n.w.nodes {
		r, known := n.record(other)
		if other == n || !known || r.State == transfer.Dead || n.w.reach(n, other) {
			delete(n.silence, other)
			continue
		}
		q, began := n.silence[other]
		if !began {
			q = silence{n.w.now, n.w.between(shortest, longest)}
			n.silence[other] = q
		}
		if n.w.now-q.since >= q.enough {
			n.bury(r)
		}
	}
}

// bury makes a node believe that another is dead.
func (n *node) bury(r transfer.Record) {
	n.w.note("%d %s: %s is dead\n", n.w.now, n.id, r.ID)
	r.State = transfer.Dead
	n.core.Learn(n.clock(), []transfer.Record{r})
	n.obey()
}

// join starts a process and lets it look for a member until it has found one.
func (n *node) join() {
	n.start()
	n.w.note("%d %s: starts\n", n.w.now, n.id)
	n.seek(n.boots)
}

func (n *node) seek(run int) {
	n.w.after(n.w.between(50*ms, 150*ms), func() {
		if n.boots != run || !n.up {
			return
		}
		for _, other := range n.w.nodes {
			if other != n && n.running() && n.w.touch(n, other) && other.core.Self().State == membership.Serving {
				n.w.exchange(n, other)
				n.core.Become(n.clock(), membership.Serving)
				n.obey()
				return
			}
		}
		n.seek(run)
	})
}

// leave drains a node and ends its process when nothing is left to hand over.
func (n *node) leave() {
	n.w.note("%d %s: leaves\n", n.w.now, n.id)
	n.core.Become(n.clock(), membership.Draining)
	n.obey()
	n.depart(n.boots, n.w.now+15*s)
}

func (n *node) depart(run int, deadline int64) {
	n.w.after(20*ms, func() {
		switch {
		case !n.up || n.boots != run:
		case n.running() && (n.core.Drained() || n.w.now >= deadline):
			n.w.left(n, n.core.Drained())
			n.stop()
		default:
			n.depart(run, deadline)
		}
	})
}
