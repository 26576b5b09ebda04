package gossip

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/hashicorp/memberlist"
	"pgregory.net/rapid"

	"github.com/ringlimit/ringlimit/membership"
)

func someMember() *rapid.Generator[membership.Member] {
	return rapid.Custom(func(t *rapid.T) membership.Member {
		text := func(name string, min, max int) string { return rapid.StringN(min, -1, max).Draw(t, name) }
		return membership.Member{
			ID:    membership.NodeID(text("id", 1, maxID)),
			Boot:  membership.BootID(rapid.Uint64().Draw(t, "boot")),
			State: membership.State(rapid.IntRange(1, 3).Draw(t, "state")),
			Owner: rapid.Bool().Draw(t, "owner"),
			Peer:  text("peer", 0, 180), HTTP: text("http", 0, 180),
			Ring: rapid.Uint64().Draw(t, "ring"), Seq: rapid.Uint64().Draw(t, "seq"),
			Rules: membership.RulesSummary{Version: rapid.Uint64().Draw(t, "rules"), Digest: rapid.Uint64().Draw(t, "digest")},
		}
	})
}

func TestMetaRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := someMember().Draw(t, "member")
		b, err := encodeMeta(m)
		if err != nil || len(b) > memberlist.MetaMaxSize {
			t.Fatalf("%d bytes, %v", len(b), err)
		}
		if got, err := decodeMeta(append(b, "a later version's fields"...)); err != nil || got != m {
			t.Fatalf("got %+v, %v, want %+v", got, err, m)
		}
		cut := rapid.IntRange(0, len(b)-1).Draw(t, "cut")
		if _, err := decodeMeta(b[:cut]); err == nil && cut != len(b)-metaRules && cut != len(b)-metaRules-metaSeq {
			t.Fatalf("accepted %d of %d bytes", cut, len(b))
		}
	})
}

// A node of an earlier version tells no rules, and before that no sequence.
func TestMetaOfEarlierVersions(t *testing.T) {
	m := membership.Member{ID: "n1", Boot: 1, State: membership.Serving, Peer: "h:1", Seq: 9, Rules: membership.RulesSummary{Version: 3, Digest: 4}}
	b, err := encodeMeta(m)
	if err != nil {
		t.Fatal(err)
	}
	m.Rules = membership.RulesSummary{}
	if got, err := decodeMeta(b[:len(b)-metaRules]); err != nil || got != m {
		t.Errorf("got %+v, %v; want %+v", got, err, m)
	}
	m.Seq = 0
	if got, err := decodeMeta(b[:len(b)-metaRules-metaSeq]); err != nil || got != m {
		t.Errorf("got %+v, %v; want %+v", got, err, m)
	}
}

// memberlist panics on a Meta over 512 bytes; Start must not get that far.
func TestMetaThatDoesNotFitIsRefusedAtStart(t *testing.T) {
	long := func(n int) string { return strings.Repeat("x", n) }
	for name, c := range map[string]struct {
		change func(*membership.Member)
		want   string
	}{
		"no id":           {func(m *membership.Member) { m.ID = "" }, "id: 0 bytes"},
		"long id":         {func(m *membership.Member) { m.ID = membership.NodeID(long(129)) }, "id: 129 bytes"},
		"long peer":       {func(m *membership.Member) { m.Peer = long(256) }, "256 bytes"},
		"too much in all": {func(m *membership.Member) { m.Peer, m.HTTP = long(255), long(255) }, "512"},
		"no boot":         {func(m *membership.Member) { m.Boot = 0 }, "boot"},
	} {
		t.Run(name, func(t *testing.T) {
			m := membership.Member{ID: "n1", Boot: 1, Peer: "h:1"}
			c.change(&m)
			_, err := Start(Config{Self: m, Bind: "127.0.0.1:0"})
			if c.want == "512" {
				c.want = "466 fit"
			}
			if err == nil || !strings.Contains(err.Error(), "self: ") || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
}

func FuzzDecodeMeta(f *testing.F) {
	for _, m := range []membership.Member{
		{ID: "n1", Boot: 1, State: membership.Joining},
		{ID: "n2", Boot: math.MaxUint64, State: membership.Draining, Owner: true, Peer: "10.0.0.1:7702", HTTP: "[::1]:7700", Ring: 9, Seq: 1 << 40, Rules: membership.RulesSummary{Version: 7, Digest: 1 << 63}},
	} {
		b, err := encodeMeta(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
		f.Add(append(b, 0))
		f.Add(b[:len(b)-1])
		f.Add(b[:len(b)-metaRules])
		f.Add(b[:len(b)-metaRules-metaSeq])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := decodeMeta(b)
		if err != nil {
			return
		}
		again, err := encodeMeta(m)
		if len(b) > memberlist.MetaMaxSize || len(m.ID)+len(m.Peer)+len(m.HTTP) > maxStrings {
			return // memberlist bounds what it takes from others no better
		}
		if err != nil {
			t.Fatalf("%+v does not encode: %v", m, err)
		}
		if m.Rules == (membership.RulesSummary{}) {
			again = again[:len(again)-metaRules] // whether they were told or not
			if m.Seq == 0 {
				again = again[:len(again)-metaSeq]
			}
		}
		const flags = 2 // unknown flags are ignored
		again[flags] |= b[flags] &^ flagOwner
		if !bytes.HasPrefix(b, again) {
			t.Fatalf("%x decodes to %+v, which is %x", b, m, again)
		}
	})
}
