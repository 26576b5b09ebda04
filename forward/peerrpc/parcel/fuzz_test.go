package parcel

import (
	"runtime"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/ringlimit/ringlimit/forward/peerrpc/peerpb"
	"github.com/ringlimit/ringlimit/limit"
	"github.com/ringlimit/ringlimit/membership"
	"github.com/ringlimit/ringlimit/owner"
	"github.com/ringlimit/ringlimit/owner/transfer"
)

// What an Unpacker may allocate for a letter: so many times its length, and for
// each rule in it what it takes to read a specification and a time zone.
const (
	perByte   = 32
	perLetter = 16 << 10
	perRule   = 64 << 10
)

// FuzzUnpack: whatever comes off the wire is refused or can be sent on as it is,
// and costs no more memory than its length warrants.
func FuzzUnpack(f *testing.F) {
	for _, m := range seeds(f) {
		wire, err := proto.Marshal(mustPack(f, NewPacker(), m))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(wire)
	}
	f.Fuzz(func(t *testing.T, wire []byte) {
		l := &peerpb.Letter{}
		if proto.Unmarshal(wire, l) != nil {
			return
		}
		u := NewUnpacker(stranger())
		var m transfer.Message
		var err error
		if n := allocated(func() { m, err = u.Unpack(l) }); n > uint64(perLetter+perByte*len(wire)+perRule*len(l.Rules)) {
			t.Fatalf("%d bytes allocated for %d", n, len(wire))
		}
		if m == nil || err != nil {
			return
		}
		for _, e := range entries(m) {
			if e.Rule == nil {
				return // of a later version; it cannot be sent on
			}
		}
		again := mustUnpack(t, NewUnpacker(stranger()), travel(t, mustPack(t, NewPacker(), m)))
		same(t, again, m)
	})
}

func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// seeds has every kind of message, and counters of every algorithm.
func seeds(t testing.TB) []transfer.Message {
	records := []transfer.Record{
		{ID: "a", Boot: 1, Seq: 300, State: membership.Serving, Owner: true},
		{ID: "b", Boot: 2, State: transfer.Dead, Age: 5},
	}
	absent := []membership.NodeID{"b"}
	releases := []transfer.Release{{Partition: 3, Boot: 2, Number: 7}, {Partition: 4}}
	var chunk transfer.Chunk
	for _, rule := range testRules(t) {
		chunk.Entries = append(chunk.Entries, counter(3, "alice", rule))
	}
	chunk.Next, chunk.More, chunk.Counters, chunk.Names = 5, true, 6, 7
	return []transfer.Message{
		&transfer.Views{Records: records, Absent: absent},
		&transfer.Acquire{Records: records, Absent: absent, Asks: []transfer.Ask{{Partition: 3, Attempt: 1, Pull: true, Release: 2, From: 4}}},
		&transfer.Answers{Records: records, Parts: []transfer.Part{
			{Partition: 4, Attempt: 1}, {Partition: 3, Attempt: 2, Status: transfer.Held, Release: 3, From: 4, Pulled: true, Chunk: chunk},
		}},
		&transfer.Ack{Releases: releases}, &transfer.Nack{Releases: releases},
		&transfer.Nudge{Records: records, Releases: releases, Copies: []int{1, 2}},
		&transfer.Replicate{Copies: []transfer.Copy{{Partition: 3, Stream: 1, Number: 2, Chunk: chunk}, {Partition: 4, Number: 1}}},
		&transfer.Replicated{Receipts: []transfer.Receipt{{Partition: 3, Stream: 1, Number: 2, Refused: true}, {}}},
		&transfer.Drop{Partitions: []int{3}},
		&transfer.Beat{At: start, Sum: 1<<63 + 1}, &transfer.BeatBack{At: start, Records: records},
	}
}

// A letter of which every byte asks for as much as it can.
func TestUnpackAllocatesInProportion(t *testing.T) {
	const n = 10_000
	rule := bucket(t, 1)
	ids := make([]uint64, n)
	zeros := make([]byte, 2*n*minCounter)
	u := NewUnpacker(UnpackConfig{Partitions: partitions, Seed: seed, Partition: func(uint64) int { return 0 }})
	mustUnpack(t, u, mustPack(t, NewPacker(), replicate0(rule)))
	smallest := appendCounters(nil, []owner.Entry{{Name: []byte("x"), Rule: rule}})
	for i := range n {
		copy(zeros[i*len(smallest):], smallest)
	}
	for what, l := range map[string]*peerpb.Letter{
		"records":  {Message: &peerpb.Letter_Views{Views: &peerpb.Views{Records: &peerpb.Records{Boots: ids, Nodes: names(n), States: ones(n)}}}},
		"absent":   {Message: &peerpb.Letter_Views{Views: &peerpb.Views{Absent: names(n)}}},
		"asks":     {Message: &peerpb.Letter_Acquire{Acquire: &peerpb.Acquire{Attempts: ids}}},
		"parts":    {Message: &peerpb.Letter_Answers{Answers: &peerpb.Answers{Attempts: ids}}},
		"releases": {Message: &peerpb.Letter_Ack{Ack: &peerpb.Releases{Boots: ids}}},
		"copies":   {Message: &peerpb.Letter_Replicate{Replicate: &peerpb.Replicate{Numbers: ids}}},
		"receipts": {Message: &peerpb.Letter_Replicated{Replicated: &peerpb.Replicated{Numbers: ids}}},
		"drops":    {Message: &peerpb.Letter_Drop{Drop: &peerpb.Drop{Partitions: make([]uint32, n)}}},
		"counters": {Message: &peerpb.Letter_Replicate{Replicate: &peerpb.Replicate{Numbers: ids[:1], Chunks: &peerpb.Chunks{
			Lengths: []uint32{n}, Counters: zeros[:n*len(smallest)],
		}}}},
	} {
		size := proto.Size(l)
		var m transfer.Message
		var err error
		got := allocated(func() { m, err = u.Unpack(l) })
		if m == nil || err != nil {
			t.Fatalf("%s: %v, %v", what, m, err)
		}
		t.Logf("%s: %.1f bytes for each", what, float64(got)/float64(size))
		if got > uint64(perByte*size) {
			t.Errorf("%s: %d bytes allocated for %d", what, got, size)
		}
	}
}

func replicate0(rule *limit.Rule) *transfer.Replicate {
	m := replicate(rule)
	m.Copies[0].Partition = 0
	return m
}

func names(n int) [][]byte { return slices.Repeat([][]byte{[]byte("n")}, n) }
func ones(n int) []uint32  { return slices.Repeat([]uint32{1}, n) }
