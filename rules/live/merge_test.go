package live

import (
	"bytes"
	"math"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ringlimit/ringlimit/rules"
)

// The law of replication: stores write and exchange in any order; then, whatever
// happened, a few more exchanges make them equal, and each entity is what the
// latest write said. The model is a list of all writes.
func TestStoresConverge(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		stores := []*Store{NewStore("a"), NewStore("b"), NewStore("c"), NewStore("d")}
		var writes []Entry
		pick := func(label string) *Store { return rapid.SampledFrom(stores).Draw(rt, label) }
		if rapid.Bool().Draw(rt, "seeded") {
			for i, s := range stores {
				if _, err := s.Seed(file(t, map[string]int{"free": 1 + i%2})); err != nil {
					rt.Fatal(err)
				}
				e, _ := s.Get(tier("free"))
				writes = append(writes, e)
			}
		}
		name := rapid.SampledFrom([]rules.EntityName{tier("free"), tier("paid"), client("x"), client("y\x00/")})
		rt.Repeat(map[string]func(*rapid.T){
			"put": func(rt *rapid.T) {
				n, body := name.Draw(rt, "name"), limits(rapid.IntRange(1, 9).Draw(rt, "limit"))
				if n.Kind == rules.ClientEntity {
					body = []byte(rapid.SampledFrom([]string{`{"tier":"free"}`, `{"tier":"paid"}`, `{}`, string(body)}).Draw(rt, "client"))
				}
				s := pick("at")
				before, _ := s.Get(n)
				if was, e, err := s.Put(n, body, Precondition{}); err == nil {
					writes = append(writes, e)
					if was.Stamp() != before.Stamp() {
						rt.Fatalf("replaced %+v, says it was %+v", before, was)
					}
				}
			},
			"delete": func(rt *rapid.T) {
				n, s := name.Draw(rt, "name"), pick("at")
				before, _ := s.Get(n)
				if was, e, err := s.Delete(n, Precondition{}); err == nil {
					writes = append(writes, e)
					if was.Body == nil || was.Stamp() != before.Stamp() {
						rt.Fatalf("deleted %+v, says it was %+v", before, was)
					}
				}
			},
			"exchange": func(rt *rapid.T) { copyAll(t, pick("to"), pick("from")) },
			"some": func(rt *rapid.T) { // an exchange that breaks off, twice over
				entries, _ := pick("from").Newer(nil)
				part := entries[:rapid.IntRange(0, len(entries)).Draw(rt, "part")]
				if _, _, err := pick("to").Merge(append(part, part...)); err != nil {
					rt.Fatal(err)
				}
			},
			"": func(rt *rapid.T) {
				for _, s := range stores {
					checkSums(rt, s)
				}
			},
		})
		for range len(stores) { // along a chain, there and back
			for i := range len(stores) - 1 {
				copyAll(t, stores[i+1], stores[i])
				copyAll(t, stores[i], stores[i+1])
			}
		}
		want := latest(writes)
		for _, s := range stores {
			if s.Summary() != stores[0].Summary() || shown(s.Rules()) != shown(stores[0].Rules()) {
				rt.Fatalf("%+v, %+v\n%s\n%s", s.Summary(), stores[0].Summary(), shown(s.Rules()), shown(stores[0].Rules()))
			}
			if string(s.Rules().LimitsJSON()) != string(stores[0].Rules().LimitsJSON()) {
				rt.Fatalf("%s\n%s", s.Rules().LimitsJSON(), stores[0].Rules().LimitsJSON())
			}
			for name, w := range want {
				if e, _ := s.Get(name); e.Version != w.Version || !bytes.Equal(e.Body, w.Body) {
					rt.Fatalf("%s is %v %s, the latest write was %v %s", name, e.Version, e.Body, w.Version, w.Body)
				}
			}
		}
	})
}

// latest is the model: of each entity the write that no other is later than.
func latest(writes []Entry) map[rules.EntityName]Entry {
	last := map[rules.EntityName]Entry{}
	for _, w := range writes {
		if old, ok := last[w.Name]; !ok || w.Stamp().Compare(old.Stamp()) > 0 {
			last[w.Name] = w
		}
	}
	return last
}

