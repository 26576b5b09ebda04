package transfer

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ringlimit/ringlimit/membership"
	"github.com/ringlimit/ringlimit/owner"
)

// someRecords are of few nodes, runs and sequences, so that two lists of them
// have much in common.
func someRecords() *rapid.Generator[[]Record] {
	one := rapid.Custom(func(t *rapid.T) Record {
		r := Record{
			ID:    rapid.SampledFrom([]membership.NodeID{"v", "w", "x", "y"}).Draw(t, "id"),
			Boot:  membership.BootID(rapid.Uint64Range(1, 2).Draw(t, "boot")),
			Seq:   rapid.Uint64Range(1, 2).Draw(t, "seq"),
			State: rapid.SampledFrom([]membership.State{membership.Joining, membership.Serving, membership.Draining, Dead}).Draw(t, "state"),
			Owner: rapid.Bool().Draw(t, "owner"),
		}
		if r.State == Dead {
			r.Age = rapid.Int64Range(0, forgetAfter).Draw(t, "age")
		}
		return r
	})
	return rapid.SliceOfN(one, 0, 6)
}

// current is what a node knows, but for the ages of the dead and for the long dead.
func (p *peer) current() []Record {
	records := slices.Clone(p.Records())
	records = slices.DeleteFunc(records, func(r Record) bool { return r.State == Dead && r.Age >= strangers })
	for i := range records {
		records[i].Age = 0
	}
	return records
}

func newAsker(t rapid.TB, now int64, id membership.NodeID) *peer {
	p := &peer{t: t, table: owner.NewTable(owner.Config{Partitions: partitions}), now: now}
	p.Core = New(Config{Self: record(id, membership.Serving), Partitions: partitions, Ring: ringOf, Store: p.table, Chunk: 100}, now)
	return p
}

// Whether records come with a sign of life or are left out because of the sum, the
// asker knows the same afterwards: the model is one that is always told all.
func TestLawASumLeavesOutOnlyWhatTheAskerKnows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := int64(1_700_000_000_000 * ms)
		a, model, b := newAsker(t, now, "a"), newAsker(t, now, "a"), newAsker(t, now, "b")
		shared := append(someRecords().Draw(t, "shared"), record("a", membership.Serving), record("b", membership.Serving))
		mine, theirs := []Record(nil), []Record(nil)
		if rapid.Bool().Draw(t, "differ") {
			mine, theirs = someRecords().Draw(t, "a's"), someRecords().Draw(t, "b's")
		}
		for _, p := range []*peer{a, model} {
			p.Learn(now, append(slices.Clone(shared), mine...))
		}
		b.Learn(now, append(slices.Clone(shared), theirs...))
		b.drain()
		b.wants = nil
		b.hear("a", &Beat{At: now, Sum: a.view.sumOf(now)})
		back := said[*BeatBack](b, "a")[0]
		a.hear("b", back)
		model.hear("b", &BeatBack{At: now, Records: b.Records()})
		if !slices.Equal(a.current(), model.current()) {
			t.Fatalf("knows %+v\nwant  %+v", a.current(), model.current())
		}
		if len(mine) == 0 && len(theirs) == 0 && back.Records != nil {
			t.Fatal("was told what it knows")
		}
	})
}

// A node of an older version sends no sum.
func TestABeatWithoutASumIsAnsweredWithAllRecords(t *testing.T) {
	p := newPeer(t, record("b", membership.Serving))
	p.hear("b", &Beat{At: p.now, Sum: p.view.sumOf(p.now)})
	p.hear("b", &Beat{At: p.now, Sum: p.view.sumOf(p.now) + 1})
	p.hear("b", &Beat{At: p.now})
	back := said[*BeatBack](p, "b")
	if len(back) != 3 {
		t.Fatalf("answered %d times", len(back))
	}
	if back[0].Records != nil || len(back[1].Records) != 2 || len(back[2].Records) != 2 {
		t.Errorf("told %d, %d and %d records; want 0, 2, 2", len(back[0].Records), len(back[1].Records), len(back[2].Records))
	}
}

// Now and then all records are wanted, and always behind the closed fence: what a
// node begins with that was cut off must not hang on a sum.
func TestWhenASignOfLifeIsToBringAllRecords(t *testing.T) {
	p := newPeer(t, record("b", membership.Serving))
	sums := func(d time.Duration) (with, without int) {
		for range d / (100 * time.Millisecond) {
			p.pass(100 * time.Millisecond)
			for _, m := range said[*Beat](p, "b") {
				if m.Sum == 0 {
					without++
				} else {
					with++
				}
				if !p.Fenced() {
					p.hear("b", &BeatBack{At: m.At})
				}
			}
		}
		return with, without
	}
	if with, without := sums(60 * time.Second); without < 5 || without > 7 || with < 500 {
		t.Errorf("in a minute %d beats with a sum and %d without", with, without)
	}
	p.Suspended(p.now)
	p.drain()
	if with, without := sums(2 * time.Second); with != 0 || without < 10 || !p.Fenced() {
		t.Errorf("behind the fence %d beats with a sum and %d without", with, without)
	}
}

// The ages of the dead are not in the sum, else it would be another every time.
func TestTheSumIsOfWhatMatters(t *testing.T) {
	base := []Record{record("a", membership.Serving), {ID: "b", Boot: 2, Seq: 3, State: Dead, Age: 5}}
	changed := func(f func(r *Record)) bool {
		other := slices.Clone(base)
		f(&other[1])
		return sum(other) != sum(base)
	}
	for what, f := range map[string]func(*Record){
		"id": func(r *Record) { r.ID = "c" }, "boot": func(r *Record) { r.Boot++ }, "seq": func(r *Record) { r.Seq++ },
		"state": func(r *Record) { r.State = membership.Draining }, "owner": func(r *Record) { r.Owner = true },
		"long dead": func(r *Record) { r.Age = strangers },
	} {
		if !changed(f) {
			t.Errorf("%s is not in it", what)
		}
	}
	if changed(func(r *Record) { r.Age = strangers - 1 }) {
		t.Error("the age is in it")
	}
}
