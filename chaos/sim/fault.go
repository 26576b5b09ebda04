package sim

import (
	"fmt"

	"github.com/ringlimit/ringlimit/membership"
)

// Fault does something to the cluster when its time has come.
type Fault func(*world)

// victims are the running members that serve. A fault leaves two of them.
func (w *world) victims() (nodes []*node) {
	for _, n := range w.nodes {
		if n.running() && n.core.Self().State == membership.Serving {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

func (w *world) victim() *node {
	if nodes := w.victims(); len(nodes) > 2 {
		return nodes[w.rand.IntN(len(nodes))]
	}
	return nil
}

func (w *world) happened(format string, args ...any) {
	what := fmt.Sprintf(format, args...)
	w.faults = append(w.faults, fmt.Sprintf("%.3fs %s", float64(w.now)/float64(s), what))
	w.note("%d %s\n", w.now, what)
}

// Join starts a new node.
func Join(w *world) {
	n := w.addNode()
	w.happened("%s joins", n.id)
	n.join()
}

// Leave drains a node.
func Leave(w *world) {
	if n := w.victim(); n != nil {
		w.happened("%s leaves", n.id)
		n.leave()
	}
}

// Restart drains a node and starts it again.
func Restart(w *world) {
	n := w.victim()
	if n == nil {
		return
	}
	w.happened("%s restarts", n.id)
	n.leave()
	w.again(n, n.boots)
}

// again starts a node whose process has ended.
func (w *world) again(n *node, run int) {
	w.after(100*ms, func() {
		switch {
		case n.boots != run:
		case n.up:
			w.again(n, run)
		default:
			n.join()
		}
	})
}

// Crash kills a process; most come back.
func Crash(w *world) {
	n := w.victim()
	if n == nil {
		return
	}
	w.crash(n)
}

func (w *world) crash(n *node) {
	w.happened("%s crashes", n.id)
	w.loses(n)
	n.stop()
	if run := n.boots; w.chance(70) {
		w.after(w.between(200*ms, 3*s), func() { w.again(n, run) })
	}
}

// CrashBoth kills an owner and one of its standbys together.
func CrashBoth(w *world) {
	n := w.victim()
	if n == nil || len(w.victims()) < 4 {
		return
	}
	r := n.core.Ring()
	for p := range r.Partitions() {
		if r.Nodes()[r.Owner(p)] == n.id && r.Standby(p) >= 0 {
			w.crash(n)
			w.crash(w.node(r.Nodes()[r.Standby(p)]))
			return
		}
	}
}

// Pause stops a process for longer than it takes to be declared dead.
func Pause(w *world) {
	if n := w.victim(); n != nil {
		w.pause(n)
	}
}

func (w *world) pause(n *node) {
	w.happened("%s is paused", n.id)
	w.loses(n)
	n.paused = true
	run := n.boots
	w.after(w.between(1500*ms, 6*s), func() {
		if n.up && n.boots == run {
			w.note("%d %s: goes on\n", w.now, n.id)
			n.resume()
		}
	})
}

// Flap lets a node believe that another is dead, which is not so.
func Flap(w *world) {
	n := w.victim()
	if n == nil {
		return
	}
	others := w.victims()
	other := others[w.rand.IntN(len(others))]
	if r, ok := n.record(other); ok && other != n {
		w.happened("%s believes that %s is dead", n.id, other.id)
		n.bury(r)
	}
}

// Partition cuts the cluster in two for a while.
func Partition(w *world) {
	side := map[*node]bool{}
	for _, n := range w.nodes {
		side[n] = w.chance(50)
	}
	w.split("the cluster is cut in two", func(a, b *node) bool { return side[a] != side[b] })
}

// Partial cuts some links, each way.
func Partial(w *world) {
	a, b := w.pair()
	w.split(fmt.Sprintf("%s and %s are cut off from each other", a.id, b.id), func(x, y *node) bool {
		return x == a && y == b || x == b && y == a
	})
}

// OneWay cuts a link one way.
func OneWay(w *world) {
	a, b := w.pair()
	w.split(fmt.Sprintf("nothing gets from %s to %s", a.id, b.id), func(x, y *node) bool { return x == a && y == b })
}

func (w *world) pair() (a, b *node) {
	i := w.rand.IntN(len(w.nodes))
	j := (i + 1 + w.rand.IntN(len(w.nodes)-1)) % len(w.nodes)
	return w.nodes[i], w.nodes[j]
}

func (w *world) split(what string, cut func(a, b *node) bool) {
	w.happened("%s", what)
	lasts := w.between(1*s, 5*s)
	w.part(lasts)
	var links []link
	for _, a := range w.nodes {
		for _, b := range w.nodes {
			if a != b && cut(a, b) {
				links = append(links, link{a, b})
				w.cut[link{a, b}] = true
			}
		}
	}
	w.after(lasts, func() {
		w.note("%d %s: no more\n", w.now, what)
		for _, l := range links {
			delete(w.cut, l)
		}
	})
}

// Rules changes the limits once, at every node when it hears of it.
func Rules(w *world) {
	if w.changed {
		return // once is enough
	}
	w.happened("the rules change")
	w.changed = true
	for _, k := range w.keys {
		k.changed = w.now + epoch
	}
	for _, n := range w.nodes {
		w.after(w.between(0, 300*ms), func() { w.rules[n] = true })
	}
}

// calm says that the time of faults is over: the network behaves, too.
func (w *world) calm() bool { return w.cfg.Calm || w.now > calmFor+faultsFor }

// mend ends what faults have left.
func (w *world) mend() {
	clear(w.cut)
	for _, n := range w.nodes {
		if n.paused {
			n.resume()
		}
	}
}