// checkSums holds what a store adds up against what it holds.
func checkSums(t *rapid.T, s *Store) {
	var digest, version uint64
	size := 0
	for name, e := range s.entries {
		if name != e.Name || e.stamp != e.Entry.Stamp() {
			t.Fatalf("%s holds %+v", name, e)
		}
		digest += e.stamp.hash()
		version = max(version, e.Version.Count)
		size += e.size()
	}
	if s.Summary() != (Summary{version, digest}) || s.bytes != size {
		t.Fatalf("%+v and %d bytes, want %x, %d and %d", s.Summary(), s.bytes, digest, version, size)
	}
}

// A node that has lost its memory while it was cut off may give a version twice.
// All the same the nodes come to one answer.
func TestOneVersionTwiceConverges(t *testing.T) {
	first, second := NewStore("a"), NewStore("a")
	put(t, first, tier("free"), limits(1))
	put(t, second, tier("free"), limits(2))
	if first.Summary() == second.Summary() {
		t.Fatal("the digests do not tell them apart")
	}
	copyAll(t, first, second)
	copyAll(t, second, first)
	if shown(first.Rules()) != shown(second.Rules()) || first.Summary() != second.Summary() {
		t.Errorf("%s\n%s", shown(first.Rules()), shown(second.Rules()))
	}
}

func TestSinceGivesWhatChanged(t *testing.T) {
	a, b := NewStore("a"), NewStore("b")
	for i := range 100 {
		put(t, a, tier("t"+strings.Repeat("x", i)), limits(1))
	}
	copyAll(t, b, a)
	was := b.Summary().Digest
	put(t, a, tier("t"), limits(2))
	put(t, a, tier("t"), limits(3))
	put(t, a, tier("new"), limits(3))
	entries, digest, ok := a.Since(was)
	if !ok || len(entries) != 2 || digest != a.Summary().Digest {
		t.Errorf("%d entries, %v; want the two that changed", len(entries), ok)
	}
	if entries, _, ok := a.Since(a.Summary().Digest); !ok || len(entries) != 0 {
		t.Errorf("%d entries, %v for its own digest", len(entries), ok)
	}
	if !a.Includes(was) || !a.Includes(a.Summary().Digest) || a.Includes(12345) || b.Includes(a.Summary().Digest) {
		t.Error("Includes")
	}
	for i := range maxMoments {
		put(t, a, tier("t"), limits(i+1))
	}
	if _, _, ok := a.Since(was); ok || len(a.journal.moments) != maxMoments {
		t.Errorf("known after %d changes: %v; the journal has %d moments", maxMoments, ok, len(a.journal.moments))
	}
}

func TestJournalIsBounded(t *testing.T) {
	var j journal
	for i := range uint64(10) {
		j.note(i, make([]rules.EntityName, maxChanged/3))
	}
	if j.names > maxChanged || len(j.moments) != 3 || j.find(9) != 2 || j.find(6) != -1 {
		t.Errorf("%d names in %d moments", j.names, len(j.moments))
	}
	j.note(11, make([]rules.EntityName, maxChanged+1)) // the newest stays, however large
	if j.names != maxChanged+1 || len(j.moments) != 1 {
		t.Errorf("%d names in %d moments", j.names, len(j.moments))
	}
}

