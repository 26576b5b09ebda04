package transfer

import (
	"slices"
	"testing"
	"time"

	"github.com/ringlimit/ringlimit/membership"
	"github.com/ringlimit/ringlimit/owner"
)

// asked is the latest ask for each partition that was sent to a node.
func (p *peer) asked(id membership.NodeID) map[int]Ask {
	asks := map[int]Ask{}
	for _, m := range said[*Acquire](p, id) {
		for _, a := range m.Asks {
			asks[a.Partition] = a
		}
	}
	return asks
}

func pulls(asks map[int]Ask) (list []int) {
	for i, a := range asks {
		if a.Pull {
			list = append(list, i)
		}
	}
	slices.Sort(list)
	return list
}

// Nobody decides before everybody was asked, not even for a moment.
func TestNobodyBeginsWithoutAsking(t *testing.T) {
	p := newPeer(t, record("b", membership.Serving), record("c", membership.Joining), record("d", membership.Draining), record("e", Dead))
	mine := owned(t, "a", "b")
	p.want(owner.Acquiring, mine...)
	for _, id := range []membership.NodeID{"b", "c", "d", "e"} {
		if asks := p.asked(id); len(asks) != len(mine) {
			t.Errorf("%s is asked for %d partitions of %d", id, len(asks), len(mine))
		}
	}
}

// Large moves must not hold up all else: a node sends four partitions at a time,
// first those that checks wait for.
func TestFewPartitionsAreOnTheWayTheWantedFirst(t *testing.T) {
	p := newPeer(t, record("b", membership.Serving))
	mine := owned(t, "a", "b")
	if len(mine) <= pullsAtOnce {
		t.Fatal("a owns too little; choose other names")
	}
	last := mine[len(mine)-1]
	p.wantRoute(last, Wait, "")
	held := &Answers{}
	for i, a := range p.asked("b") {
		held.Parts = append(held.Parts, Part{Partition: i, Attempt: a.Attempt, Status: Held})
	}
	p.hear("b", held)
	asks := p.asked("b")
	first := pulls(asks)
	if len(first) != pullsAtOnce || !slices.Contains(first, last) {
		t.Errorf("of %v it pulls %v at first, and %d is waited for", mine, first, last)
	}
	p.hear("b", &Answers{Parts: []Part{{Partition: last, Attempt: asks[last].Attempt, Status: Held, Pulled: true, Release: 7}}})
	p.want(owner.Holding, last)
	if next := pulls(p.asked("b")); len(next) != 1 {
		t.Errorf("then it pulls %v", next)
	}
}

// Who has a copy is not asked in vain: with the holder dead, it is all there is.
func TestCopiesArePulled(t *testing.T) {
	p := newPeer(t, record("b", membership.Serving), record("c", membership.Serving))
	i := owned(t, "a", "b", "c")[0]
	p.deny("b")
	ask := p.asked("c")[i]
	p.hear("c", &Answers{Parts: []Part{{Partition: i, Attempt: ask.Attempt, Status: Copied}}})
	p.want(owner.Acquiring, i)
	if ask = p.asked("c")[i]; !ask.Pull {
		t.Fatalf("asked: %+v", ask)
	}
	q := newPeer(t, record("b", membership.Serving), record("c", membership.Serving)) // keeps copies
	r := q.Ring()
	for k := range partitions {
		if r.Nodes()[r.Owner(k)] == "b" {
			q.hear("b", &Replicate{[]Copy{{Partition: k, Stream: 1, Number: 1}}})
			q.hear("c", &Acquire{Asks: []Ask{{Partition: k, Attempt: 1, Pull: true}}})
			if part := said[*Answers](q, "c")[0].Parts[0]; part.Status != Copied || !part.Pulled {
				t.Errorf("a copy is answered %+v", part)
			}
		}
	}
}

