package forward

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/ringlimit/ringlimit/limit"
	"github.com/ringlimit/ringlimit/membership"
	"github.com/ringlimit/ringlimit/owner"
	"github.com/ringlimit/ringlimit/owner/transfer"
)

// fate is what becomes of a message to another node, or of its answer.
type fate int

const (
	delivered  fate = iota
	lost            // it does not arrive
	answerLost      // it is counted, and nobody hears of that
	absent          // there is no process, for as long as anybody asks
	moving          // the partition is not there at first
	movingLate      // and then the copy of a charge is late: of this node
)

// ordealLocal is this node, whose takes may fare as badly as those of others: a copy
// is late, or a call is parked until its time is over. Its refunds are delivered.
type ordealLocal struct {
	tableLocal
	take  fate
	moved atomic.Bool
}

func (l *ordealLocal) Decide(_ context.Context, now, _ int64, c *owner.Call, v *limit.Verdict) error {
	if c.Mode != limit.Take {
		return l.Table.Decide(now, c, v)
	}
	if l.moves() {
		return owner.ErrNotHolder
	}
	if l.take == lost {
		return context.DeadlineExceeded
	}
	err := l.Table.Decide(now, c, v)
	if err == nil && v.Allowed && l.late() {
		err = context.DeadlineExceeded
	}
	return err
}

func (l *ordealLocal) DecideGroup(_ context.Context, now, _ int64, calls []owner.Call, results []owner.Result) {
	if calls[0].Mode == limit.Take && (l.moves() || l.take == lost) { // a group is not parked
		fail(results, owner.ErrNotHolder)
		return
	}
	l.Table.DecideFrame(now, calls, results)
	for i := range results {
		if results[i].Taken && l.late() {
			results[i].Err = context.DeadlineExceeded
		}
	}
}

func (l *ordealLocal) DecideFrame(int64, int64, []owner.Call, []owner.Result, owner.Late, uint64) {
	panic("no ordeal is of many requests")
}

// moves says whether the partitions are just moving: once a request.
func (l *ordealLocal) moves() bool {
	return (l.take == moving || l.take == movingLate) && l.moved.CompareAndSwap(false, true)
}

func (l *ordealLocal) late() bool { return l.take == answerLost || l.take == movingLate }

// ordeal is requests of one node to owners that fail now and then.
type ordeal struct {
	owners    []membership.NodeID // of each counter
	limits    []int64
	onFailure []limit.OnFailure
	requests  []suffered
}

type suffered struct {
	costs   []int64 // one a counter; under 1: it is not asked for
	takes   map[membership.NodeID]fate
	refunds map[membership.NodeID]fate
}

func drawOrdeal() *rapid.Generator[ordeal] {
	fates := func(t *rapid.T, of string) map[membership.NodeID]fate {
		draw := rapid.SampledFrom([]fate{delivered, delivered, delivered, lost, answerLost, absent, moving})
		here := rapid.SampledFrom([]fate{delivered, delivered, delivered, lost, answerLost, moving, movingLate})
		return map[membership.NodeID]fate{self: here.Draw(t, of), other: draw.Draw(t, of), third: draw.Draw(t, of)}
	}
	return rapid.Custom(func(t *rapid.T) (o ordeal) {
		for range 6 {
			o.owners = append(o.owners, rapid.SampledFrom([]membership.NodeID{self, other, third}).Draw(t, "owner"))
			o.limits = append(o.limits, rapid.Int64Range(1, 12).Draw(t, "limit"))
			o.onFailure = append(o.onFailure, rapid.SampledFrom([]limit.OnFailure{limit.FailLocal, limit.FailAllow, limit.FailDeny}).Draw(t, "on_failure"))
		}
		for range rapid.IntRange(1, 20).Draw(t, "requests") {
			r := suffered{costs: rapid.SliceOfN(rapid.Int64Range(-1, 3), 6, 6).Draw(t, "costs")}
			r.takes, r.refunds = fates(t, "take"), fates(t, "refund")
			o.requests = append(o.requests, r)
		}
		return o
	})
}

