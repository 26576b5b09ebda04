package transfer

import (
	"testing"
	"time"

	"github.com/ringlimit/ringlimit/membership"
	"github.com/ringlimit/ringlimit/owner"
)

func TestStatus(t *testing.T) {
	p := newPeer(t, record("b", membership.Serving))
	mine := owned(t, "a", "b")
	if n := p.Acquiring(); n != len(mine) {
		t.Errorf("acquiring %d, not %d", n, len(mine))
	}
	p.deny("b")
	if n, m := p.Acquiring(), p.Unguarded(); n != 0 || m != len(mine) {
		t.Errorf("acquiring %d, unguarded %d", n, m)
	}
	for len(p.confirm("b")) > 0 {
	}
	if n := p.Unguarded(); n != 0 {
		t.Errorf("unguarded %d", n)
	}
	if got, want := p.Partition(mine[0]), (Partition{owner.Holding, "a", "a", "b", false, true}); got != want {
		t.Errorf("partition: %+v", got)
	}
	r := p.Ring()
	for other := range partitions {
		if r.Nodes()[r.Owner(other)] == "b" {
			p.hear("b", &Replicate{[]Copy{{Partition: other, Stream: 1, Number: 1}}})
			if got, want := p.Partition(other), (Partition{owner.None, "b", "b", "", true, false}); got != want {
				t.Errorf("a copy: %+v", got)
			}
		}
	}
}

func TestLagIsTheOldestChargeOnItsWay(t *testing.T) {
	p, mine := settled(t)
	if lag := p.Lag(p.now); lag != 0 {
		t.Errorf("nothing is on its way, and the lag is %d", lag)
	}
	p.Charge(mine[0], owner.ID{Lo: 1}, 1, 100, 1)
	p.Owe(p.now)
	p.pass(15 * time.Millisecond) // it is sent again meanwhile
	p.Charge(mine[1], owner.ID{Lo: 2}, 1, 100, 2)
	p.Owe(p.now)
	p.drain()
	if lag := p.Lag(p.now); lag != 15*ms {
		t.Errorf("lag %d, not 15 ms", lag)
	}
	p.confirm("b")
	if lag := p.Lag(p.now); lag != 0 {
		t.Errorf("all is acknowledged, and the lag is %d", lag)
	}
}

// A suspended machine's clock stands still: no gap shows, so it has to be told.
func TestSuspendedClosesTheFence(t *testing.T) {
	p, mine := settled(t)
	p.Suspended(p.now)
	p.drain()
	p.want(owner.Released, mine...)
	if !p.Fenced() || p.DecideUntil() > p.now {
		t.Errorf("fenced %v, until %d", p.Fenced(), p.DecideUntil()-p.now)
	}
	p.pass(time.Millisecond)
	beats := said[*Beat](p, "b")
	if len(beats) == 0 {
		t.Fatal("it does not ask for news")
	}
	p.hear("b", &BeatBack{At: beats[0].At})
	if p.Fenced() {
		t.Error("it stays fenced")
	}
	p.want(owner.Acquiring, mine...)
}

// A forwarder learns, beats and says who owns, and owns nothing itself.
func TestAForwarderOwnsNothing(t *testing.T) {
	p := &peer{t: t, table: owner.NewTable(owner.Config{Partitions: partitions}), now: 1}
	self := record("f", membership.Joining)
	self.Owner = false
	p.Core = New(Config{Self: self, Partitions: partitions, Ring: ringOf, Store: p.table, Chunk: 100}, p.now)
	p.Become(p.now, membership.Serving)
	p.drain()
	if way, to := p.Route(0); way != Elsewhere || to != "" {
		t.Errorf("alone: way %v to %q", way, to)
	}
	p.Learn(p.now, []Record{record("b", membership.Serving), record("c", membership.Serving)})
	p.pass(time.Second)
	p.hear("b", &BeatBack{At: p.now})
	if len(said[*Beat](p, "b")) == 0 || len(said[*Acquire](p, "b")) != 0 || len(said[*Nudge](p, "b")) != 0 {
		t.Error("it does not beat, or asks for what it does not own")
	}
	for i := range partitions {
		p.want(owner.None, i)
		if way, to := p.Route(i); way != Elsewhere || to != p.Partition(i).Owner || to == "" || to == "f" {
			t.Errorf("partition %d: way %v to %q", i, way, to)
		}
		if part := p.ask("b", i, true); part.Status != Denied {
			t.Errorf("partition %d: %+v", i, part)
		}
	}
	p.Become(p.now, membership.Draining)
	if !p.Drained() || p.Acquiring() != 0 || p.Unguarded() != 0 {
		t.Errorf("drained %v, acquiring %d, unguarded %d", p.Drained(), p.Acquiring(), p.Unguarded())
	}
}