// A holder that dies before it has given its counters may have charged since its
// copy was pulled: that is pulled once more.
func TestCopiesArePulledAnewWhenTheHolderIsLost(t *testing.T) {
	for name, lose := range map[string]func(p *peer, ask Ask){
		"refused": func(p *peer, _ Ask) { p.Refused(p.now, "b"); p.drain() },
		"denied": func(p *peer, ask Ask) {
			p.hear("b", &Answers{Parts: []Part{{Partition: ask.Partition, Attempt: ask.Attempt, Status: Denied, Pulled: true}}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPeer(t, record("b", membership.Serving), record("c", membership.Serving))
			i := owned(t, "a", "b", "c")[0]
			holder, copies := p.asked("b")[i], p.asked("c")[i]
			p.hear("b", &Answers{Parts: []Part{{Partition: i, Attempt: holder.Attempt, Status: Held}}})
			p.hear("c", &Answers{Parts: []Part{{Partition: i, Attempt: copies.Attempt, Status: Copied}}})
			pulled := p.asked("c")[i]
			if _, early := p.asked("b")[i]; !pulled.Pull || early {
				t.Fatalf("asked for the copy: %+v; the holder was pulled: %v", pulled, early)
			}
			answer := &Answers{Parts: []Part{{Partition: i, Attempt: pulled.Attempt, Status: Copied, Pulled: true}}}
			p.hear("c", answer)
			if ask := p.asked("b")[i]; !ask.Pull {
				t.Fatalf("asked the holder: %+v", ask)
			}
			lose(p, holder)
			p.want(owner.Acquiring, i)
			if again := p.asked("c")[i]; !again.Pull || again.From != 0 {
				t.Fatalf("the copy is not pulled anew: %+v", again)
			}
			p.hear("c", answer)
			p.want(owner.Holding, i)
		})
	}
}

// Asker and asked act on the same records, whichever of them knew less.
func TestRecordsTravelWithAsksAndAnswers(t *testing.T) {
	p, i := holder(t) // knows nothing of c
	c := &peer{t: t, table: owner.NewTable(owner.Config{Partitions: partitions}), now: p.now}
	c.Core = New(Config{Self: record("c", membership.Joining), Partitions: partitions, Ring: ringOf, Store: c.table, Chunk: 100}, c.now)
	c.Learn(c.now, []Record{record("a", membership.Serving), record("b", membership.Serving)})
	c.Become(c.now, membership.Serving)
	c.drain()
	for _, m := range said[*Acquire](c, "a") {
		p.hear("c", m)
	}
	for _, m := range said[*Answers](p, "c") {
		for _, part := range m.Parts {
			if part.Partition == i && part.Status != Held {
				t.Errorf("the holder does not see that c owns it: %+v", part)
			}
		}
	}
	news := record("z", membership.Serving)
	p.Learn(p.now, []Record{news})
	c.pass(50 * time.Millisecond)
	for _, m := range said[*Acquire](c, "a") {
		p.hear("c", m)
	}
	for _, m := range said[*Answers](p, "c") {
		c.hear("a", m)
	}
	if !slices.Contains(c.Records(), news) {
		t.Error("the asker does not learn what the holder knows")
	}
}

// A holder that is not owner says so ten times a second, with its records, until
// it is asked.
func TestAHolderNudgesTheOwner(t *testing.T) {
	p, i := holder(t)
	p.Learn(p.now, []Record{record("c", membership.Serving)})
	p.pass(350 * time.Millisecond)
	nudges := said[*Nudge](p, "c")
	if len(nudges) < 3 || len(nudges) > 5 {
		t.Errorf("%d nudges", len(nudges))
	}
	for _, m := range nudges {
		if !slices.Contains(m.Releases, Release{Partition: i, Boot: 1}) || len(m.Records) != 3 {
			t.Errorf("it says %+v", m)
		}
	}
	p.want(owner.Holding, i)
}

// Somebody who was declared dead says that it lives, or would be one for others.
func TestADeathIsContradicted(t *testing.T) {
	p := newPeer(t, record("b", membership.Serving))
	dead := p.Self()
	dead.State = Dead
	p.hear("b", &Views{Records: []Record{dead}})
	if s := p.Self(); s.State != membership.Serving || s.Seq <= dead.Seq {
		t.Errorf("it says %+v", s)
	}
	if !slices.ContainsFunc(p.wants, func(a Action) bool { return a == Action(Announce{p.Self()}) }) {
		t.Error("and keeps it to itself")
	}
}

// But not when it has said goodbye: the others would take it for alive, and it would
// be gone.
func TestWhoDepartsStaysDead(t *testing.T) {
	p := newPeer(t, record("b", membership.Serving))
	p.Become(p.now, membership.Draining)
	p.Depart(p.now)
	last := p.Self()
	dead := last
	dead.State = Dead
	p.hear("b", &Views{Records: []Record{dead}})
	p.pass(time.Second)
	if s := p.Self(); s != last {
		t.Errorf("it says %+v", s)
	}
}

// What was given to one is not given to another as long as the first lives: both
// might begin with it. When it is gone, the next owner gets it.
func TestAFrozenCopyIsForOne(t *testing.T) {
	p, i := holder(t)
	p.ask("c", i, true)
	d := membership.NodeID("d")
	for name := 'd'; ; name++ {
		d = membership.NodeID(name)
		if r := ringOf([]membership.NodeID{"a", "b", "c", d}); r.Nodes()[r.Owner(i)] == d {
			break
		}
	}
	ask := func() Part {
		p.hear(d, &Acquire{Records: []Record{record(d, membership.Serving)}, Asks: []Ask{{Partition: i, Attempt: 1, Pull: true}}})
		return said[*Answers](p, d)[0].Parts[0]
	}
	if part := ask(); part.Status != Busy {
		t.Errorf("c lives, and %s is answered %+v", d, part)
	}
	p.Refused(p.now, "c")
	if part := ask(); part.Status != Held {
		t.Errorf("c is gone, and %s is answered %+v", d, part)
	}
}

// One that is declared dead and answers is heard out: each part of what it sends
// starts the clock anew.
func TestTheDeadWhoSendAreHeardOut(t *testing.T) {
	p := newPeer(t, record("b", membership.Serving))
	i := owned(t, "a", "b")[0]
	p.Learn(p.now, []Record{record("b", Dead)})
	p.pass(80 * time.Millisecond)
	attempt := p.asked("b")[i].Attempt
	p.hear("b", &Answers{Parts: []Part{{Partition: i, Attempt: attempt, Status: Held}}})
	p.hear("b", &Answers{Parts: []Part{{Partition: i, Attempt: attempt, Status: Held, Pulled: true, Release: 7, Chunk: Chunk{Next: 9, More: true}}}})
	p.pass(90 * time.Millisecond)
	p.want(owner.Acquiring, i)
	p.pass(20 * time.Millisecond)
	p.want(owner.Holding, i)
}
