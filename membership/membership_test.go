package membership

import (
	"cmp"
	"slices"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"
)

func someMembers() *rapid.Generator[[]Member] {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Member {
		return Member{
			ID:    NodeID(rapid.SampledFrom([]string{"a", "b", "c", "dd"}).Draw(t, "id")),
			Boot:  BootID(rapid.IntRange(1, 5).Draw(t, "boot")),
			State: State(rapid.IntRange(1, 3).Draw(t, "state")),
			Owner: rapid.Bool().Draw(t, "owner"),
		}
	}), 0, 12)
}

// The model is a map: the latest boot of each ID.
func TestViewKeepsTheLatestBootOfEachID(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := someMembers().Draw(t, "members")
		before := slices.Clone(in)
		latest := map[NodeID]BootID{}
		for _, m := range in {
			latest[m.ID] = max(latest[m.ID], m.Boot)
		}
		v := NewView(in)
		if !slices.Equal(in, before) {
			t.Fatal("NewView changed its argument")
		}
		if len(v.Members) != len(latest) || !slices.IsSortedFunc(v.Members, func(a, b Member) int { return cmp.Compare(a.ID, b.ID) }) {
			t.Fatalf("members %v, want the sorted IDs of %v", v.Members, latest)
		}
		for id, boot := range latest {
			m, ok := v.Find(id)
			if !ok || m.Boot != boot {
				t.Fatalf("Find(%q) = %v, %v, want boot %d", id, m, ok, boot)
			}
			if v.Superseded(m) || !v.Superseded(Member{ID: id, Boot: boot - 1}) {
				t.Fatalf("%q: only an earlier boot is superseded", id)
			}
		}
		if _, ok := v.Find("absent"); ok || v.Superseded(Member{ID: "absent"}) {
			t.Fatal("found a member that is not there")
		}
	})
}

func TestOwnersServeAndMayOwn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := NewView(someMembers().Draw(t, "members"))
		var want []NodeID
		for _, m := range v.Members {
			if m.State == Serving && m.Owner {
				want = append(want, m.ID)
			}
		}
		if got := v.Owners(); !slices.Equal(got, want) {
			t.Fatalf("owners %v, want %v", got, want)
		}
	})
}

func TestMailboxKeepsTheLatest(t *testing.T) {
	m := NewMailbox()
	for _, id := range []NodeID{"a", "b", "c"} {
		m.Put(NewView([]Member{{ID: id}})) // blocks for ever when Put waits for a reader
	}
	if v := <-m.Views(); v.Members[0].ID != "c" {
		t.Errorf("got %v, want the latest", v)
	}
	select {
	case v := <-m.Views():
		t.Errorf("a second view %v", v)
	default:
	}
}

// A reader takes views while they are put: none is older than one before it,
// and the last one arrives.
func TestMailboxUnderAReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const last = 10_000
		m := NewMailbox()
		go func() {
			for i := range last {
				m.Put(NewView([]Member{{ID: "a", Boot: BootID(i + 1)}}))
			}
		}()
		for before := BootID(0); before < last; {
			now := (<-m.Views()).Members[0].Boot
			if now <= before {
				t.Fatalf("view %d after %d", now, before)
			}
			before = now
		}
	})
}

func TestStaticGivesOneView(t *testing.T) {
	views := Static(Member{ID: "b"}, Member{ID: "a"})
	if v := <-views; len(v.Members) != 2 || v.Members[0].ID != "a" {
		t.Errorf("view %v", v)
	}
	select {
	case v := <-views:
		t.Errorf("a second view %v", v)
	default:
	}
}

func TestStateNames(t *testing.T) {
	for s, want := range map[State]string{Joining: "joining", Serving: "serving", Draining: "draining", 0: "unknown", 9: "unknown"} {
		if s.String() != want {
			t.Errorf("State(%d) = %q, want %q", s, s, want)
		}
	}
	if BootID(255).String() != "ff" {
		t.Errorf("BootID(255) = %s", BootID(255))
	}
}
