package live

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/ringlimit/ringlimit/rules"
)

func TestPutIsInForceAtOnceAndKnownByItsTag(t *testing.T) {
	s := NewStore("a")
	e := put(t, s, tier("free"), limits(10))
	if !strings.HasPrefix(e.ETag(), `"1-a-`) || s.Summary().Version != 1 || !strings.Contains(shown(s.Rules()), `"limit":10`) {
		t.Fatalf("%s %+v\n%s", e.ETag(), s.Summary(), shown(s.Rules()))
	}
	again := put(t, s, tier("free"), limits(10))
	if again.ETag() == e.ETag() {
		t.Errorf("a write that changes nothing is a write: the last writer wins; got %s", again.ETag())
	}
	if e, ok := s.Get(tier("free")); !ok || e.ETag() != again.ETag() {
		t.Errorf("Get: %+v, %v", e, ok)
	}
	if _, ok := s.Get(tier("paid")); ok {
		t.Error("Get finds a tier that is not there")
	}
}

func TestBadBodyChangesNothing(t *testing.T) {
	s := NewStore("a")
	put(t, s, tier("free"), limits(10))
	before, summary := s.Rules(), s.Summary()
	for _, body := range []string{``, `{`, `{"rules":[{"name":"x","algorithm":"none","limit":1,"window":"1s"}]}`, `[]`} {
		_, _, err := s.Put(tier("free"), []byte(body), Precondition{})
		if _, ok := errors.AsType[*rules.Error](err); !ok {
			t.Errorf("%s: %v, want a *rules.Error", body, err)
		}
	}
	if s.Rules() != before || s.Summary() != summary {
		t.Error("a bad body changed something")
	}
}

func TestPreconditions(t *testing.T) {
	s := NewStore("a")
	old := put(t, s, tier("there"), limits(9)).ETag()
	tag := put(t, s, tier("there"), limits(10)).ETag()
	put(t, s, tier("gone"), limits(10))
	gone := remove(t, s, tier("gone"))
	const other = `"7-a-0123456789abcdef"`
	for _, c := range []struct {
		name  string
		p     Precondition
		holds bool
	}{
		{"there", Precondition{}, true},
		{"there", Precondition{IfMatch: "*"}, true},
		{"there", Precondition{IfMatch: "\t* "}, true},
		{"there", Precondition{IfMatch: tag}, true},
		{"there", Precondition{IfMatch: other + " , " + tag}, true},
		{"there", Precondition{IfMatch: ", " + tag + ",,"}, true},
		{"there", Precondition{IfMatch: old}, false},
		{"there", Precondition{IfMatch: "W/" + tag}, false}, // weak tags never match strongly
		{"there", Precondition{IfMatch: "W/" + tag + ", " + tag}, true},
		{"there", Precondition{IfNoneMatch: "*"}, false},
		{"there", Precondition{IfNoneMatch: tag}, false},
		{"there", Precondition{IfNoneMatch: old}, true},
		{"there", Precondition{IfNoneMatch: old + ", W/" + tag}, false}, // here they do
		{"there", Precondition{IfNoneMatch: "W/" + old}, true},
		{"there", Precondition{IfNoneMatch: `"a,*,b"`}, true},
		{"there", Precondition{IfMatch: `"a,*,b"`}, false},
		{"there", Precondition{IfMatch: `"*"`}, false},
		{"there", Precondition{IfMatch: tag, IfNoneMatch: "*"}, false},
		{"absent", Precondition{IfMatch: "*"}, false},
		{"absent", Precondition{IfNoneMatch: "*"}, true},
		{"absent", Precondition{IfNoneMatch: tag}, true},
		{"gone", Precondition{IfMatch: gone.ETag()}, false},
		{"gone", Precondition{IfMatch: "*"}, false},
		{"gone", Precondition{IfNoneMatch: "*"}, true},
	} {
		e, _ := s.Get(tier(c.name))
		if c.name == "gone" {
			e = gone
		}
		if err := c.p.check(e); (err == nil) != c.holds {
			t.Errorf("%s, %+v: %v, want holds %v", c.name, c.p, err, c.holds)
		}
	}
	if _, _, err := s.Put(tier("there"), limits(11), Precondition{IfMatch: old}); !errors.Is(err, ErrPrecondition) {
		t.Errorf("Put with an old tag: %v", err)
	}
	if _, _, err := s.Delete(tier("there"), Precondition{IfMatch: old}); !errors.Is(err, ErrPrecondition) {
		t.Errorf("Delete with an old tag: %v", err)
	}
	if strings.Contains(shown(s.Rules()), `"limit":11`) {
		t.Error("a refused write is in force")
	}
}

