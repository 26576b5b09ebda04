package peerrpc

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/ringlimit/ringlimit/forward/peerrpc/peerpb"
	"github.com/ringlimit/ringlimit/membership"
	"github.com/ringlimit/ringlimit/rules"
	"github.com/ringlimit/ringlimit/rules/live"
)

func written(t testing.TB, n int) *live.Store {
	t.Helper()
	var entries []live.Entry
	for i := range n {
		body := fmt.Appendf(nil, `{"rules":[{"name":"all","algorithm":"fixed_window","limit":%d,"window":"60s"}]}`, i)
		entries = append(entries, live.Entry{Name: rules.EntityName{Kind: rules.TierEntity, Name: fmt.Sprint("t", i)}, Version: live.Version{Count: uint64(i + 1), Node: "owner"}, Body: body})
	}
	entries = append(entries, live.Entry{Name: rules.EntityName{Kind: rules.ClientEntity, Name: "gone\x00"}, Version: live.Version{Count: uint64(n + 1), Node: "owner"}})
	s := live.NewStore("owner")
	if _, _, err := s.Merge(entries); err != nil {
		t.Fatal(err)
	}
	return s
}

func givingRules(t testing.TB, s RulesGiver) *pair {
	cfg := serverConfig("owner", holding(testPartitions))
	cfg.Rules = s
	return newPairWith(t, cfg)
}

func (p *pair) pull(t testing.TB, have *live.Store) (n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	entries, digest, err := p.pool.Rules(ctx, ownerMember, have)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := have.Merge(entries); err != nil {
		t.Fatal(err)
	}
	if !have.Includes(digest) {
		t.Error("the digest of what came is not included")
	}
	return len(entries)
}

// The asker gets all it lacks, over several messages; after one more change only
// that; and nothing if nothing changed.
func TestRulesGiveWhatTheAskerLacks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		giver, asker := written(t, 900), live.NewStore("asker")
		p := givingRules(t, giver)
		defer p.stop()
		if n := p.pull(t, asker); n != 901 || asker.Summary() != giver.Summary() {
			t.Errorf("%d came; %+v, %+v", n, asker.Summary(), giver.Summary())
		}
		if n := p.pull(t, asker); n != 0 {
			t.Errorf("%d came of equal rules", n)
		}
		name := rules.EntityName{Kind: rules.TierEntity, Name: "t5"}
		body := []byte(`{"rules":[{"name":"all","algorithm":"fixed_window","limit":9,"window":"60s"}]}`)
		if _, _, err := giver.Put(name, body, live.Precondition{}); err != nil {
			t.Fatal(err)
		}
		if n := p.pull(t, asker); n != 1 || asker.Summary() != giver.Summary() {
			t.Errorf("%d came of one change", n)
		}
		for _, s := range []*live.Store{asker, giver} { // both write: the digests tell nothing
			if _, _, err := s.Put(name, body, live.Precondition{}); err != nil {
				t.Fatal(err)
			}
		}
		if n := p.pull(t, asker); n != 1 {
			t.Errorf("%d came when both had written", n)
		}
	})
}

func TestRulesOfWhoHasNoneAndOfWhoIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := givingRules(t, nil)
		defer p.stop()
		ask := func(m membership.Member) (took time.Duration, err error) {
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			defer cancel()
			start := time.Now()
			_, _, err = p.pool.Rules(ctx, m, live.NewStore("asker"))
			return time.Since(start), err
		}
		if _, err := ask(ownerMember); status.Code(err) != codes.Unimplemented {
			t.Errorf("of a node that gives none: %v", err)
		}
		if took, err := ask(membership.Member{ID: "gone", Boot: 1, Peer: "gone:1"}); err == nil || took != 3*time.Second {
			t.Errorf("of a node that is gone: %v after %v", err, took)
		}
		earlier := ownerMember
		earlier.Boot = 0
		if took, err := ask(earlier); err == nil || took > time.Millisecond {
			t.Errorf("of a run that is over: %v after %v", err, took)
		}
	})
}

