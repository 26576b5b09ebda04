package transfer

import (
	"slices"

	"github.com/ringlimit/ringlimit/owner"
)

// credit is what a holder has charged and its standby does not have yet. The
// reply to a charge waits until no more than a given slack of the counter's
// charges would be lost with this node. It knows no time of its own and no
// other node.
type credit struct {
	debts  map[owner.ID]debt
	dirty  []owner.ID // counters to send, in the order of their first charge
	waits  []wait
	sent   []batch // not acknowledged, ascending
	spare  []batch // to be used again
	number uint64  // of the latest batch
}

// Reply is what waits for a copy, as the shell names it; it comes back in Pay.
type Reply any

// debt is what one counter was charged since all of it was acknowledged, in
// units of cost.
type debt struct {
	charged, acked int64
	born           uint64 // the latest batch when it was made: it is not in that one
	dirty          bool
}

// batch is counters on their way, and how far each was charged by then.
type batch struct {
	number  uint64
	ids     []owner.ID
	charged []int64
	left    int64 // when it was sent first
	at      int64 // when it was sent last
}

// wait is a reply that may go when so much is acknowledged.
type wait struct {
	reply Reply
	id    owner.ID
	acked int64
}

// charge enters a charge and returns how much of the counter's charges is
// without a copy now. If that is more than the slack, the reply waits.
func (k *credit) charge(id owner.ID, cost, slack int64, r Reply) (owed int64) {
	d, ok := k.debts[id]
	if !ok {
		if k.debts == nil {
			k.debts = make(map[owner.ID]debt)
		}
		d.born = k.number
	}
	d.charged += cost
	if !d.dirty {
		d.dirty = true
		k.dirty = append(k.dirty, id)
	}
	k.debts[id] = d
	if d.charged-d.acked > slack {
		k.waits = append(k.waits, wait{r, id, d.charged - slack})
	}
	return d.charged - d.acked
}

// batch takes up to so many dirty counters to send. Their states are to be read
// after it: what is charged meanwhile is in them, or makes them dirty again.
func (k *credit) batch(most int, now int64) batch {
	var b batch
	if last := len(k.spare) - 1; last >= 0 {
		b, k.spare = k.spare[last], k.spare[:last]
	}
	n := min(most, len(k.dirty))
	b.number, b.left, b.at = k.next(), now, now
	b.ids, b.charged = append(b.ids[:0], k.dirty[:n]...), b.charged[:0]
	k.dirty = slices.Delete(k.dirty, 0, n)
	for _, id := range b.ids {
		d := k.debts[id]
		d.dirty = false
		k.debts[id] = d
		b.charged = append(b.charged, d.charged)
	}
	k.sent = append(k.sent, b)
	return b
}

// cut leaves the last counters of a batch for another one.
func (k *credit) cut(number uint64, n int) {
	i := slices.IndexFunc(k.sent, func(b batch) bool { return b.number == number })
	b := &k.sent[i]
	for _, id := range b.ids[n:] {
		if d, ok := k.debts[id]; ok && !d.dirty {
			d.dirty = true
			k.debts[id] = d
			k.dirty = append(k.dirty, id)
		}
	}
	b.ids, b.charged = b.ids[:n], b.charged[:n]
}

func (k *credit) next() uint64 {
	k.number++
	return k.number
}

// acked takes note that a batch has arrived, and returns the replies that may
// go now.
func (k *credit) acked(number uint64) []Reply {
	i := slices.IndexFunc(k.sent, func(b batch) bool { return b.number == number })
	if i < 0 {
		return nil // it was acknowledged before
	}
	b := k.sent[i]
	k.sent = slices.Delete(k.sent, i, i+1)
	for j, id := range b.ids {
		k.settle(id, b.charged[j], number)
	}
	k.spare = append(k.spare, b)
	return k.due()
}

// settle takes note that a batch with so much of a counter's charges has arrived.
func (k *credit) settle(id owner.ID, charged int64, number uint64) {
	d, ok := k.debts[id]
	if !ok || number <= d.born {
		return // that debt is settled; this is another
	}
	if d.acked = max(d.acked, charged); d.acked == d.charged {
		delete(k.debts, id)
		return
	}
	k.debts[id] = d
}

// due takes out the replies that may go. Who waits for a debt that is settled
// does not wait for the next one of the same counter: due follows every settle.
func (k *credit) due() (replies []Reply) {
	k.waits = slices.DeleteFunc(k.waits, func(w wait) bool {
		if d, ok := k.debts[w.id]; ok && d.acked < w.acked {
			return false
		}
		replies = append(replies, w.reply)
		return true
	})
	return replies
}

// late is a batch that left too long ago and was not acknowledged; nil when
// there is none. It is to be sent again, with the same number: the counters
// it names can only have been charged more since.
func (k *credit) late(tooLong func(at int64) bool, now int64) *batch {
	for i := range k.sent {
		if b := &k.sent[i]; tooLong(b.at) {
			b.at = now
			return b
		}
	}
	return nil
}

// forgive lets all replies go: there is nobody who could acknowledge.
func (k *credit) forgive() (replies []Reply) {
	for _, w := range k.waits {
		replies = append(replies, w.reply)
	}
	*k = credit{number: k.number}
	return replies
}