// What is no list of tags guards nothing, whatever it has inside.
func TestAMalformedPreconditionNeverHolds(t *testing.T) {
	s := NewStore("a")
	tag := put(t, s, tier("there"), limits(10)).ETag()
	there, _ := s.Get(tier("there"))
	for _, list := range []string{
		" ", ",", tag[1:], tag[:len(tag)-1], strings.Trim(tag, `"`), "w/" + tag, tag + tag, tag + " " + tag, tag + ", *", "*, " + tag,
		`"x,` + tag + `,y"`, `W/`, `"`,
	} {
		for _, p := range []Precondition{{IfMatch: list}, {IfNoneMatch: list}} {
			if err := p.check(there); !errors.Is(err, ErrPrecondition) {
				t.Errorf("%+v holds: %v", p, err)
			}
		}
	}
}

// A node that has lost its memory counts from the start again: its tag of one
// content must not stand for another one.
func TestOneVersionTwiceHasTwoTags(t *testing.T) {
	before, after := NewStore("a"), NewStore("a")
	first := put(t, before, tier("free"), limits(10))
	second := put(t, after, tier("free"), limits(20))
	if first.Version != second.Version {
		t.Fatalf("%v, %v", first.Version, second.Version)
	}
	if _, _, err := after.Put(tier("free"), limits(30), Precondition{IfMatch: first.ETag()}); !errors.Is(err, ErrPrecondition) {
		t.Errorf("the tag %s of another content: %v", first.ETag(), err)
	}
	if _, _, err := after.Put(tier("free"), limits(30), Precondition{IfMatch: second.ETag()}); err != nil {
		t.Error(err)
	}
}

func TestTagsArePlain(t *testing.T) {
	for node, want := range map[string]string{"a\"b,c%22": "7-a%22b%2Cc%2522-00000000000000ab", "é \x7f": "7-%C3%A9%20%7F-00000000000000ab"} {
		s := Stamp{Version: Version{7, node}, Sum: 0xab}
		if tags, ok := readTags(s.ETag()); s.ETag() != `"`+want+`"` || !ok || len(tags) != 1 {
			t.Errorf("%q: %s", node, s.ETag())
		}
	}
}

// One rule put onto a tier that a newer version has written is refused, and the
// tier stays what it was, for the others.
func TestOneRuleOntoWhatThisVersionCannotRead(t *testing.T) {
	s := NewStore("a")
	newer := Entry{tier("free"), Version{3, "b"}, []byte(`{"rules":[{"name":"all","colour":"red","algorithm":"fixed_window","limit":1,"window":"60s"}]}`)}
	if _, warnings, err := s.Merge([]Entry{newer}); err != nil || len(warnings) == 0 {
		t.Fatal(warnings, err)
	}
	before := s.Summary()
	_, _, err := s.Put(tier("free"), []byte(`{"name":"all","algorithm":"fixed_window","limit":2,"window":"60s"}`), Precondition{})
	if _, ok := errors.AsType[*rules.Error](err); !ok || !strings.Contains(err.Error(), "replace the whole tier") {
		t.Errorf("error %v", err)
	}
	if e, ok := s.Get(tier("free")); !ok || e.Stamp() != newer.Stamp() || s.Summary() != before {
		t.Errorf("now %+v", e)
	}
	put(t, s, tier("free"), limits(5))
}

