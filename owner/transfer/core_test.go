package transfer

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ringlimit/ringlimit/limit"
	"github.com/ringlimit/ringlimit/membership"
	"github.com/ringlimit/ringlimit/owner"
	"github.com/ringlimit/ringlimit/ring"
)

const partitions = 8

// peer is a core under test, and what it wants to be done.
type peer struct {
	*Core
	t     rapid.TB
	table *owner.Table
	now   int64
	wants []Action
}

func ringOf(ids []membership.NodeID) *ring.Ring {
	r, err := ring.New(ring.Params{Partitions: partitions, VirtualNodes: 20, Load: 1.25}, ids)
	if err != nil {
		panic(err)
	}
	return r
}

func record(id membership.NodeID, s membership.State) Record {
	return Record{ID: id, Boot: 1, Seq: 1, State: s, Owner: true}
}

// newPeer is the core of node a, which serves among others.
func newPeer(t rapid.TB, others ...Record) *peer {
	p := &peer{t: t, table: owner.NewTable(owner.Config{Partitions: partitions}), now: int64(1_700_000_000) * int64(time.Second)}
	p.Core = New(Config{Self: record("a", membership.Joining), Partitions: partitions, Ring: ringOf, Store: p.table, Chunk: 100}, p.now)
	p.Learn(p.now, others)
	p.Become(p.now, membership.Serving)
	p.drain()
	return p
}

func (p *peer) drain() { p.wants = append(p.wants, p.Actions()...) }

// pass lets time pass, with every tick that the core asks for.
func (p *peer) pass(d time.Duration) {
	for until := p.now + int64(d); p.now < until; {
		p.now = max(p.now+1, min(until, p.Next()))
		p.Tick(p.now)
		p.drain()
	}
}

func (p *peer) hear(from membership.NodeID, m Message) {
	p.Receive(p.now, from, 1, m)
	p.drain()
}

// said returns what was sent to a node since the last call, of one kind.
func said[M Message](p *peer, to membership.NodeID) (found []M) {
	p.wants = slices.DeleteFunc(p.wants, func(a Action) bool {
		s, ok := a.(Send)
		if !ok || s.To != to {
			return false
		}
		m, ok := s.Message.(M)
		if ok {
			found = append(found, m)
		}
		return ok
	})
	return found
}

// deny answers all that was asked of a node.
func (p *peer) deny(id membership.NodeID, but ...int) {
	for _, m := range said[*Acquire](p, id) {
		back := &Answers{}
		for _, a := range m.Asks {
			if !slices.Contains(but, a.Partition) {
				back.Parts = append(back.Parts, Part{Partition: a.Partition, Attempt: a.Attempt, Status: Denied, Pulled: a.Pull})
			}
		}
		p.hear(id, back)
	}
}

// owned is the partitions that a owns among nodes, of which there are some.
func owned(t rapid.TB, ids ...membership.NodeID) (list []int) {
	r := ringOf(ids)
	for p := range partitions {
		if r.Nodes()[r.Owner(p)] == "a" {
			list = append(list, p)
		}
	}
	if len(list) == 0 {
		t.Fatal("a owns nothing; choose other names")
	}
	return list
}

func (p *peer) want(phase owner.Phase, list ...int) {
	p.t.Helper()
	for _, i := range list {
		if p.Phase(i) != phase || p.table.Phase(i) != phase {
			p.t.Errorf("partition %d is %v, in the table %v; want %v", i, p.Phase(i), p.table.Phase(i), phase)
		}
	}
}

func TestALoneNodeHoldsAll(t *testing.T) {
	p := newPeer(t)
	for i := range partitions {
		p.want(owner.Holding, i)
	}
	if way, _ := p.Route(0); way != Decide || p.DecideUntil() <= p.now {
		t.Errorf("route %v, until %d", way, p.DecideUntil())
	}
}

