package transfer

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ringlimit/ringlimit/limit"
	"github.com/ringlimit/ringlimit/membership"
	"github.com/ringlimit/ringlimit/owner"
)

// confirm acknowledges all copies that were sent to a node.
func (p *peer) confirm(id membership.NodeID) (copies []Copy) {
	for _, m := range said[*Replicate](p, id) {
		back := &Replicated{}
		for _, c := range m.Copies {
			back.Receipts = append(back.Receipts, Receipt{Partition: c.Partition, Stream: c.Stream, Number: c.Number})
		}
		copies = append(copies, m.Copies...)
		p.hear(id, back)
	}
	return copies
}

// settled is node a, which holds what it owns besides b, and b has copies of all.
func settled(t rapid.TB) (p *peer, mine []int) {
	p = newPeer(t, record("b", membership.Serving))
	p.deny("b")
	mine = owned(t, "a", "b")
	for len(p.confirm("b")) > 0 {
	}
	if p.Unguarded() != 0 {
		t.Fatalf("%d partitions have no copy", p.Unguarded())
	}
	return p, mine
}

// paid takes the replies that may go.
func (p *peer) paid() (replies []Reply) {
	p.wants = slices.DeleteFunc(p.wants, func(a Action) bool {
		pay, ok := a.(Pay)
		if ok {
			replies = append(replies, pay.Replies...)
		}
		return ok
	})
	return replies
}

func charge(p *peer, partition int, counter uint64, cost, slack int64, r Reply) string {
	waits, due := p.Charge(partition, owner.ID{Lo: counter}, cost, slack, r)
	return fmt.Sprintf("waits %v, %s", waits, [...]string{"not due", "later", "now"}[due])
}

func TestChargesGoWhenTheyAreDue(t *testing.T) {
	p, mine := settled(t)
	for i, step := range []struct {
		partition     int
		counter       uint64
		slack         int64
		want, meaning string
	}{
		{mine[0], 1, 100, "waits false, later", "the first of the list"},
		{mine[0], 1, 100, "waits false, not due", "somebody was told"},
		{mine[1], 2, 100, "waits false, not due", "the list is not empty"},
		{mine[1], 2, 3, "waits false, now", "2 of 3 are used"},
		{mine[1], 2, 3, "waits false, not due", "it was hurried"},
		{mine[1], 2, 3, "waits true, not due", "it was hurried"},
		{mine[0], 3, 0, "waits true, now", "another partition"},
	} {
		if got := charge(p, step.partition, step.counter, 1, step.slack, i); got != step.want {
			t.Errorf("charge %d (%s): %s", i, step.meaning, got)
		}
	}
	p.Owe(p.now)
	p.drain()
	if sent := said[*Replicate](p, "b"); len(sent) != 1 || len(sent[0].Copies) != 2 {
		t.Errorf("not one message of two partitions: %+v", sent)
	}
	if got := charge(p, mine[0], 1, 1, 100, 99); got != "waits false, later" {
		t.Errorf("after Owe: %s", got)
	}
	if got := charge(p, mine[1], 2, 1, 0, 100); got != "waits true, now" {
		t.Errorf("after Owe, hurried anew: %s", got)
	}
}

// Who charges while nothing more may leave need not hurry anybody: the
// acknowledgement sends it.
func TestAnAcknowledgementSendsWhatCouldNotLeave(t *testing.T) {
	p, mine := settled(t)
	for i := range uint64(copiesAhead) {
		charge(p, mine[0], i, 1, 0, i)
		p.Owe(p.now)
	}
	p.drain()
	if got := charge(p, mine[0], 99, 1, 0, 99); got != "waits true, later" {
		t.Errorf("%s", got)
	}
	p.Owe(p.now)
	p.drain()
	if first := p.confirm("b"); len(first) != copiesAhead {
		t.Fatalf("%d copies left", len(first))
	}
	if rest := p.confirm("b"); len(rest) != 1 {
		t.Errorf("then %d, not 1", len(rest))
	}
	if n := len(p.paid()); n != copiesAhead+1 {
		t.Errorf("%d replies went", n)
	}
}