// The clients of a tier are in it, though this version cannot read its rules.
func TestATierThatCannotBeReadIsInUseToo(t *testing.T) {
	s := NewStore("a")
	newer := []Entry{{tier("free"), Version{3, "b"}, []byte(`{"rules":[],"region":"eu"}`)}, {client("cust"), Version{4, "b"}, []byte(`{"tier":"free"}`)}}
	if _, _, err := s.Merge(newer); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Delete(tier("free"), Precondition{}); !errors.Is(err, ErrInUse) {
		t.Errorf("error %v, want ErrInUse", err)
	}
	remove(t, s, client("cust"))
	remove(t, s, tier("free"))
}

func TestDelete(t *testing.T) {
	s := NewStore("a")
	put(t, s, tier("default"), limits(10))
	put(t, s, tier("free"), limits(10))
	put(t, s, client("cust"), []byte(`{"tier":"free"}`))
	if _, _, err := s.Delete(tier("free"), Precondition{}); !errors.Is(err, ErrInUse) {
		t.Errorf("a tier with clients: %v, want ErrInUse", err)
	}
	if _, _, err := s.Delete(tier("free"), Precondition{IfMatch: `"old"`}); !errors.Is(err, ErrInUse) { // RFC 9110, section 13.2.1
		t.Errorf("a tier with clients, by an old tag: %v, want ErrInUse", err)
	}
	remove(t, s, client("cust"))
	e := remove(t, s, tier("free"))
	if e.Body != nil || e.Version != (Version{5, "a"}) {
		t.Errorf("the tombstone is %+v", e)
	}
	for _, name := range []rules.EntityName{tier("free"), client("cust"), tier("never")} {
		for _, p := range []Precondition{{}, {IfMatch: "*"}, {IfMatch: e.ETag()}} {
			if _, _, err := s.Delete(name, p); !errors.Is(err, ErrNotFound) {
				t.Errorf("deleting %s, %+v: %v, want ErrNotFound", name, p, err)
			}
		}
	}
	if got := shown(s.Rules()); strings.Contains(got, "free") || strings.Contains(got, "cust") {
		t.Errorf("in force:\n%s", got)
	}
}

// A write is later than all its node has seen, of whatever entity.
func TestWritesCountOnFromWhatWasSeen(t *testing.T) {
	a, b := NewStore("a"), NewStore("b")
	for range 5 {
		put(t, a, tier("free"), limits(1))
	}
	copyAll(t, b, a)
	if e := put(t, b, tier("paid"), limits(2)); e.Version != (Version{6, "b"}) {
		t.Errorf("version %v", e.Version)
	}
}

func TestSeedsOfEqualFilesAreEqualAndLoseToEveryWrite(t *testing.T) {
	a, b := NewStore("a"), NewStore("b")
	for _, s := range []*Store{a, b} {
		if seeded, err := s.Seed(file(t, map[string]int{"free": 1, "paid": 2})); !seeded || err != nil {
			t.Fatal(seeded, err)
		}
	}
	if a.Summary() != b.Summary() || a.Summary().Version != 0 || a.Empty() {
		t.Fatalf("%+v, %+v: equal files have equal digests at once", a.Summary(), b.Summary())
	}
	other := NewStore("z")
	if _, err := other.Seed(file(t, map[string]int{"free": 9})); err != nil {
		t.Fatal(err)
	}
	put(t, a, tier("free"), limits(7))
	for range 2 {
		copyAll(t, other, a)
		copyAll(t, a, other)
	}
	if shown(a.Rules()) != shown(other.Rules()) || !strings.Contains(shown(other.Rules()), `"limit":7`) {
		t.Errorf("a seed won:\n%s\n%s", shown(a.Rules()), shown(other.Rules()))
	}
}