func TestBadEntriesAreRefusedWhole(t *testing.T) {
	good := Entry{tier("free"), Version{1, "b"}, limits(1)}
	for name, e := range map[string]Entry{
		"no kind":       {rules.EntityName{Name: "x"}, Version{1, "b"}, limits(1)},
		"kind":          {rules.EntityName{Kind: "Tier!", Name: "x"}, Version{1, "b"}, limits(1)},
		"long kind":     {rules.EntityName{Kind: rules.EntityKind(strings.Repeat("k", 33)), Name: "x"}, Version{1, "b"}, limits(1)},
		"no name":       {tier(""), Version{1, "b"}, limits(1)},
		"long name":     {client(strings.Repeat("n", 513)), Version{1, "b"}, limits(1)},
		"no UTF-8":      {client("\xff"), Version{1, "b"}, limits(1)},
		"no node":       {tier("x"), Version{1, ""}, limits(1)},
		"long node":     {tier("x"), Version{1, strings.Repeat("n", 129)}, limits(1)},
		"node no UTF-8": {tier("x"), Version{1, "\xff"}, limits(1)},
		"count":         {tier("x"), Version{math.MaxUint64, "b"}, limits(1)},
		"empty body":    {tier("x"), Version{1, "b"}, []byte{}},
		"body no UTF-8": {tier("x"), Version{1, "b"}, []byte("\xff")},
		"long body":     {tier("x"), Version{1, "b"}, bytes.Repeat([]byte(" "), MaxBody+1)},
	} {
		s := NewStore("a")
		if n, _, err := s.Merge([]Entry{good, e}); err == nil || n != 0 || !s.Empty() {
			t.Errorf("%s: %d merged, %v", name, n, err)
		}
	}
}

// A merge may fill the room, a write half of it: both sides of a partition fit.
func TestRoomIsBounded(t *testing.T) {
	tombstones := func(n int) (entries []Entry) {
		for i := range n {
			entries = append(entries, Entry{client(strconv.Itoa(i)), Version{1, "b"}, nil})
		}
		return entries
	}
	s := NewStore("a")
	s.room = room{entries: 10, bytes: 1000}
	if _, _, err := s.Merge(tombstones(11)); err == nil || !s.Empty() {
		t.Errorf("one entry too many was merged: %v", err)
	}
	if n, _, err := s.Merge(tombstones(5)); n != 5 || err != nil {
		t.Error(n, err)
	}
	if _, _, err := s.Put(tier("free"), limits(1), Precondition{}); err != ErrFull {
		t.Errorf("a write into a store that is half full: %v", err)
	}
	if e := put(t, s, client("0"), limits(1)); e.Version.Count != 2 { // one that is there already
		t.Errorf("%+v", e)
	}
	big := Entry{client("1"), Version{1, "c"}, bytes.Repeat([]byte(" "), 990)}
	if _, _, err := s.Merge([]Entry{big}); err == nil {
		t.Error("too many bytes were merged")
	}
	if n, _, err := s.Merge(tombstones(10)); n != 5 || err != nil {
		t.Error(n, err)
	}
	if e := remove(t, s, client("0")); e.Version.Count != 3 { // a full one can be made smaller
		t.Errorf("%+v", e)
	}
}

// One made-up count must not use up all of them; a node that has nothing yet takes
// whatever its cluster has come to.
func TestCountsDoNotJump(t *testing.T) {
	at := func(count uint64) []Entry { return []Entry{{tier("x"), Version{count, "b"}, limits(1)}} }
	s := NewStore("a")
	if n, _, err := s.Merge(at(maxCount - 2*maxLead)); n != 1 || err != nil {
		t.Fatalf("into an empty store: %d, %v", n, err)
	}
	before := s.Summary()
	if n, _, err := s.Merge(at(maxCount - maxLead + 1)); n != 0 || err == nil || s.Summary() != before {
		t.Errorf("a jump: %d, %v", n, err)
	}
	if n, _, err := s.Merge(at(maxCount - maxLead)); n != 1 || err != nil {
		t.Errorf("the longest lead: %d, %v", n, err)
	}
	if e := put(t, s, tier("y"), limits(2)); e.Version.Count != maxCount-maxLead+1 {
		t.Errorf("written as %+v", e.Version)
	}
}

// An entity of a kind that only a later version knows has no effect here, and is
// passed on.
func TestUnknownKindsArePassedOn(t *testing.T) {
	a, b := NewStore("a"), NewStore("b")
	future := Entry{rules.EntityName{Kind: "region", Name: "eu"}, Version{3, "z"}, []byte(`{"new":1}`)}
	if n, _, err := a.Merge([]Entry{future}); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	put(t, a, tier("free"), limits(1))
	copyAll(t, b, a)
	if e, ok := b.Get(future.Name); !ok || string(e.Body) != string(future.Body) || b.Summary() != a.Summary() {
		t.Errorf("%+v, %v", e, ok)
	}
}
