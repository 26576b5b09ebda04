package parcel

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/ringlimit/ringlimit/forward/peerrpc/peerpb"
	"github.com/ringlimit/ringlimit/limit"
	"github.com/ringlimit/ringlimit/owner"
	"github.com/ringlimit/ringlimit/owner/transfer"
)

const (
	start      = int64(1_700_000_007_000_000_000)
	partitions = 16
	seed       = owner.Seed(7)
)

func partitionOf(hash uint64) int { return int(hash % partitions) }

// stranger knows no rule but those of its stream.
func stranger() UnpackConfig {
	return UnpackConfig{Partitions: partitions, Seed: seed, Partition: partitionOf}
}

// fataler is a *testing.T, *testing.B, *testing.F or *rapid.T.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

func mustRule(t fataler, s limit.Spec) *limit.Rule {
	t.Helper()
	r, err := limit.NewRule(s)
	if err != nil {
		t.Fatalf("%+v: %v", s, err)
	}
	return r
}

func bucket(t fataler, n int64) *limit.Rule {
	t.Helper()
	return mustRule(t, limit.Spec{Algorithm: limit.TokenBucket, Limit: n, Window: time.Minute})
}

// name is a counter's name that belongs into the partition.
func name(partition int, stem string) []byte {
	for i := 0; ; i++ {
		n := fmt.Appendf(nil, "%s#%d", stem, i)
		if partitionOf(seed.ID(n).Hi) == partition {
			return n
		}
	}
}

// counter is one that was used up a second ago.
func counter(partition int, stem string, rule *limit.Rule) owner.Entry {
	state, _ := rule.Take(limit.State{}, start, rule.Capacity())
	n := name(partition, stem)
	return owner.Entry{ID: seed.ID(n), Name: n, Rule: rule, State: rule.Ship(state, start+int64(time.Second))}
}

// replicate brings one counter to partition 3.
func replicate(rule *limit.Rule) *transfer.Replicate {
	return &transfer.Replicate{Copies: []transfer.Copy{{
		Partition: 3, Stream: 2, Number: 5,
		Chunk: transfer.Chunk{Entries: []owner.Entry{counter(3, "alice", rule)}},
	}}}
}

func mustPack(t fataler, p *Packer, m transfer.Message) *peerpb.Letter {
	t.Helper()
	l, err := p.Pack(m)
	if err != nil {
		t.Fatalf("pack %+v: %v", m, err)
	}
	return l
}

// travel is a letter's way over a stream.
func travel(t fataler, l *peerpb.Letter) *peerpb.Letter {
	t.Helper()
	wire, err := proto.Marshal(l)
	if err != nil {
		t.Fatalf("marshal: %v", err)
	}
	if len(wire) > MaxLetter {
		t.Fatalf("a letter of %d bytes; MaxLetter is %d", len(wire), MaxLetter)
	}
	arrived := &peerpb.Letter{}
	if err := proto.Unmarshal(wire, arrived); err != nil {
		t.Fatalf("unmarshal: %v", err)
	}
	return arrived
}

func mustUnpack(t fataler, u *Unpacker, l *peerpb.Letter) transfer.Message {
	t.Helper()
	m, err := u.Unpack(l)
	if err != nil {
		t.Fatalf("unpack: %v", err)
	}
	return m
}

// entries are those of all chunks of a message.
func entries(m transfer.Message) (all []*owner.Entry) {
	add := func(k *transfer.Chunk) {
		for i := range k.Entries {
			all = append(all, &k.Entries[i])
		}
	}
	switch m := m.(type) {
	case *transfer.Answers:
		for i := range m.Parts {
			add(&m.Parts[i].Chunk)
		}
	case *transfer.Replicate:
		for i := range m.Copies {
			add(&m.Copies[i].Chunk)
		}
	}
	return all
}

// same fails the test unless got says what want says. It takes the rules out of
// both: two nodes have their own of each.
func same(t fataler, got, want transfer.Message) {
	t.Helper()
	a, b := entries(got), entries(want)
	if len(a) != len(b) {
		t.Fatalf("%d counters arrived of %d", len(a), len(b))
	}
	for i := range a {
		if a[i].Rule.Spec != b[i].Rule.Spec {
			t.Fatalf("counter %q is under %+v, was under %+v", b[i].Name, a[i].Rule.Spec, b[i].Rule.Spec)
		}
		a[i].Rule, b[i].Rule = nil, nil
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("arrived: %+v\n   sent: %+v", got, want)
	}
}

func testRules(t testing.TB) []*limit.Rule {
	t.Helper()
	specs := []limit.Spec{
		{Algorithm: limit.TokenBucket, Limit: 100, Window: time.Minute, Burst: 20},
		{Algorithm: limit.TokenBucket, Limit: limit.MaxLimit, Window: limit.MaxWindow, Durability: limit.DurabilitySync},
		{Algorithm: limit.LeakyBucket, Limit: 10, Window: time.Second, Burst: 5},
		{Algorithm: limit.FixedWindow, Limit: 1000, Window: time.Hour},
		{Algorithm: limit.FixedWindow, Limit: 7, Calendar: limit.CalendarMonth, Timezone: "Europe/Berlin"},
		{Algorithm: limit.SlidingWindowLog, Limit: 50, Window: time.Minute},
		{Algorithm: limit.SlidingWindowCounter, Limit: 100, Window: time.Minute, Durability: limit.DurabilityNone},
	}
	rules := make([]*limit.Rule, len(specs))
	for i, s := range specs {
		rules[i] = mustRule(t, s)
	}
	return rules
}