// Only a denial is a denial: not "busy", and not silence.
func TestNobodyBeginsAfreshBeforeAllHaveDenied(t *testing.T) {
	p := newPeer(t, record("b", membership.Serving), record("c", membership.Serving))
	mine := owned(t, "a", "b", "c")
	p.deny("b")
	ask := said[*Acquire](p, "c")[0].Asks[0]
	p.hear("c", &Answers{Parts: []Part{{Partition: ask.Partition, Attempt: ask.Attempt, Status: Busy}}})
	p.pass(500 * time.Millisecond)
	p.want(owner.Acquiring, mine...)
	p.deny("c")
	p.want(owner.Holding, mine...)
}

// Somebody who comes while we ask may hold what the others have denied.
func TestWhoComesDuringARoundIsAskedToo(t *testing.T) {
	p := newPeer(t, record("b", membership.Serving))
	mine := owned(t, "a", "b")
	old := said[*Acquire](p, "b")
	p.Learn(p.now, []Record{record("c", membership.Joining)}) // it may be one that was damped
	p.drain()
	for _, m := range old {
		for _, a := range m.Asks {
			p.hear("b", &Answers{Parts: []Part{{Partition: a.Partition, Attempt: a.Attempt, Status: Denied}}})
		}
	}
	p.want(owner.Acquiring, mine...)
	p.deny("b")
	p.want(owner.Acquiring, mine...)
	p.deny("c")
	p.want(owner.Holding, mine...)
}

// Of what was cut off in the middle nobody may say that it has arrived: the giver
// would drop it.
func TestHalfACopyIsNotAcknowledged(t *testing.T) {
	p := newPeer(t, record("b", membership.Serving))
	i := owned(t, "a", "b")[0]
	for _, a := range said[*Acquire](p, "b")[0].Asks {
		if a.Partition == i {
			p.hear("b", &Answers{Parts: []Part{{Partition: i, Attempt: a.Attempt, Status: Held}}})
			p.hear("b", &Answers{Parts: []Part{{Partition: i, Attempt: a.Attempt, Status: Held, Pulled: true, Release: 7, Chunk: Chunk{Next: 9, More: true}}}})
		}
	}
	p.Refused(p.now, "b")
	p.drain()
	p.want(owner.Holding, i)
	if n := len(said[*Ack](p, "b")); n != 0 {
		t.Errorf("%d acks", n)
	}
}

func TestADenialOfAnotherAttemptCountsForNothing(t *testing.T) {
	p := newPeer(t, record("b", membership.Serving))
	mine := owned(t, "a", "b")
	for _, a := range said[*Acquire](p, "b")[0].Asks {
		p.hear("b", &Answers{Parts: []Part{{Partition: a.Partition, Attempt: a.Attempt + 1, Status: Denied}}})
	}
	p.want(owner.Acquiring, mine...)
}

func TestARefusedConnectionIsADenial(t *testing.T) {
	p := newPeer(t, record("b", membership.Serving))
	p.Refused(p.now, "b")
	p.drain()
	for i := range partitions { // b's as well: it is out of the ring
		p.want(owner.Holding, i)
	}
}

func TestTheDeadAreAskedForATenthOfASecond(t *testing.T) {
	p := newPeer(t, record("b", membership.Serving))
	p.Learn(p.now, []Record{record("b", Dead)})
	p.pass(90 * time.Millisecond)
	p.want(owner.Acquiring, 0)
	p.pass(20 * time.Millisecond)
	p.want(owner.Holding, 0)
}

// A distant member that gossip is wrong about has time to answer.
func TestTheDistantDeadAreAskedForLonger(t *testing.T) {
	p := newPeer(t, record("b", membership.Serving))
	p.hear("b", &BeatBack{At: p.now - 150*ms})
	p.Learn(p.now, []Record{record("b", Dead)})
	p.pass(240 * time.Millisecond)
	p.want(owner.Acquiring, 0)
	p.pass(20 * time.Millisecond)
	p.want(owner.Holding, 0)
}

