package peerrpc

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
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
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			start := time.Now()
			_, _, err = p.pool.Rules(ctx, m, live.NewStore("asker"))
			return time.Since(start), err
		}
		if _, err := ask(ownerMember); status.Code(err) != codes.Unimplemented {
			t.Errorf("of a node that gives none: %v", err)
		}
		if took, err := ask(membership.Member{ID: "gone", Boot: 1, Peer: "gone:1"}); err != errStalled || took != rulesPause {
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
	var got stamps
	if err := got.add(one()); err != nil || len(got.list) != 1 || got.list[0].Sum != 7 {
		t.Fatal(got.list, err)
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
		if new(stamps).add(m) == nil {
			t.Errorf("%s: accepted", what)
		}
	}
	if (&stamps{list: make([]live.Stamp, live.MaxEntries)}).add(one()) == nil {
		t.Error("more stamps than a store has entries were accepted")
	}
	if (&stamps{bytes: live.MaxBytes}).add(one()) == nil {
		t.Error("more bytes of names than a store has were accepted")
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

// scene is what a member answers, message by message; then it fails.
type scene struct {
	grpc.BidiStreamingClient[peerpb.RulesAsked, peerpb.RulesGiven]
	given []*peerpb.RulesGiven
}

func (s *scene) Send(*peerpb.RulesAsked) error { return nil }

func (s *scene) Recv() (*peerpb.RulesGiven, error) {
	if len(s.given) == 0 {
		return nil, context.DeadlineExceeded
	}
	m := s.given[0]
	s.given = s.given[1:]
	return m, nil
}

// What has come before a member fails is not lost: the next attempt asks for less.
func TestRulesThatStopInTheMiddleAreKept(t *testing.T) {
	giver, asker := written(t, 3000), live.NewStore("asker")
	entries, digest := giver.Newer(nil)
	var member scene
	if err := sendEntries(entries, digest, func(m *peerpb.RulesGiven) error { member.given = append(member.given, m); return nil }); err != nil || len(member.given) < 3 {
		t.Fatal(len(member.given), err)
	}
	member.given = member.given[:2]
	got, _, err := askRules(&member, asker)
	if err != context.DeadlineExceeded || len(got) == 0 {
		t.Fatalf("%d entries, %v", len(got), err)
	}
	if _, _, err := asker.Merge(got); err != nil {
		t.Fatal(err)
	}
	if rest, _ := giver.Newer(asker.Digest()); len(rest) != len(entries)-len(got) {
		t.Errorf("%d came, and %d of %d are still lacking", len(got), len(rest), len(entries))
	}
}

// stuck is a giver that does not come to an answer.
type stuck struct {
	*live.Store
	free chan struct{}
}

func (s stuck) Since(uint64) ([]live.Entry, uint64, bool) {
	<-s.free
	return nil, 0, true
}

func TestRulesOfWhoSaysNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		giver := stuck{free: make(chan struct{})}
		p := givingRules(t, giver)
		defer p.stop()
		defer close(giver.free)
		start := time.Now()
		_, _, err := p.pool.Rules(t.Context(), ownerMember, live.NewStore("asker"))
		if took := time.Since(start); err != errStalled || took != rulesPause {
			t.Errorf("%v after %v", err, took)
		}
	})
}

// A peer that opens a stream and says nothing, or never comes to an end, is sent
// away.
func TestRulesStreamsEnd(t *testing.T) {
	type asking = grpc.BidiStreamingClient[peerpb.RulesAsked, peerpb.RulesGiven]
	for name, say := range map[string]func(asking){
		"nothing": func(asking) {},
		"without end": func(s asking) {
			_ = s.Send(&peerpb.RulesAsked{Digest: 12345})
			for s.Send(&peerpb.RulesAsked{}) == nil {
				time.Sleep(time.Second)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := givingRules(t, written(t, 3))
				defer p.stop()
				p.pull(t, live.NewStore("asker")) // there is a connection
				c := p.pool.conns[ownerMember.ID]
				cc, _ := c.line.look()
				ctx, cancel := context.WithTimeout(hello(t.Context(), c.cfg, ownerMember.ID), 2*rulesTime)
				defer cancel()
				start := time.Now()
				stream, err := peerpb.NewPeerClient(cc).Rules(ctx)
				if err != nil {
					t.Fatal(err)
				}
				say(stream)
				for err == nil {
					_, err = stream.Recv()
				}
				if took := time.Since(start); took > rulesTime+time.Second || !strings.Contains(err.Error(), "were not asked for") {
					t.Errorf("%v after %v", err, took)
				}
			})
		})
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
			var read, again stamps
			if read.add(&a) == nil {
				if err := sendStamps(read.list, again.add); err != nil || !slices.Equal(again.list, read.list) {
					t.Fatalf("%d stamps became %d: %v", len(read.list), len(again.list), err)
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
