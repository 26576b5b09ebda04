package transfer

import (
	"math"
	"sync"
	"sync/atomic"

	"github.com/ringlimit/ringlimit/owner"
)

// CopyEvery is how long a charge that nobody waits for may lie before it goes to
// the standby, in nanoseconds: so many of them share a message.
const CopyEvery = 20 * ms

// Due says when what partitions owe their standbys has to be sent.
type Due uint8

const (
	NotDue Due = iota // somebody else was told
	Later             // call Owe within CopyEvery
	Now               // call Owe at once
)

// account is a partition's credit and its lock. Everything else in a Core
// belongs to whoever calls its events, one at a time; to an account, whoever
// decides comes as well.
//
// Why a charge that is entered after the table has decided is not lost, whatever
// the core does in between. The charge is in the table, and in every export that
// begins later. So if the core
//
//   - freezes the partition: the frozen copy has the charge, or the table would
//     have refused. The account stays open while the standby is needed. Entered
//     later, the charge finds no standby, and whoever got the frozen copy has it.
//   - appoints a standby: guarded is set before the seed's first export. A charge
//     that reads it unset was decided before, and the seed has it. One that reads
//     it set is entered, and sent again beside the seed.
//   - takes a batch: the lock orders the two. Entered before, the charge was
//     decided before the batch's export; entered after, it makes the counter
//     dirty anew.
//   - retires the standby: the lock orders the two. Entered before, the reply is
//     among those forgiven; entered after, it does not wait. The charge itself is
//     in the seed of the next standby, which begins later.
//   - gave the partition away, and has it back: then it was decided long ago and
//     is among the counters that came back. Its counter is sent once more.
//
// Numbers of batches go on over all of that, so that no receipt of one standby
// is taken for another's.
type account struct {
	guarded atomic.Bool // there is a standby; it changes under mu
	mu      sync.Mutex
	credit
	seeded  bool // the standby has everything: replies wait for it
	listed  bool // the partition is in Core.owing
	hurried bool // somebody was told Now, or an acknowledgement has to come first

	_ [64]byte // keeps the next account's lock off our cache lines
}

// owing is the partitions that owe their standby something since the last Owe.
type owing struct {
	mu   sync.Mutex
	list []int
}

// add reports whether the partition is the first.
func (o *owing) add(p int) (first bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.list = append(o.list, p)
	return len(o.list) == 1
}

// take empties the list into a buffer of the caller.
func (o *owing) take(into []int) []int {
	o.mu.Lock()
	defer o.mu.Unlock()
	into, o.list = append(into[:0], o.list...), o.list[:0]
	return into
}

// Charge says that a counter was charged so much, in units of cost. It is the
// one method that is safe for concurrent use with all others, and is to be called
// right after the table has decided. Slack is what the rule says, and not
// negative: a rule that wants no copies has nothing to enter here.
//
// If it waits, the reply may only go when Pay names r: then no more than slack
// units of the counter's charges would be lost with this node. Pay may come
// before Charge returns.
func (c *Core) Charge(p int, id owner.ID, cost, slack int64, r Reply) (waits bool, due Due) {
	k := &c.accounts[p]
	if !k.guarded.Load() {
		return false, NotDue
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.guarded.Load() {
		return false, NotDue // it was retired just now
	}
	if !k.seeded {
		slack = math.MaxInt64 // it must get there, but nobody waits for it
	}
	owed := k.charge(id, cost, slack, r)
	if owed > slack/2 && !k.hurried {
		k.hurried, due = true, Now
	}
	if !k.listed {
		k.listed = true
		if c.owing.add(p) && due == NotDue {
			due = Later
		}
	}
	return owed > slack, due
}

// Guarded says whether Charge has anything to do for a partition. It is safe for
// concurrent use, and may come instead of a Charge: after the decision.
func (c *Core) Guarded(p int) bool { return c.accounts[p].guarded.Load() }

// Owe is the event that it is time to send what partitions owe their standbys.
func (c *Core) Owe(now int64) {
	c.at(now)
	c.owed = c.owing.take(c.owed)
	for _, p := range c.owed {
		c.accounts[p].unlist()
		c.pump(p)
	}
	c.settle()
}

func (k *account) unlist() {
	k.mu.Lock()
	k.listed = false
	k.mu.Unlock()
}

// open begins an account with a standby that has nothing.
func (k *account) open() {
	k.mu.Lock()
	k.seeded = false
	k.guarded.Store(true)
	k.mu.Unlock()
}

// complete says that the standby has everything.
func (k *account) complete() {
	k.mu.Lock()
	k.seeded = true
	k.mu.Unlock()
}

// close ends the account and returns the replies that nobody holds up any more.
func (k *account) close() []Reply {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.guarded.Store(false)
	k.seeded, k.hurried = false, false
	return k.forgive()
}

// next numbers what leaves for the standby.
func (k *account) next() uint64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.credit.next()
}

// batch takes what is to be sent, if there is anything and not too much is on
// its way. Whoever charges when too much is need not hurry anybody: the
// acknowledgement will.
func (k *account) batch(now int64) (b batch, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if ok = len(k.dirty) > 0 && len(k.sent) < copiesAhead; ok {
		b = k.credit.batch(copyMost, now)
	}
	k.hurried = len(k.sent) >= copiesAhead
	return b, ok
}

func (k *account) cut(number uint64, n int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.credit.cut(number, n)
}

func (k *account) acked(number uint64) []Reply {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.credit.acked(number)
}