// The copy goes to who would own the partition without this node, which need
// not be the next node on any list.
func TestTheStandbyIsTheOwnerWithoutMe(t *testing.T) {
	p := newPeer(t, record("b", membership.Serving), record("c", membership.Serving), record("d", membership.Serving))
	for _, id := range []membership.NodeID{"b", "c", "d"} {
		p.deny(id)
	}
	without := ringOf([]membership.NodeID{"b", "c", "d"})
	to := map[int]membership.NodeID{}
	for _, id := range without.Nodes() {
		for _, m := range said[*Replicate](p, id) {
			for _, c := range m.Copies {
				to[c.Partition] = id
			}
		}
	}
	for _, i := range owned(t, "a", "b", "c", "d") {
		if want := without.Nodes()[without.Owner(i)]; to[i] != want {
			t.Errorf("partition %d is copied to %q, not to %s", i, to[i], want)
		}
	}
}

// A standby that says nothing would hold up every reply: another takes its place
// at once, and until it has all, replies go.
func TestASilentStandbyIsReplaced(t *testing.T) {
	p, i, first := guarded(t)
	waits, due := p.Charge(i, owner.ID{Lo: 1}, 1, 0, "reply")
	p.Owe(p.now)
	p.pass(35 * time.Millisecond)
	if paid := p.paid(); !waits || due != Now || len(paid) > 0 {
		t.Fatalf("waits %v, due %v, paid %v without a copy", waits, due, paid)
	}
	p.pass(10 * time.Millisecond)
	if second, paid := p.Partition(i).Standby, p.paid(); len(paid) != 1 || second == first || second == "" {
		t.Errorf("paid: %v; the standby was %s and is %q", paid, first, second)
	}
}

// It is a standby again soon after it has said something.
func TestAStandbyThatTalksAgainIsTakenBack(t *testing.T) {
	p, i, first := guarded(t)
	p.Charge(i, owner.ID{Lo: 1}, 1, 0, "reply")
	p.Owe(p.now)
	p.pass(50 * time.Millisecond)
	if p.Partition(i).Standby == first {
		t.Fatal("stays the standby")
	}
	p.pass(100 * time.Millisecond)
	p.hear(first, &Views{})
	p.pass(190 * time.Millisecond)
	if p.Partition(i).Standby == first {
		t.Error("is back at once")
	}
	p.pass(20 * time.Millisecond)
	if p.Partition(i).Standby != first {
		t.Errorf("after it has talked the standby is %q", p.Partition(i).Standby)
	}
}

// One that talks has much to do, and is given time, but not for ever.
func TestABusyStandbyIsNotReplaced(t *testing.T) {
	p, i, first := guarded(t)
	p.Charge(i, owner.ID{Lo: 1}, 1, 0, "reply")
	p.Owe(p.now)
	for range 39 {
		p.pass(10 * time.Millisecond)
		p.hear(first, &Views{})
	}
	if paid := p.paid(); p.Partition(i).Standby != first || len(paid) > 0 {
		t.Fatalf("the standby was %s and is %q; paid: %v", first, p.Partition(i).Standby, paid)
	}
	p.pass(20 * time.Millisecond)
	if p.Partition(i).Standby == first || len(p.paid()) != 1 {
		t.Error("who never acknowledges stays the standby")
	}
}

// A distant standby, whose words take long, is not silent yet when a near one would
// be. What a question that waited with a stopped process says of the way is soon
// forgotten.
func TestADistantStandbyIsGivenTime(t *testing.T) {
	for _, tt := range []struct {
		name        string
		trip        time.Duration
		beats       int // that it answers at once after that
		keeps, ends time.Duration
	}{
		{"near", time.Millisecond, 1, 40 * time.Millisecond, 45 * time.Millisecond},
		{"distant", 60 * time.Millisecond, 0, 99 * time.Millisecond, 105 * time.Millisecond},
		{"stopped for 10 s", 10 * time.Second, 0, 239 * time.Millisecond, 245 * time.Millisecond},
		{"… 2 s ago", 10 * time.Second, 20, 50 * time.Millisecond, 60 * time.Millisecond},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, i, first := guarded(t)
			p.hear(first, &BeatBack{At: p.now - int64(tt.trip)})
			for range tt.beats {
				p.pass(time.Millisecond)
				p.hear(first, &BeatBack{At: p.now})
			}
			p.Charge(i, owner.ID{Lo: 1}, 1, 0, "reply")
			p.Owe(p.now)
			p.pass(tt.keeps)
			if paid := p.paid(); p.Partition(i).Standby != first || len(paid) > 0 {
				t.Errorf("after %v the standby was %s and is %q; paid: %v", tt.keeps, first, p.Partition(i).Standby, paid)
			}
			p.pass(tt.ends - tt.keeps)
			if p.Partition(i).Standby == first || len(p.paid()) != 1 {
				t.Errorf("after %v it is the standby", tt.ends)
			}
		})
	}
}