// suffer makes a node fail as the request says.
func (p *groupPeer) suffer(take, refund fate) {
	var moved atomic.Bool
	of := func(c *owner.Call) fate {
		if c.Mode == limit.Refund {
			return refund
		}
		return take
	}
	p.fails = func(c *owner.Call) error {
		switch f := of(c); {
		case f == lost:
			return ErrUnreachable
		case f == absent:
			return ErrAbsent
		case f == moving && moved.CompareAndSwap(false, true):
			return &transfer.NotMine{}
		}
		return nil
	}
	p.loses = func(c *owner.Call) error {
		if of(c) == answerLost {
			return ErrUnreachable
		}
		return nil
	}
}

// Law: whichever owner is lost in the middle of a request, none has counted less
// than what was admitted in its name; and more only where an answer or a refund was
// lost. So a request that is refused leaves nothing charged while all owners live,
// also when their partitions are just moving. What this node has charged, and has no
// copy of in time, stays charged only if on_failure admits it, or answers it alone.
func TestOwnersAreLostInTheMiddle(t *testing.T) { checkLaw(t, drawOrdeal(), (*trio).endure) }

func (k *trio) endure(t *testing.T, a limit.Algorithm, o ordeal) (wrong string) {
	var charges []limit.Charge
	for i, at := range o.owners {
		spec := limit.Spec{Algorithm: a, Limit: o.limits[i], Window: 10_000 * time.Hour}
		if a == limit.LeakyBucket {
			spec.Burst = spec.Limit - 1
		}
		charges = append(charges, unit(k.named(t, at, i), withFailure(ruleOf(t, spec), o.onFailure[i])))
	}
	admitted, doubt := make([]int64, len(charges)), make([]int64, len(charges))
	for n, r := range o.requests {
		k.b.suffer(r.takes[other], r.refunds[other])
		k.c.suffer(r.takes[third], r.refunds[third])
		k.cfg.Local = &ordealLocal{tableLocal: tableLocal{k.local}, take: r.takes[self]}
		k.request(t, r, o.owners, charges, admitted, doubt)
		for i, c := range charges {
			if used := o.limits[i] - k.tableOf(o.owners[i]).left(c); used < admitted[i] || used > admitted[i]+doubt[i] {
				return fmt.Sprintf("request %d: %d are used of counter %d at %s, %d were admitted and %d are in doubt",
					n, used, i, o.owners[i], admitted[i], doubt[i])
			}
		}
	}
	return ""
}

// request makes a request, waits for its refunds, and notes what owners have
// admitted, and what one may have charged beyond that.
func (k *trio) request(t *testing.T, r suffered, owners []membership.NodeID, charges []limit.Charge, admitted, doubt []int64) {
	var asked []int
	var request []limit.Charge
	for i, cost := range r.costs {
		if cost > 0 {
			c := charges[i]
			c.Cost = cost
			asked, request = append(asked, i), append(request, c)
		}
	}
	verdicts := k.takeAll(t, request...)
	time.Sleep(time.Second)
	synctest.Wait() // for the last of the refunds
	passed := true
	for _, v := range verdicts {
		passed = passed && v.Allowed
	}
	for n, i := range asked {
		take, refund := r.takes[owners[i]], r.refunds[owners[i]]
		if passed && verdicts[n].Source != limit.SourceFallback {
			admitted[i] += r.costs[i]
		}
		if owners[i] == self { // of several limits it knows what it has charged, and gives it back
			if verdicts[n].Source == limit.SourceFallback && (passed || len(request) == 1) {
				doubt[i] += r.costs[i]
			}
			continue
		}
		if take == answerLost || !passed && (refund == lost || refund == absent) {
			doubt[i] += r.costs[i]
		}
	}
}

// counted is an owner's counters.
type counted struct{ *owner.Table }

func (k *trio) tableOf(id membership.NodeID) counted {
	return counted{map[membership.NodeID]*owner.Table{self: k.local, other: k.b.Table, third: k.c.Table}[id]}
}

// left is what remains, whoever can be reached.
func (t counted) left(ch limit.Charge) int64 {
	c := owner.Call{Charge: ch}
	c.Mode, c.ID = limit.Peek, owner.Seed(1).ID(c.Counter)
	c.Partition = int(c.ID.Hi % uint64(params.Partitions))
	v, err := answer(t.Table, &c)
	if err != nil {
		panic(err)
	}
	return v.Remaining
}