func TestSeedIsForStoresThatNeverHeldAnything(t *testing.T) {
	s := NewStore("a")
	put(t, s, tier("free"), limits(1))
	remove(t, s, tier("free"))
	if seeded, _ := s.Seed(file(t, map[string]int{"free": 9})); seeded || shown(s.Rules()) != "" {
		t.Errorf("a file brought back what was deleted:\n%s", shown(s.Rules()))
	}
	if empty := NewStore("a"); !empty.Empty() {
		t.Error("a new store is not empty")
	}
}

func TestApplyWritesWhatDiffers(t *testing.T) {
	s := NewStore("a")
	if _, err := s.Seed(file(t, map[string]int{"free": 1, "paid": 2, "old": 3})); err != nil {
		t.Fatal(err)
	}
	next := file(t, map[string]int{"free": 1, "paid": 20, "new": 4})
	if !s.Differs(next) {
		t.Error("no difference")
	}
	changes, err := s.Apply(next)
	if err != nil || len(changes) == 0 {
		t.Fatal(changes, err)
	}
	if s.Differs(next) {
		t.Error("a difference after it was applied")
	}
	for name, want := range map[string]uint64{"free": 0, "paid": 1, "old": 0, "new": 1} {
		if e, ok := s.Get(tier(name)); !ok || e.Version.Count != want {
			t.Errorf("%s: %v, %+v, want count %d", name, ok, e.Version, want)
		}
	}
	if changes, err := s.Apply(next); err != nil || changes != nil || s.Summary().Version != 1 {
		t.Errorf("again: %v, %v, version %d", changes, err, s.Summary().Version)
	}
}

// A rule file replaces what this version could not read, and the changes tell it.
func TestApplyOntoWhatThisVersionCannotRead(t *testing.T) {
	s := NewStore("a")
	newer := Entry{tier("free"), Version{3, "b"}, []byte(`{"rules":[],"region":"eu"}`)}
	if _, _, err := s.Merge([]Entry{newer}); err != nil {
		t.Fatal(err)
	}
	changes, err := s.Apply(file(t, map[string]int{"free": 1, "new": 1}))
	if err != nil || len(changes) != 2 || changes[0].From != string(newer.Body) || changes[1].From != "" {
		t.Errorf("%v, %v", changes, err)
	}
}

func TestChangedTellsOfWritesMergesAndSeeds(t *testing.T) {
	heard := func(s *Store) bool {
		select {
		case <-s.Changed():
			return true
		default:
			return false
		}
	}
	a, b := NewStore("a"), NewStore("b")
	if heard(a) {
		t.Error("a new store has changed")
	}
	if _, err := a.Seed(file(t, map[string]int{"free": 1})); err != nil || !heard(a) {
		t.Error("a seed is not heard of", err)
	}
	put(t, a, tier("free"), limits(2))
	put(t, a, tier("free"), limits(3))
	if !heard(a) || heard(a) {
		t.Error("two writes are heard of once")
	}
	copyAll(t, b, a)
	if !heard(b) {
		t.Error("a merge is not heard of")
	}
	copyAll(t, b, a)
	if heard(b) {
		t.Error("a merge without effect is heard of")
	}
}

func TestConcurrentUse(t *testing.T) {
	s, other := NewStore("a"), NewStore("b")
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for i := range 50 {
				put(t, s, tier("free"), limits(i+1))
				copyAll(t, other, s)
				_ = shown(s.Rules())
				_ = s.Includes(other.Summary().Digest)
			}
		})
	}
	all.Wait()
	if v := s.Summary().Version; v != 200 {
		t.Errorf("version %d after 200 writes", v)
	}
	if copyAll(t, other, s); other.Summary() != s.Summary() {
		t.Errorf("%+v, %+v", s.Summary(), other.Summary())
	}
}