// Who stood still cannot say that another was silent meanwhile.
func TestAStallOfOurOwnReplacesNobody(t *testing.T) {
	p, i, first := guarded(t)
	p.Charge(i, owner.ID{Lo: 1}, 1, 0, "reply")
	p.Owe(p.now)
	p.now += 300 * ms
	p.Tick(p.now)
	p.drain()
	if paid := p.paid(); p.Partition(i).Standby != first || len(paid) > 0 {
		t.Errorf("the standby was %s and is %q; paid: %v", first, p.Partition(i).Standby, paid)
	}
}

// guarded is node a beside b and c, with a partition whose copy is complete.
func guarded(t *testing.T) (p *peer, partition int, standby membership.NodeID) {
	p = newPeer(t, record("b", membership.Serving), record("c", membership.Serving))
	p.deny("b")
	p.deny("c")
	partition = owned(t, "a", "b", "c")[0]
	standby = p.Partition(partition).Standby
	for !p.Partition(partition).Seeded {
		p.confirm(standby)
	}
	return p, partition, standby
}

// holder is node a, holding what it owns besides b; c is yet to come.
func holder(t *testing.T) (p *peer, partition int) {
	p = newPeer(t, record("b", membership.Serving))
	p.deny("b")
	r := ringOf([]membership.NodeID{"a", "b", "c"})
	for _, i := range owned(t, "a", "b") {
		if r.Nodes()[r.Owner(i)] == "c" {
			return p, i
		}
	}
	t.Fatal("c takes nothing from a; choose other names")
	return nil, 0
}

func (p *peer) ask(from membership.NodeID, partition int, pull bool) Part {
	p.t.Helper()
	p.hear(from, &Acquire{
		Records: []Record{record("c", membership.Serving)},
		Asks:    []Ask{{Partition: partition, Attempt: 1, Pull: pull}},
	})
	answers := said[*Answers](p, from)
	if len(answers) != 1 || len(answers[0].Parts) != 1 {
		p.t.Fatalf("answers: %+v", answers)
	}
	return answers[0].Parts[0]
}

// A holder decides on until its counters are pulled, gives them away once, and
// keeps them until it knows that they have arrived.
func TestReleaseIsOneStep(t *testing.T) {
	p, i := holder(t)
	if part := p.ask("c", i, false); part.Status != Held || part.Release != 0 {
		t.Errorf("asked: %+v", part)
	}
	p.want(owner.Holding, i)
	first := p.ask("c", i, true)
	p.want(owner.Released, i)
	if again := p.ask("c", i, true); again.Status != Held || again.Release != first.Release {
		t.Errorf("first %+v, again %+v", first, again)
	}
	if other := p.ask("b", i, true); other.Status != Busy {
		t.Errorf("another asks: %+v", other)
	}
	p.hear("c", &Ack{[]Release{{i, 1, first.Release + 1}}})
	p.want(owner.Released, i)
	p.hear("c", &Ack{[]Release{{i, 1, first.Release}}})
	p.want(owner.None, i)
}

// Not even a member may have what it does not own in the view of both.
func TestOnlyTheOwnerIsGivenAnything(t *testing.T) {
	p, i := holder(t)
	for _, pull := range []bool{false, true} {
		if part := p.ask("b", i, pull); part.Status != Busy {
			t.Errorf("pull %v: %+v", pull, part)
		}
	}
	p.want(owner.Holding, i)
}

