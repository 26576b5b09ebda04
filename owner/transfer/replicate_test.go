package transfer

import (
	"slices"
	"testing"
	"time"

	"github.com/ringlimit/ringlimit/limit"
	"github.com/ringlimit/ringlimit/membership"
	"github.com/ringlimit/ringlimit/owner"
)

// What holds or has frozen a partition is nobody's standby for it: it says so,
// and keeps nothing.
func TestAHolderTakesNoCopies(t *testing.T) {
	p, i := holder(t)
	copied := func() Receipt {
		p.hear("b", &Replicate{[]Copy{{Partition: i, Stream: 3, Number: 4}}})
		return said[*Replicated](p, "b")[0].Receipts[0]
	}
	want := Receipt{Partition: i, Stream: 3, Number: 4, Refused: true}
	if got := copied(); got != want {
		t.Errorf("holding: %+v", got)
	}
	p.ask("c", i, true)
	if got := copied(); got != want {
		t.Errorf("released: %+v", got)
	}
}

// A standby that refuses is none, until somebody may be one again.
func TestARefusedCopyEndsTheStream(t *testing.T) {
	p, mine := settled(t)
	i := mine[0]
	p.Charge(i, owner.ID{Lo: 1}, 1, 0, "reply")
	stream := p.parts[i].replica.stream
	p.hear("b", &Replicated{[]Receipt{{Partition: i, Stream: stream + 1, Number: 1, Refused: true}}})
	p.hear("b", &Replicated{[]Receipt{{Partition: i, Stream: stream + 1, Number: p.accounts[i].number}}})
	if len(p.paid()) != 0 || p.Partition(i).Standby != "b" {
		t.Error("a receipt of another stream counts")
	}
	p.hear("b", &Replicated{[]Receipt{{Partition: i, Stream: stream, Number: 1, Refused: true}}})
	if got := p.paid(); !slices.Equal(got, []Reply{"reply"}) || p.Partition(i).Standby != "" {
		t.Errorf("%v may go, the standby is %q", got, p.Partition(i).Standby)
	}
	p.pass(time.Duration(beatEvery))
	if !slices.ContainsFunc(said[*Replicate](p, "b"), func(m *Replicate) bool { return m.Copies[0].Stream > stream }) {
		t.Error("it looks for no standby any more")
	}
}

// What is lost on the way is sent again, with the same number.
func TestLostCopiesAreSentAgain(t *testing.T) {
	p, mine := settled(t)
	p.Charge(mine[0], owner.ID{Lo: 1}, 1, 0, "reply")
	p.Owe(p.now)
	p.drain()
	first := said[*Replicate](p, "b")
	p.pass(time.Duration(copyAgain + ms))
	again := said[*Replicate](p, "b")
	if len(first) != 1 || len(again) != 1 || first[0].Copies[0].Number != again[0].Copies[0].Number {
		t.Errorf("first %+v, again %+v", first, again)
	}
}

// Who has a copy that it should not have is told to drop it once another has
// everything, and not before.
func TestACopyIsDroppedWhenAnotherIsComplete(t *testing.T) {
	p := newPeer(t, record("b", membership.Serving), record("c", membership.Draining))
	i := owned(t, "a", "b")[0]
	p.deny("b")
	p.deny("c")
	p.hear("c", &Nudge{Copies: []int{i}})
	if len(said[*Drop](p, "c")) != 0 {
		t.Error("the only copy is dropped")
	}
	for len(p.confirm("b")) > 0 {
	}
	p.hear("c", &Nudge{Copies: []int{i}})
	if drops := said[*Drop](p, "c"); len(drops) != 1 || !slices.Equal(drops[0].Partitions, []int{i}) {
		t.Errorf("drops %+v", drops)
	}
	p.hear("b", &Nudge{Copies: []int{i}})
	if len(said[*Drop](p, "b")) != 0 {
		t.Error("the standby is to drop its copy")
	}
}

// hasty is a store in which somebody decides and charges the moment that an
// export is done.
type hasty struct {
	Store
	then func(partition int)
}

func (h *hasty) Export(p int, now int64, from owner.Cursor, most int) ([]owner.Entry, owner.Cursor, bool) {
	entries, next, done := h.Store.Export(p, now, from, most)
	h.then(p)
	return entries, next, done
}

// The account is open before the first export: what is decided just after it is
// in no part of the seed.
func TestWhatIsChargedDuringTheSeedIsSent(t *testing.T) {
	p := newPeer(t)
	i := owned(t, "a", "b")[0]
	r := rule(t, 5, limit.DurabilityAuto)
	var id owner.ID
	p.cfg.Store = &hasty{p.table, func(partition int) {
		if partition == i && id == (owner.ID{}) {
			id = p.use(i, "k", r)
			p.Charge(i, id, 1, 0, "reply")
		}
	}}
	p.Learn(p.now, []Record{record("b", membership.Serving)})
	p.Owe(p.now)
	p.drain()
	sent := 0
	for copies := p.confirm("b"); len(copies) > 0; copies = p.confirm("b") {
		for _, c := range copies {
			for _, e := range c.Chunk.Entries {
				if e.ID == id {
					sent++
				}
			}
		}
	}
	if id == (owner.ID{}) || sent == 0 {
		t.Errorf("counter %v was sent %d times", id, sent)
	}
}

// What counts is when the question left, not when the answer came: it may have
// waited in a socket while others went on.
func TestTheFenceCountsFromTheQuestion(t *testing.T) {
	p, mine := settled(t)
	asked := p.now
	p.pass(900 * time.Millisecond)
	p.hear("b", &BeatBack{At: asked})
	if until := p.DecideUntil(); until > asked+fenceAfter {
		t.Errorf("it may decide for %d ms more", (until-p.now)/ms)
	}
	p.pass(150 * time.Millisecond)
	p.want(owner.Released, mine...)
}

// A node whose last peer's process is gone has nobody to lose, and decides on.
func TestTheLastOneIsNotFenced(t *testing.T) {
	p, mine := settled(t)
	p.pass(500 * time.Millisecond)
	p.Refused(p.now, "b")
	p.pass(2 * time.Second)
	p.want(owner.Holding, mine...)
	if p.Fenced() || p.DecideUntil() <= p.now {
		t.Error("it does not decide any more")
	}
}
