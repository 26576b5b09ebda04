package sim

import (
	"github.com/ringlimit/ringlimit/limit"
	"github.com/ringlimit/ringlimit/membership"
	"github.com/ringlimit/ringlimit/owner"
	"github.com/ringlimit/ringlimit/owner/transfer"
)

const (
	patience = 50 * ms // a check's deadline
	breath   = 5 * ms  // before the owner is looked for once more
)

// check is one request on its way to a verdict. It is answered at most once:
// who may have charged it is not asked again.
type check struct {
	key      *key
	from     *node // the gateway that a client asked
	run      int   // its process
	deadline int64
	hinted   bool
	decided  int64 // when
	over     bool
}

// ask lets a client ask a gateway.
func (w *world) ask(n *node, k *key) {
	c := &check{key: k, from: n, run: n.boots, deadline: w.now + patience}
	w.asked++
	w.after(patience, func() {
		if !c.over {
			c.over = true
			w.unanswered++
			w.note("%d %s: no owner for %s\n", w.now, n.id, k.name)
		}
	})
	c.look()
}

// look goes to the owner as the gateway sees it.
func (c *check) look() {
	w := c.from.w
	if c.over || !c.from.running() || c.from.boots != c.run {
		return
	}
	r := c.from.core.Ring()
	i := r.Owner(c.key.partition)
	if i < 0 {
		w.after(breath, c.look)
		return
	}
	c.goTo(w.node(r.Nodes()[i]))
}

func (c *check) goTo(to *node) {
	if to == c.from {
		to.check(c)
		return
	}
	c.from.w.carry(c.from, to, call, func() { to.check(c) }, func() { c.refused(to) })
}

// refused has a witness that the process is gone.
func (c *check) refused(by *node) {
	if c.from.boots != c.run {
		return
	}
	c.from.refused(by) // it tells everybody
	c.look()
}

// misdirected follows one hint; after that, it takes a breath and looks again.
func (c *check) misdirected(by *node, hint membership.NodeID) {
	to := c.from.w.node(hint)
	if c.hinted || to == nil || to == by {
		c.hinted = false
		c.from.w.after(breath, c.look)
		return
	}
	c.hinted = true
	c.goTo(to)
}

// check answers a check, here or by a hint, or lets it wait.
func (n *node) check(c *check) {
	w := n.w
	if w.now > c.deadline {
		return // the caller has gone
	}
	way, hint := n.core.Route(c.key.partition)
	n.plan()
	switch {
	case way == transfer.Decide && n.clock() <= n.core.DecideUntil():
		n.decide(c)
	case way == transfer.Wait:
		n.waiting = append(n.waiting, c)
	default:
		n.reply(c, func() { c.misdirected(n, hint) })
	}
}

func (n *node) decide(c *check) {
	var v limit.Verdict
	charge := owner.Call{ID: c.key.id, Partition: c.key.partition, Charge: limit.Charge{Counter: []byte(c.key.name), Rule: c.key.rule(c.from), Cost: 1}}
	if err := n.table.Decide(n.clock(), &charge, &v); err != nil {
		n.w.wrong("%s does not decide for %s: %v", n.id, c.key.name, err)
	}
	n.w.decided(n, c.key, v.Allowed)
	c.decided = n.w.now
	if !v.Allowed {
		n.reply(c, func() { c.over = true })
		return
	}
	n.later(n.w.hesitation(), func() { n.charge(c) })
}

// charge enters the charge, as another goroutine than the core's does: anything
// may have happened since the table decided.
func (n *node) charge(c *check) {
	n.unpaid[c] = true
	if c.key.slack < 0 {
		n.admit(c)
		return
	}
	waits, due := n.core.Charge(c.key.partition, c.key.id, 1, c.key.slack, c)
	if !waits {
		n.admit(c)
	}
	switch due {
	case transfer.Now:
		n.later(n.w.hesitation(), n.owe)
	case transfer.Later:
		n.later(transfer.CopyEvery, n.owe)
	}
}

func (n *node) owe() {
	n.core.Owe(n.clock())
	n.obey()
}

// admit tells the caller. One whose deadline has passed has another answer.
func (n *node) admit(c *check) {
	if !n.unpaid[c] {
		n.w.wrong("%s answers a check of %s twice", n.id, c.key.name)
	}
	delete(n.unpaid, c)
	if n.w.now <= c.deadline {
		c.key.admitted = append(c.key.admitted, c.decided+epoch)
		n.reply(c, func() { c.over = true })
	}
}

func (n *node) pay(a transfer.Pay) {
	for _, r := range a.Replies {
		n.admit(r.(*check))
	}
}

func (n *node) reply(c *check, do func()) {
	if n == c.from {
		do()
		return
	}
	run := c.run
	n.w.carry(n, c.from, call, func() {
		if c.from.boots == run {
			do()
		}
	}, nil)
}

// wake asks again for the checks that wait for a partition.
func (n *node) wake(p int) {
	var rest, woken []*check
	for _, c := range n.waiting {
		if c.key.partition == p {
			woken = append(woken, c)
		} else if n.w.now <= c.deadline {
			rest = append(rest, c)
		}
	}
	n.waiting = rest
	for _, c := range woken {
		n.w.after(0, func() { n.run(func() { n.check(c) }) })
	}
}