func TestWhoDoesNotWantItGivesItBack(t *testing.T) {
	p, i := holder(t)
	part := p.ask("c", i, true)
	p.hear("c", &Nack{[]Release{{i, 1, part.Release}}})
	p.want(owner.Holding, i)
}

// But counters that were given to a run which is over may have been passed on
// before it went. Then a later run that gives them back is no reason to decide:
// everybody has to be asked.
func TestWhatMayHaveBeenPassedOnIsNotHeldAgain(t *testing.T) {
	p, i := holder(t)
	p.ask("c", i, true)
	reborn := record("c", membership.Serving)
	reborn.Boot = 2
	p.Receive(p.now, "c", 2, &Acquire{Records: []Record{reborn}, Asks: []Ask{{Partition: i, Attempt: 1, Pull: true}}})
	p.drain()
	answers := said[*Answers](p, "c")
	if len(answers) != 1 || answers[0].Parts[0].Status != Held {
		t.Fatalf("the next run is answered %+v", answers)
	}
	p.Receive(p.now, "c", 2, &Nack{[]Release{{i, 1, answers[0].Parts[0].Release}}})
	p.drain()
	p.want(owner.Released, i)
}

// The Ack may be lost: then the giver says again and again that it waits.
func TestAnAckIsRepeated(t *testing.T) {
	p := newPeer(t, record("b", membership.Serving))
	mine := owned(t, "a", "b")
	i := mine[0]
	p.deny("b", mine...)
	p.pass(25 * time.Millisecond)
	var attempt uint64
	for _, m := range said[*Acquire](p, "b") {
		for _, a := range m.Asks {
			if a.Partition == i {
				attempt = a.Attempt
			}
		}
	}
	p.hear("b", &Answers{Parts: []Part{{Partition: i, Attempt: attempt, Status: Held}}})
	p.hear("b", &Answers{Parts: []Part{{Partition: i, Attempt: attempt, Status: Held, Pulled: true, Release: 7}}})
	p.want(owner.Holding, i)
	if n := len(said[*Ack](p, "b")); n != 1 {
		t.Fatalf("%d acks", n)
	}
	nudge := &Nudge{Releases: []Release{{i, 1, 7}}}
	p.hear("b", nudge)
	if n := len(said[*Ack](p, "b")); n != 1 {
		t.Errorf("nudged, it acks %d times", n)
	}
	p.Become(p.now, membership.Draining) // and gives the partition to b
	p.hear("b", &Acquire{Asks: []Ask{{Partition: i, Attempt: 1, Pull: true}}})
	given := said[*Answers](p, "b")[0].Parts[0]
	p.hear("b", &Ack{[]Release{{i, 1, given.Release}}})
	p.want(owner.None, i)
	p.hear("b", nudge)
	if len(said[*Nack](p, "b")) != 0 || len(said[*Ack](p, "b")) != 1 {
		t.Error("what it has passed on it must not give back")
	}
}

// A node that stood still stops before it decides once more, takes no counters
// that waited with it, and begins again only with news from the others.
func TestFence(t *testing.T) {
	p := newPeer(t, record("b", membership.Serving))
	p.deny("b")
	mine := owned(t, "a", "b")
	p.want(owner.Holding, mine...)
	if late := p.now + int64(1500*time.Millisecond); p.DecideUntil() >= late {
		t.Errorf("it may decide until %d", p.DecideUntil()-p.now)
	}
	p.now += int64(1500 * time.Millisecond)
	p.hear("b", &Replicate{[]Copy{{Partition: mine[0], Stream: 1, Number: 1}}})
	p.want(owner.Released, mine...)
	if len(said[*Replicated](p, "b")) != 0 {
		t.Error("it keeps a copy that has waited")
	}
	seq := p.Self().Seq
	p.hear("b", &BeatBack{At: p.now - 1})
	p.want(owner.Released, mine...)
	p.hear("b", &BeatBack{At: p.now})
	p.want(owner.Acquiring, mine...)
	if p.Self().Seq <= seq {
		t.Error("the others would not notice that it is back")
	}
}

