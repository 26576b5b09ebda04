package transfer

import (
	"slices"

	"github.com/ringlimit/ringlimit/owner"
)

// credit is what a holder has charged and its standby does not have yet. The
// reply to a charge waits until no more than a given slack of the counter's
// charges would be lost with this node. It knows no time and no other node, so
// that a shell can give each partition's its own lock.
type credit struct {
	debts  map[owner.ID]*debt
	dirty  []owner.ID // counters to send, in the order of their first charge
	sent   []batch    // not acknowledged, ascending
	number uint64     // of the latest batch
	waits  []wait
	ticket uint64
}

// debt is one counter's account, in units of cost.
type debt struct {
	charged, acked int64
	dirty          bool
}

// batch is counters on their way, and how far each was charged by then.
type batch struct {
	number  uint64
	ids     []owner.ID
	debts   []*debt
	charged []int64
	at      int64 // when it left
}

// wait is a reply that is due when so much is acknowledged.
type wait struct {
	ticket uint64
	debt   *debt
	acked  int64
}

// charge enters a charge. The reply may go at once if ticket is 0.
func (k *credit) charge(id owner.ID, cost, slack int64) (ticket uint64) {
	d := k.debts[id]
	if d == nil {
		if k.debts == nil {
			k.debts = make(map[owner.ID]*debt)
		}
		d = &debt{}
		k.debts[id] = d
	}
	d.charged += cost
	k.mark(id, d)
	if d.charged-d.acked <= slack {
		return 0
	}
	k.ticket++
	k.waits = append(k.waits, wait{k.ticket, d, d.charged - slack})
	return k.ticket
}

func (k *credit) mark(id owner.ID, d *debt) {
	if !d.dirty {
		d.dirty = true
		k.dirty = append(k.dirty, id)
	}
}

// batch takes up to so many dirty counters to send. Their states are to be read
// now: what is charged meanwhile is in them, or makes them dirty again.
func (k *credit) batch(most int, now int64) *batch {
	n := min(most, len(k.dirty))
	b := batch{number: k.next(), ids: k.dirty[:n:n], at: now}
	k.dirty = k.dirty[n:]
	for _, id := range b.ids {
		d := k.debts[id]
		d.dirty = false
		b.debts, b.charged = append(b.debts, d), append(b.charged, d.charged)
	}
	k.sent = append(k.sent, b)
	return &k.sent[len(k.sent)-1]
}

func (k *credit) next() uint64 {
	k.number++
	return k.number
}

// acked takes note that a batch has arrived, and returns the replies that may
// go now.
func (k *credit) acked(number uint64) (tickets []uint64) {
	i := slices.IndexFunc(k.sent, func(b batch) bool { return b.number == number })
	if i < 0 {
		return nil // sent again meanwhile
	}
	b := k.sent[i]
	k.sent = slices.Delete(k.sent, i, i+1)
	for j, id := range b.ids {
		d := b.debts[j]
		d.acked = max(d.acked, b.charged[j])
		if d.acked == d.charged && k.debts[id] == d {
			delete(k.debts, id)
		}
	}
	return k.due()
}

func (k *credit) due() (tickets []uint64) {
	k.waits = slices.DeleteFunc(k.waits, func(w wait) bool {
		if w.debt.acked < w.acked {
			return false
		}
		tickets = append(tickets, w.ticket)
		return true
	})
	return tickets
}

// late is a batch that left before a moment and was not acknowledged; nil when
// there is none. It is to be sent again, with the same number: the counters it
// names can only have been charged more since.
func (k *credit) late(before, now int64) *batch {
	for i := range k.sent {
		if b := &k.sent[i]; b.at <= before {
			b.at = now
			return b
		}
	}
	return nil
}

// forgive lets all replies go: there is nobody who could acknowledge.
func (k *credit) forgive() (tickets []uint64) {
	for _, w := range k.waits {
		tickets = append(tickets, w.ticket)
	}
	*k = credit{ticket: k.ticket, number: k.number}
	return tickets
}