// A node that has nobody answers at once, and so does one whose standby does not
// have everything yet; but what is charged meanwhile gets there.
func TestWithoutACopyNobodyWaits(t *testing.T) {
	alone := newPeer(t)
	if got := charge(alone, 0, 1, 1, 0, 1); got != "waits false, not due" {
		t.Errorf("alone: %s", got)
	}
	p := newPeer(t, record("b", membership.Serving))
	p.deny("b")
	i := owned(t, "a", "b")[0]
	if got := charge(p, i, 1, 1, 0, 1); got != "waits false, later" {
		t.Errorf("unseeded: %s", got)
	}
	seed := p.confirm("b")
	p.Owe(p.now)
	p.drain()
	again := p.confirm("b")
	if len(seed) == 0 || !slices.ContainsFunc(again, func(c Copy) bool { return c.Partition == i && c.Number > 1 }) {
		t.Errorf("seed %+v, then %+v", seed, again)
	}
}

// What was charged is on its way, or somebody was told to send it, or an
// acknowledgement will; and every reply that waits goes once, and no other.
func TestLawOwe(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, mine := settled(t)
		told, waiting := false, map[Reply]bool{}
		look := func() {
			p.drain()
			for _, r := range p.paid() {
				if !waiting[r] {
					t.Fatalf("reply %v goes and did not wait", r)
				}
				delete(waiting, r)
			}
			for _, i := range mine {
				if k := &p.accounts[i]; len(k.dirty) > 0 && len(k.sent) < copiesAhead && !told {
					t.Fatalf("partition %d owes %d counters, and nobody was told", i, len(k.dirty))
				}
			}
		}
		for n := range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 5).Draw(t, "what") {
			case 0, 1, 2:
				i := mine[rapid.IntRange(0, 1).Draw(t, "partition")]
				waits, due := p.Charge(i, owner.ID{Lo: rapid.Uint64Range(1, 3).Draw(t, "counter")}, 1, rapid.Int64Range(0, 3).Draw(t, "slack"), n)
				told = told || due != NotDue
				if waits {
					waiting[n] = true
				}
			case 3:
				told = false
				p.Owe(p.now)
			case 4:
				p.confirm("b")
			case 5:
				p.pass(5 * time.Millisecond)
				p.hear("b", &BeatBack{At: p.now})
			}
			look()
		}
		for range 5 {
			told = false
			p.Owe(p.now)
			p.drain()
			p.confirm("b")
			look()
		}
		if len(waiting) > 0 {
			t.Fatalf("all has arrived, and %v wait", waiting)
		}
	})
}

// Goroutines that decide and charge, while standbys come and go and the
// partition changes hands under them: every reply that waits goes once, and what
// the table admitted is what it hands over.
func TestChargeRacesWithTheCore(t *testing.T) {
	p, i := holder(t)
	rule, err := limit.NewRule(limit.Spec{Algorithm: limit.FixedWindow, Limit: 1 << 40, Window: 100 * 365 * 24 * time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	const workers, charges = 4, 2000
	var group sync.WaitGroup
	var began atomic.Bool
	admitted, waited := make([]int64, workers), make([]int, workers)
	for w := range workers {
		group.Go(func() {
			call := owner.Call{ID: owner.Seed(1).ID([]byte("k")), Partition: i, Charge: limit.Charge{Counter: []byte("k"), Rule: rule, Cost: 1}}
			for n := range charges {
				var v limit.Verdict
				if p.table.Decide(1, &call, &v) != nil {
					return
				}
				admitted[w]++
				began.Store(true)
				if waits, _ := p.Charge(i, call.ID, 1, int64(n%3), [2]int{w, n}); waits {
					waited[w]++
				}
			}
		})
	}
	went := map[Reply]bool{}
	note := func() {
		for _, r := range p.paid() {
			if went[r] {
				t.Errorf("reply %v goes twice", r)
			}
			went[r] = true
		}
	}
	for n := 0; n < 300 || !began.Load(); n++ {
		p.Owe(p.now)
		p.drain()
		p.confirm("b")
		if n%50 == 49 { // b dies, and comes back
			dead := record("b", Dead)
			dead.Seq = uint64(n)
			p.Learn(p.now, []Record{dead})
			dead.Seq, dead.State = dead.Seq+1, membership.Serving
			p.Learn(p.now, []Record{dead})
		}
		note()
	}
	part := p.ask("c", i, true)
	group.Wait()
	p.hear("c", &Ack{[]Release{{i, 1, part.Release}}})
	note()
	total, all := int64(0), 0
	for w := range workers {
		total, all = total+admitted[w], all+waited[w]
	}
	if len(part.Chunk.Entries) != 1 || part.Chunk.Entries[0].State.C != total {
		t.Errorf("%d were admitted, the copy says %+v", total, part.Chunk.Entries)
	}
	if len(went) != all {
		t.Errorf("%d replies went, %d waited", len(went), all)
	}
}