func TestDamping(t *testing.T) {
	p := newPeer(t, record("b", membership.Serving))
	for range flaps {
		if s := p.Self().State; s != membership.Serving {
			t.Fatalf("it is %v", s)
		}
		dead := p.Self()
		dead.State = Dead
		p.Learn(p.now, []Record{dead})
		p.drain()
	}
	if s := p.Self().State; s != membership.Joining {
		t.Fatalf("after %d deaths it is %v", flaps, s)
	}
	p.hear("b", &Views{})
	for range 2 * holdDown / (100 * ms) { // b lives
		p.now += 100 * ms
		p.Tick(p.now)
		p.hear("b", &BeatBack{At: p.now})
	}
	if s := p.Self().State; s != membership.Serving {
		t.Errorf("after the hold-down it is %v", s)
	}
}

// What a node is sent by another version or a broken one must not stop it.
func TestNonsenseDoesNoHarm(t *testing.T) {
	p, _ := holder(t)
	for _, i := range []int{-1, partitions} {
		for _, m := range []Message{
			&Acquire{Asks: []Ask{{Partition: i}}}, &Answers{Parts: []Part{{Partition: i}}},
			&Ack{[]Release{{Partition: i}}}, &Nack{[]Release{{Partition: i}}},
			&Nudge{Releases: []Release{{Partition: i, Boot: 1}}, Copies: []int{i}},
			&Replicate{[]Copy{{Partition: i}}}, &Replicated{[]Receipt{{Partition: i}}}, &Drop{[]int{i}},
			&BeatBack{At: p.now + 1},
		} {
			p.hear("b", m)
			p.hear("nobody", m)
		}
	}
}

func TestUnusableCountersAreComplainedOf(t *testing.T) {
	p := newPeer(t, record("b", membership.Serving), record("c", membership.Serving))
	rule, err := limit.NewRule(limit.Spec{Algorithm: limit.TokenBucket, Limit: 5, Window: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	i := owned(t, "a", "b", "c")[0]
	p.wants = nil
	p.hear("b", &Replicate{[]Copy{{Partition: i, Stream: 1, Number: 1, Chunk: Chunk{Entries: []owner.Entry{{Rule: rule}}}}}})
	if !slices.ContainsFunc(p.wants, func(a Action) bool { c, ok := a.(Complain); return ok && c.Err != nil }) {
		t.Errorf("no complaint in %+v", p.wants)
	}
}

// A run with a lower boot id than that of the last one is told so, for nobody
// takes what it says. Who tells us something is not answered: it might not listen
// to us either, and the two would go on without end.
func TestARunThatIsOutdatedIsTold(t *testing.T) {
	dead := record("b", Dead)
	dead.Boot = 7
	p := newPeer(t, dead, record("c", membership.Serving))
	p.hear("b", &Beat{At: p.now})
	told := said[*Views](p, "b")
	if len(told) != 1 || len(said[*BeatBack](p, "b")) != 0 {
		t.Fatalf("told %d times", len(told))
	}
	p.hear("b", told[0])
	if len(said[*Views](p, "b")) != 0 {
		t.Error("it answers what needs no answer")
	}
	b := New(Config{Self: record("b", membership.Joining), Partitions: partitions, Ring: ringOf, Store: p.table, Chunk: 100}, p.now)
	if b.Later() != 0 {
		t.Errorf("knows of run %v", b.Later())
	}
	b.Receive(p.now, "a", 1, told[0])
	if b.Later() != 7 || b.Self().Boot != 1 {
		t.Errorf("knows of run %v, is %v", b.Later(), b.Self().Boot)
	}
	lives := record("b", membership.Serving)
	lives.Boot = 9
	b.Learn(p.now, []Record{lives})
	if b.Later() != 7 {
		t.Errorf("would take the name from run %v, which lives", b.Later())
	}
}