// Who leaves has given away what it decided for and what it kept for others.
func TestDrained(t *testing.T) {
	p, mine := settled(t)
	r := p.Ring()
	var kept int
	for i := range partitions {
		if r.Nodes()[r.Owner(i)] == "b" {
			kept = i
		}
	}
	p.hear("b", &Replicate{[]Copy{{Partition: kept, Stream: 1, Number: 1}}})
	p.Become(p.now, membership.Draining)
	p.pass(time.Millisecond)
	for _, i := range mine {
		if p.Drained() {
			t.Fatalf("partition %d is %v", i, p.Phase(i))
		}
		p.hear("b", &Acquire{Asks: []Ask{{Partition: i, Attempt: 1, Pull: true}}})
		given := said[*Answers](p, "b")[0].Parts[0]
		p.hear("b", &Ack{[]Release{{i, 1, given.Release}}})
	}
	if p.Drained() {
		t.Error("it still has a copy that nobody else has")
	}
	if n, copies := p.Left(); n != 0 || copies != 0 {
		t.Errorf("%d partitions and %d copies would go with it; the copy's holder lives", n, copies)
	}
	p.Refused(p.now, "b")
	p.drain()
	if n, copies := p.Left(); n != 0 || copies != 1 || p.Drained() {
		t.Errorf("%d partitions and %d copies would go with it, want the one copy whose holder refuses", n, copies)
	}
	p.pass(time.Duration(absence))
	nudges := said[*Nudge](p, "b")
	if len(nudges) == 0 {
		t.Fatal("it does not say that it has a copy")
	}
	p.hear("b", &Drop{[]int{kept}})
	if !p.Drained() {
		t.Error("it has given everything away")
	}
	p.hear("b", &Replicate{[]Copy{{Partition: kept, Stream: 1, Number: 1}}}) // it was late
	p.pass(time.Duration(nudgeEvery))
	if len(said[*Nudge](p, "b")) == 0 {
		t.Error("what came late stays")
	}
}

// When all drain, there is nobody to give anything to.
func TestTheLastOneIsDrained(t *testing.T) {
	p := newPeer(t)
	p.Become(p.now, membership.Draining)
	if !p.Drained() {
		t.Error("it waits for nobody")
	}
}

// Whoever may yet serve can take what is here: who joins, who is held down, and
// who refused a connection a moment ago and may have restarted. A forwarder never,
// nor who leaves as well.
func TestWhoMayServeIsWaitedFor(t *testing.T) {
	forwarder := record("f", membership.Serving)
	forwarder.Owner = false
	for name, c := range map[string]struct {
		other   Record
		refuses bool
		drained bool
	}{
		"joining":   {record("b", membership.Joining), false, false},
		"serving":   {record("b", membership.Serving), false, false},
		"refuses":   {record("b", membership.Serving), true, false},
		"draining":  {record("b", membership.Draining), false, true},
		"dead":      {record("b", Dead), false, true},
		"forwarder": {forwarder, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPeer(t)
			p.Learn(p.now, []Record{c.other})
			if c.refuses {
				p.Refused(p.now, c.other.ID)
			}
			p.Become(p.now, membership.Draining)
			if p.Drained() != c.drained {
				t.Errorf("drained: %v", p.Drained())
			}
			if n, copies := p.Left(); n != partitions || copies != 0 {
				t.Errorf("%d partitions and %d copies would go with it, want %d and none", n, copies, partitions)
			}
		})
	}
}
