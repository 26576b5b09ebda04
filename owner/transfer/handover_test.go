package transfer

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/ringlimit/ringlimit/limit"
	"github.com/ringlimit/ringlimit/membership"
	"github.com/ringlimit/ringlimit/owner"
)

// rule is one an hour, of which so many may be used, with or without copies.
func rule(t testing.TB, limitOf int64, d limit.Durability) *limit.Rule {
	t.Helper()
	r, err := limit.NewRule(limit.Spec{Algorithm: limit.FixedWindow, Limit: limitOf, Window: time.Hour, Durability: d})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// use charges a counter once in the table and returns its ID.
func (p *peer) use(partition int, name string, r *limit.Rule) owner.ID {
	p.t.Helper()
	call := owner.Call{ID: owner.Seed(1).ID([]byte(name)), Partition: partition, Charge: limit.Charge{Counter: []byte(name), Rule: r, Cost: 1}}
	var v limit.Verdict
	if err := p.table.Decide(p.now, &call, &v); err != nil || !v.Allowed {
		p.t.Fatalf("%s: %+v, %v", name, v, err)
	}
	return call.ID
}

// pull takes a whole partition from a holder, and returns the answers.
func (p *peer) pull(from membership.NodeID, partition int) (parts []Part) {
	p.t.Helper()
	part := p.ask(from, partition, true)
	for parts = append(parts, part); part.Chunk.More; parts = append(parts, part) {
		p.hear(from, &Acquire{Asks: []Ask{{Partition: partition, Attempt: 1, Pull: true, Release: part.Release, From: part.Chunk.Next}}})
		part = said[*Answers](p, from)[0].Parts[0]
	}
	return parts
}

// The first chunk says how much there is (a name takes a byte more in a table),
// the others do not, and a copy leaves
// out what wants none.
func TestWhatTravels(t *testing.T) {
	p, i := holder(t)
	p.cfg.Chunk = 4
	for len(p.confirm("b")) > 0 {
	}
	for k := range 8 {
		p.use(i, fmt.Sprintf("key-%d", k), rule(t, 5, []limit.Durability{limit.DurabilityAuto, limit.DurabilityNone}[k%2]))
	}
	p.Core.reseed(i)
	p.Owe(p.now)
	p.drain()
	var seed []Copy
	for more := p.confirm("b"); len(more) > 0; more = p.confirm("b") {
		seed = append(seed, more...)
	}
	entries := 0
	for n, c := range seed {
		entries += len(c.Chunk.Entries)
		for _, e := range c.Chunk.Entries {
			if e.Rule.Slack() < 0 {
				t.Errorf("%s wants no copy and is copied", e.Name)
			}
		}
		if (c.Chunk.Counters > 0) != (n == 0) || (c.Chunk.Names > 0) != (n == 0) {
			t.Errorf("part %d says that %d counters follow", n, c.Chunk.Counters)
		}
	}
	if entries != 4 || len(seed) < 2 {
		t.Errorf("%d counters in %d parts", entries, len(seed))
	}
	entries = 0
	for n, part := range p.pull("c", i) {
		entries += len(part.Chunk.Entries)
		if want := map[bool][2]int{true: {8, 8 * (1 + len("key-0"))}}[n == 0]; [2]int{part.Chunk.Counters, part.Chunk.Names} != want {
			t.Errorf("chunk %d says that %d counters, %d bytes follow", n, part.Chunk.Counters, part.Chunk.Names)
		}
	}
	if entries != 8 {
		t.Errorf("%d counters are handed over, not all 8", entries)
	}
}

// watched is a store that says what it is told to expect.
type watched struct {
	Store
	told []string
}

func (w *watched) Expect(p, counters, names int) {
	w.told = append(w.told, fmt.Sprintf("expect %d, %d bytes", counters, names))
	w.Store.Expect(p, counters, names)
}

func (w *watched) Import(p int, now int64, entries []owner.Entry) error {
	w.told = append(w.told, fmt.Sprintf("import %d", len(entries)))
	return w.Store.Import(p, now, entries)
}

// The receiver makes room before the counters come, once, and not for what it
// has already.
func TestTheReceiverMakesRoom(t *testing.T) {
	from, i := holder(t)
	var chunks []Chunk
	from.cfg.Chunk = 2
	for k := range 4 {
		from.use(i, fmt.Sprintf("key-%d", k), rule(t, 5, limit.DurabilityAuto))
	}
	for _, part := range from.pull("c", i) {
		chunks = append(chunks, part.Chunk)
	}
	p := newPeer(t, record("b", membership.Serving), record("c", membership.Serving))
	p.now = from.now
	store := &watched{Store: p.table}
	p.cfg.Store = store
	r := p.Ring()
	theirs := slices.IndexFunc([]int{0, 1, 2, 3, 4, 5, 6, 7}, func(i int) bool { return r.Nodes()[r.Owner(i)] != "a" })
	for n, c := range chunks {
		p.hear("b", &Replicate{[]Copy{{Partition: theirs, Stream: 1, Number: uint64(n + 1), Chunk: c}}})
	}
	want := []string{"expect 4, 24 bytes", "import 2", "import 2"}
	if !slices.Equal(store.told, want) {
		t.Errorf("a copy: %q", store.told)
	}
	p.hear("b", &Replicate{[]Copy{{Partition: theirs, Stream: 2, Number: 1, Chunk: chunks[0]}}})
	if last := store.told[len(want):]; !slices.Equal(last, []string{"expect 0, 0 bytes", "import 2"}) {
		t.Errorf("the same again: %q", last)
	}
}

// Counters that come from another are not charged here. The standby must get
// them all the same, or would begin without them.
func TestWhatIsMergedReachesTheStandby(t *testing.T) {
	p, mine := settled(t)
	i := mine[0]
	p.hear("b", &Nudge{Releases: []Release{{Partition: i, Boot: 1}}}) // b holds it, too
	attempt := said[*Acquire](p, "b")[0].Asks[0].Attempt
	r := rule(t, 5, limit.DurabilityAuto)
	entry := owner.Entry{ID: owner.Seed(1).ID([]byte("k")), Name: []byte("k"), Rule: r, State: limit.Shipped{A: ms, C: 3}}
	p.hear("b", &Answers{Parts: []Part{{Partition: i, Attempt: attempt, Status: Held}}})
	p.hear("b", &Answers{Parts: []Part{{Partition: i, Attempt: attempt, Status: Held, Pulled: true, Release: 7, Chunk: Chunk{Entries: []owner.Entry{entry}}}}})
	copied := p.confirm("b")
	if !slices.ContainsFunc(copied, func(c Copy) bool { return c.Partition == i && len(c.Chunk.Entries) == 1 }) {
		t.Errorf("copied: %+v", copied)
	}
	if waits, _ := p.Charge(i, owner.ID{Lo: 9}, 1, 0, 1); !waits {
		t.Error("meanwhile replies do not wait")
	}
}

// Answers are cut to messages of about a chunk.
func TestAnswersAreCut(t *testing.T) {
	p := newPeer(t)
	p.cfg.Chunk = 3
	var asks []Ask
	p.Learn(p.now, []Record{record("b", membership.Serving)})
	p.drain()
	r := p.Ring()
	for i := range partitions {
		if r.Nodes()[r.Owner(i)] == "b" {
			p.use(i, fmt.Sprint("x", i), rule(t, 5, limit.DurabilityAuto))
			p.use(i, fmt.Sprint("y", i), rule(t, 5, limit.DurabilityAuto))
			asks = append(asks, Ask{Partition: i, Attempt: 1, Pull: true})
		}
	}
	p.hear("b", &Acquire{Asks: asks})
	answers := said[*Answers](p, "b")
	if len(answers) != len(asks) || len(asks) < 2 {
		t.Errorf("%d messages for %d partitions of 2 counters each", len(answers), len(asks))
	}
	for _, a := range answers {
		if len(a.Records) != 2 {
			t.Error("a message without records")
		}
	}
}

// A node that was refused tells all others, once; they try for themselves.
func TestARefusalIsToldToAll(t *testing.T) {
	p := newPeer(t, record("b", membership.Serving), record("c", membership.Serving), record("d", membership.Serving), record("e", Dead))
	p.Refused(p.now, "b")
	p.Refused(p.now, "b")
	p.drain()
	for _, id := range []membership.NodeID{"c", "d"} {
		m := said[*Views](p, id)
		if len(m) != 1 || !slices.Equal(m[0].Absent, []membership.NodeID{"b"}) || len(m[0].Records) != 5 {
			t.Errorf("%s is told %+v", id, m)
		}
	}
	for _, id := range []membership.NodeID{"b", "e"} {
		if m := said[*Views](p, id); len(m) != 0 {
			t.Errorf("%s is told %+v", id, m)
		}
	}
	p.wants = nil
	p.hear("c", &Views{Absent: []membership.NodeID{"a", "b", "d", "e", "nobody"}})
	if want := []Action{Dial{"d"}}; !slices.Equal(p.wants, want) {
		t.Errorf("it wants %+v", p.wants)
	}
	if p.view.find("d").gone(p.now) {
		t.Error("it believes without having tried")
	}
}

// Counters with long logs are cut to messages as well, and none is left behind.
func TestLongLogsAreCut(t *testing.T) {
	p, mine := settled(t)
	p.cfg.Chunk = 20
	r, err := limit.NewRule(limit.Spec{Algorithm: limit.SlidingWindowLog, Limit: 10_000, Window: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	for k := range 40 {
		name, id := fmt.Sprint("k", k), owner.ID{}
		for range 600 {
			p.now++
			id = p.use(mine[0], name, r)
		}
		p.Charge(mine[0], id, 600, 100, k)
	}
	p.Owe(p.now)
	p.drain()
	seen := map[owner.ID]bool{}
	for messages := said[*Replicate](p, "b"); len(messages) > 0; messages = said[*Replicate](p, "b") {
		for _, m := range messages {
			back, stamps := &Replicated{}, 0
			for _, c := range m.Copies {
				for _, e := range c.Chunk.Entries {
					seen[e.ID] = true
					stamps += len(e.State.Log)
				}
				back.Receipts = append(back.Receipts, Receipt{Partition: c.Partition, Stream: c.Stream, Number: c.Number})
			}
			if stamps > exportAtOnce*600 {
				t.Errorf("%d stamps in a message", stamps)
			}
			p.hear("b", back)
		}
	}
	if len(seen) != 40 || len(p.paid()) != 40 {
		t.Errorf("%d counters were copied", len(seen))
	}
}
