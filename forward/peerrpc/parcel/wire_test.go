package parcel

import (
	"encoding/hex"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/ringlimit/ringlimit/forward/peerrpc/peerpb"
	"github.com/ringlimit/ringlimit/membership"
	"github.com/ringlimit/ringlimit/owner"
	"github.com/ringlimit/ringlimit/owner/transfer"
)

// A change of these bytes is a change of the protocol: nodes that run now send
// and expect them.
func TestGoldenLetters(t *testing.T) {
	rule := bucket(t, 100)
	records := []transfer.Record{
		{ID: "a", Boot: 1, Seq: 300, State: membership.Serving, Owner: true},
		{ID: "b", Boot: 2, State: transfer.Dead, Age: 5},
	}
	for _, c := range []struct {
		what string
		m    transfer.Message
		wire string
	}{
		{"a beat", &transfer.Beat{At: 300}, "520308ac02"},
		{"an acquire", &transfer.Acquire{
			Records: records, Absent: []membership.NodeID{"b"},
			Asks: []transfer.Ask{{Partition: 3, Attempt: 1}, {Partition: 4, Attempt: 2, Pull: true, Release: 7, From: 8}},
		}, "125e0a290a01610a01621210010000000000000002000000000000001a03ac0200220202042a02010032020005120162" +
			"1a0203042210010000000000000002000000000000002a020001320200073a1000000000000000000800000000000000"},
		{"an answer", &transfer.Answers{Parts: []transfer.Part{
			{Partition: 3, Attempt: 1, Status: transfer.Denied},
			{Partition: 4, Attempt: 2, Status: transfer.Held, Release: 7, Pulled: true, From: 8, Chunk: transfer.Chunk{
				Entries: []owner.Entry{counter(4, "bob", rule)}, Next: 9, More: true, Counters: 10, Names: 60,
			}},
		}}, "720863f5adfd825061e07a3d7b22616c676f726974686d223a22746f6b656e5f6275636b6574222c226c696d6974223a" +
			"3130302c2277696e646f77223a36303030303030303030307d1a720a00120203041a1001000000000000000200000000" +
			"000000220200022a0200073210000000000000000008000000000000003a020001423a0a1606626f6223313163f5adfd" +
			"825061e00180b8e4cab703120200011a1000000000000000000900000000000000220200012a02000a3202003c"},
		{"a copy", replicate(rule), "720863f5adfd825061e07a3d7b22616c676f726974686d223a22746f6b656e5f6275636b6574222c226c696d6974223a" +
			"3130302c2277696e646f77223a36303030303030303030307d3a2e0a01031201021a080500000000000000221c0a1707" +
			"616c696365233663f5adfd825061e00180b8e4cab703120101"},
		{"an acknowledgement", &transfer.Ack{Releases: []transfer.Release{{Partition: 3, Boot: 2, Number: 7}}}, "22100a0103120802000000000000001a0107"},
	} {
		l := mustPack(t, NewPacker(), c.m)
		wire, err := proto.MarshalOptions{Deterministic: true}.Marshal(l)
		if err != nil {
			t.Fatal(err)
		}
		if got := hex.EncodeToString(wire); got != c.wire {
			t.Errorf("%s is\n%s, want\n%s", c.what, got, c.wire)
		}
		golden, _ := hex.DecodeString(c.wire)
		arrived := &peerpb.Letter{}
		if err := proto.Unmarshal(golden, arrived); err != nil {
			t.Fatal(err)
		}
		same(t, mustUnpack(t, NewUnpacker(stranger()), arrived), c.m)
	}
}

// What a later version says is not understood, and no error. The rules that it
// names are kept, for the stream will not name them again.
func TestUnknownKindIsSkipped(t *testing.T) {
	rule := bucket(t, 100)
	p, u := NewPacker(), NewUnpacker(stranger())
	l := mustPack(t, p, replicate(rule))
	l.Message = nil
	wire, err := proto.Marshal(l)
	if err != nil {
		t.Fatal(err)
	}
	wire = protowire.AppendTag(wire, 13, protowire.BytesType)
	wire = protowire.AppendBytes(wire, []byte("a kind of a later version"))
	later := &peerpb.Letter{}
	if err := proto.Unmarshal(wire, later); err != nil {
		t.Fatal(err)
	}
	if m, err := u.Unpack(later); m != nil || err != nil {
		t.Fatalf("%v, %v; want nothing", m, err)
	}
	want := replicate(rule)
	same(t, mustUnpack(t, u, travel(t, mustPack(t, p, want))), want)
}

// Fields that a later version adds are ignored, wherever they are.
func TestUnknownFieldsAreIgnored(t *testing.T) {
	want := &transfer.Answers{
		Records: []transfer.Record{{ID: "a", Boot: 1, State: membership.Serving}},
		Parts:   []transfer.Part{{Partition: 4, Status: transfer.Held, Chunk: transfer.Chunk{Entries: []owner.Entry{counter(4, "bob", bucket(t, 9))}}}},
	}
	l := mustPack(t, NewPacker(), want)
	unknown := protowire.AppendTag(nil, 500, protowire.VarintType)
	unknown = protowire.AppendVarint(unknown, 1)
	for _, m := range []proto.Message{l, l.GetAnswers(), l.GetAnswers().Records, l.GetAnswers().Chunks} {
		m.ProtoReflect().SetUnknown(unknown)
	}
	same(t, mustUnpack(t, NewUnpacker(stranger()), travel(t, l)), want)
}

// Words that only a later version knows cost their own record or part, no other.
func TestUnknownStatesAreLeftOut(t *testing.T) {
	l := mustPack(t, NewPacker(), &transfer.Answers{
		Records: []transfer.Record{{ID: "a", State: transfer.Dead + 1}, {ID: "b", State: membership.Joining}, {ID: "c"}},
		Parts: []transfer.Part{
			{Partition: 4, Status: transfer.Busy + 1, Chunk: transfer.Chunk{Entries: []owner.Entry{counter(4, "bob", bucket(t, 9))}}},
			{Partition: 5, Status: transfer.Busy, Attempt: 8},
		},
	})
	same(t, mustUnpack(t, NewUnpacker(stranger()), travel(t, l)), &transfer.Answers{
		Records: []transfer.Record{{ID: "b", State: membership.Joining}},
		Parts:   []transfer.Part{{Partition: 5, Status: transfer.Busy, Attempt: 8}},
	})
}

// A death in the future is one of now.
func TestNoNegativeAge(t *testing.T) {
	l := mustPack(t, NewPacker(), &transfer.Views{Records: []transfer.Record{{ID: "a", State: transfer.Dead, Age: -5}}})
	same(t, mustUnpack(t, NewUnpacker(stranger()), travel(t, l)),
		&transfer.Views{Records: []transfer.Record{{ID: "a", State: transfer.Dead}}})
}

func TestCountsThatDoNotFitAreBounded(t *testing.T) {
	for n, want := range map[int]uint32{-1: 0, 0: 0, 1<<32 - 1: 1<<32 - 1, 1 << 32: 1<<32 - 1} {
		if got := bounded(n); got != want {
			t.Errorf("%d became %d, want %d", n, got, want)
		}
	}
}