func TestBadRulesMessagesAreRefused(t *testing.T) {
	kind, name, node := []byte("tier"), []byte("free"), []byte("a")
	one := func() *peerpb.RulesAsked {
		return &peerpb.RulesAsked{Kinds: [][]byte{kind}, Names: [][]byte{name}, Counts: []uint64{1}, Nodes: [][]byte{node}, Sums: []uint64{7}}
	}
	if stamps, err := readStamps(nil, one()); err != nil || len(stamps) != 1 || stamps[0].Sum != 7 {
		t.Fatal(stamps, err)
	}
	for what, damage := range map[string]func(*peerpb.RulesAsked){
		"kinds":  func(m *peerpb.RulesAsked) { m.Kinds = nil },
		"names":  func(m *peerpb.RulesAsked) { m.Names = append(m.Names, name) },
		"counts": func(m *peerpb.RulesAsked) { m.Counts = nil },
		"nodes":  func(m *peerpb.RulesAsked) { m.Nodes = nil },
		"sums":   func(m *peerpb.RulesAsked) { m.Sums = nil },
		"kind":   func(m *peerpb.RulesAsked) { m.Kinds[0] = []byte("T") },
		"name":   func(m *peerpb.RulesAsked) { m.Names[0] = nil },
	} {
		m := one()
		damage(m)
		if _, err := readStamps(nil, m); err == nil {
			t.Errorf("%s: accepted", what)
		}
	}
	if _, err := readStamps(make([]live.Stamp, live.MaxEntries), one()); err == nil {
		t.Error("more stamps than a store has entries were accepted")
	}
	entry := func() *peerpb.RulesEntry {
		return &peerpb.RulesEntry{Kind: kind, Name: name, Count: 1, Node: node, Body: []byte("{}")}
	}
	full := received{bytes: live.MaxBytes}
	if err := full.add(&peerpb.RulesGiven{Entries: []*peerpb.RulesEntry{entry()}}); err == nil {
		t.Error("more bytes than a store has were accepted")
	}
	many := received{entries: make([]live.Entry, live.MaxEntries)}
	if err := many.add(&peerpb.RulesGiven{Entries: []*peerpb.RulesEntry{entry()}}); err == nil {
		t.Error("more entries than a store has were accepted")
	}
	bad := entry()
	bad.Node = nil
	if err := new(received).add(&peerpb.RulesGiven{Entries: []*peerpb.RulesEntry{bad}}); err == nil {
		t.Error("an entry of nobody was accepted")
	}
}

// A stranger's bad stamps end the stream with the reason, which is logged.
func TestBadStampsEndTheStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log journal
		cfg := serverConfig("owner", holding(testPartitions))
		cfg.Rules, cfg.Logger = written(t, 3), log.logger()
		p := newPairWith(t, cfg)
		defer p.stop()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, _, err := p.pool.Rules(ctx, ownerMember, liar{})
		if status.Code(err) != codes.InvalidArgument || !strings.Contains(log.take(), "refused a peer's stream") {
			t.Errorf("%v", err)
		}
	})
}

// liar has stamps that no store has.
type liar struct{}

func (liar) Summary() live.Summary { return live.Summary{Digest: 12345} }
func (liar) Digest() []live.Stamp  { return []live.Stamp{{Name: rules.EntityName{Kind: "NONE"}}} }

// No message is larger than the other takes, the largest entity included.
func TestRulesMessagesFit(t *testing.T) {
	entry := func(size int) live.Entry {
		return live.Entry{Name: rules.EntityName{Kind: rules.ClientEntity, Name: strings.Repeat("n", 512)}, Version: live.Version{Count: 1, Node: strings.Repeat("m", 128)}, Body: bytes.Repeat([]byte(" "), size)}
	}
	var entries []live.Entry
	for _, size := range []int{10, rulesBatch - 100, 10, live.MaxBody, 10, 10, rulesBatch / 2, rulesBatch / 2} {
		entries = append(entries, entry(size))
	}
	var got received
	err := sendEntries(entries, 7, func(m *peerpb.RulesGiven) error {
		if n := proto.Size(m); n > maxRulesGiven {
			t.Errorf("a message of %d bytes; the asker takes %d", n, maxRulesGiven)
		}
		return got.add(m)
	})
	if err != nil || len(got.entries) != len(entries) {
		t.Fatalf("%d of %d, %v", len(got.entries), len(entries), err)
	}
	for i, e := range entries {
		if got.entries[i].Stamp() != e.Stamp() {
			t.Errorf("entry %d differs", i)
		}
	}
	messages := 0
	if err := sendEntries(nil, 7, func(m *peerpb.RulesGiven) error { messages++; return nil }); err != nil || messages != 1 {
		t.Errorf("%d messages for nothing, want the one with the digest", messages)
	}
}

func FuzzRulesMessages(f *testing.F) {
	asked, _ := proto.Marshal(&peerpb.RulesAsked{Kinds: [][]byte{[]byte("tier")}, Names: [][]byte{[]byte("free")}, Counts: []uint64{1}, Nodes: [][]byte{[]byte("a")}, Sums: []uint64{7}})
	given, _ := proto.Marshal(&peerpb.RulesGiven{Entries: []*peerpb.RulesEntry{{Kind: []byte("tier"), Name: []byte("x"), Count: 1, Node: []byte("a"), Body: []byte("{}")}}})
	f.Add(asked)
	f.Add(given)
	f.Fuzz(func(t *testing.T, b []byte) {
		var a peerpb.RulesAsked
		if proto.Unmarshal(b, &a) == nil {
			if stamps, err := readStamps(nil, &a); err == nil {
				var again []live.Stamp
				err := sendStamps(stamps, func(m *peerpb.RulesAsked) (err error) { again, err = readStamps(again, m); return err })
				if err != nil || len(again) != len(stamps) {
					t.Fatalf("%d stamps became %d: %v", len(stamps), len(again), err)
				}
			}
		}
		var g peerpb.RulesGiven
		var r received
		if proto.Unmarshal(b, &g) == nil && r.add(&g) == nil {
			if _, _, err := live.NewStore("a").Merge(r.entries); err != nil {
				t.Fatalf("received, and not merged: %v", err)
			}
		}
	})
}
