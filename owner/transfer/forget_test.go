package transfer

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ringlimit/ringlimit/membership"
	"github.com/ringlimit/ringlimit/owner"
)

// crowd is nodes that tell each other of the members, and of one that is dead.
type crowd struct{ nodes []*peer }

func newCrowd(t rapid.TB, n int) *crowd {
	var c crowd
	for i := range n {
		self := record(membership.NodeID("abcdefgh"[i:i+1]), membership.Serving)
		p := &peer{t: t, table: owner.NewTable(owner.Config{Partitions: partitions}), now: int64(1_700_000_000_000 * ms)}
		p.Core = New(Config{Self: self, Partitions: partitions, Ring: ringOf, Store: p.table, Chunk: 100}, p.now)
		c.nodes = append(c.nodes, p)
	}
	return &c
}

func (c *crowd) learn(i int, r ...Record) {
	p := c.nodes[i]
	p.Learn(p.now, r)
	p.Actions()
}

// tick lets time pass, for one of them perhaps not: its machine is suspended.
func (c *crowd) tick(d int64, but int) {
	for i, p := range c.nodes {
		if i != but {
			p.now += d
			p.Tick(p.now)
			p.Actions()
		}
	}
}

func (c *crowd) knows(i int, id membership.NodeID) *Record {
	all := c.nodes[i].Records()
	if k := slices.IndexFunc(all, func(r Record) bool { return r.ID == id }); k >= 0 {
		return &all[k]
	}
	return nil
}

// Whatever they tell each other, in whatever order and up to a minute late, all
// forget the dead in the end; and unless clocks stand still, nobody who has
// forgotten hears of it again.
func TestLawTheDeadAreForgotten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newCrowd(t, 4)
		c.learn(0, record("x", Dead))
		suspends := rapid.Bool().Draw(t, "suspends")
		var late [][]Record
		var at []int64 // when it was said
		knew, forgot := make([]bool, len(c.nodes)), make([]bool, len(c.nodes))
		for time := int64(0); time < 1_200_000*ms; {
			step := rapid.Int64Range(1_000, 60_000).Draw(t, "ms") * ms
			but := -1
			if suspends && rapid.IntRange(0, 9).Draw(t, "suspend") == 0 {
				but = rapid.IntRange(0, 3).Draw(t, "suspended")
			}
			c.tick(step, but)
			time += step
			for range rapid.IntRange(0, 6).Draw(t, "messages") {
				from, to := rapid.IntRange(0, 3).Draw(t, "from"), rapid.IntRange(0, 3).Draw(t, "to")
				late, at = append(late, c.nodes[from].Records()), append(at, time)
				if k := rapid.IntRange(max(0, len(late)-6), len(late)-1).Draw(t, "message"); at[k] >= time-60_000*ms {
					c.learn(to, late[k]...)
				}
			}
			for i := range c.nodes {
				known := c.knows(i, "x") != nil
				if known && forgot[i] && !suspends {
					t.Fatalf("%d has forgotten the dead and knows it again", i)
				}
				knew[i] = knew[i] || known
				forgot[i] = knew[i] && !known
			}
		}
		for range 30 { // now they tell each other everything
			c.tick(60_000*ms, -1)
			for i := range c.nodes {
				for j := range c.nodes {
					c.learn(j, c.nodes[i].Records()...)
				}
			}
		}
		for i := range c.nodes {
			if r := c.knows(i, "x"); r != nil {
				t.Fatalf("%d still knows %+v", i, *r)
			}
		}
	})
}

func TestWhoWasForgottenAndLivesIsAMemberAgain(t *testing.T) {
	c := newCrowd(t, 1)
	c.learn(0, record("x", membership.Serving))
	c.learn(0, record("x", Dead))
	for range forgetAfter / (100 * ms) {
		c.tick(100*ms, -1)
	}
	if r := c.knows(0, "x"); r != nil {
		t.Fatalf("it knows %+v", *r)
	}
	c.learn(0, record("x", membership.Serving))
	if r := c.knows(0, "x"); r == nil || r.State != membership.Serving || len(c.nodes[0].Ring().Nodes()) != 2 {
		t.Errorf("it knows %+v", r)
	}
}

// Who was declared dead must hear of it from whoever still knows, and object.
func TestWhoIsDeadForLessContradicts(t *testing.T) {
	c := newCrowd(t, 1)
	for _, age := range []int64{0, strangers, forgetAfter - 1, forgetAfter, 1<<63 - 1, -1} {
		dead := c.nodes[0].Self()
		dead.State, dead.Age = Dead, age
		c.learn(0, dead)
		if s := c.nodes[0].Self(); s.Seq <= dead.Seq || s.State == Dead {
			t.Errorf("dead for %d: it says %+v", age, s)
		}
	}
}

// All count from the same death.
func TestTheLongerDeathIsBelieved(t *testing.T) {
	c := newCrowd(t, 2)
	dead := record("x", Dead)
	c.learn(0, dead)
	dead.Age = 1000 * ms
	c.learn(0, dead)
	c.tick(5000*ms, -1)
	if r := c.knows(0, "x"); r.Age != 6000*ms {
		t.Errorf("dead for %d ms", r.Age/ms)
	}
	c.learn(1, c.nodes[0].Records()...)
	c.tick(5000*ms, -1)
	if r := c.knows(1, "x"); r.Age != 11_000*ms {
		t.Errorf("the other says dead for %d ms", r.Age/ms)
	}
}

// Who forgets the recipient of a frozen copy, and is forgotten by it, cannot know
// any more what became of the copy. When it is given back, everybody is asked.
func TestWhatWasGivenToTheForgottenIsDoubtful(t *testing.T) {
	p, i, c := newPeer(t), 0, membership.NodeID("") // a holds, c owns, and without c it is b that owns
	without := ringOf([]membership.NodeID{"a", "b"})
	for name := 'c'; c == ""; name++ {
		with := ringOf([]membership.NodeID{"a", "b", membership.NodeID(name)})
		for i = 0; i < partitions && c == ""; i++ {
			if with.Nodes()[with.Owner(i)] == membership.NodeID(name) && without.Nodes()[without.Owner(i)] == "b" {
				c = membership.NodeID(name)
			}
		}
	}
	i--
	p.Learn(p.now, []Record{record("b", membership.Serving), record(c, membership.Serving)})
	p.hear(c, &Acquire{Asks: []Ask{{Partition: i, Attempt: 1, Pull: true}}})
	part := said[*Answers](p, c)[0].Parts[0]
	dead := record(c, Dead)
	dead.Age = forgetAfter
	p.Learn(p.now, []Record{dead})
	p.pass(time.Millisecond)
	if len(p.Records()) != 2 {
		t.Fatalf("it knows %+v", p.Records())
	}
	p.Learn(p.now, []Record{record(c, membership.Serving)})
	p.hear(c, &Nack{[]Release{{i, 1, part.Release}}})
	p.want(owner.Released, i)
}
