package parcel

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/ringlimit/ringlimit/forward/peerrpc/peerpb"
	"github.com/ringlimit/ringlimit/limit"
	"github.com/ringlimit/ringlimit/owner"
	"github.com/ringlimit/ringlimit/owner/transfer"
)

// load is a message with many counters and what its way costs.
type load struct {
	what     string
	counters int
	m        transfer.Message
}

// loads are a part of a hand-over, and what synchronous replication sends.
func loads(t fataler) []load {
	rules := []*limit.Rule{bucket(t, 100), bucket(t, 1000)}
	some := func(partition, n int) (entries []owner.Entry) {
		for i := range n {
			entries = append(entries, counter(partition, fmt.Sprintf("tenant-7/customer-%d", i), rules[i%len(rules)]))
		}
		return entries
	}
	part := transfer.Part{Partition: 3, Attempt: 1, Status: transfer.Held, Release: 1, Pulled: true, Chunk: transfer.Chunk{Entries: some(3, 512), More: true}}
	var copies []transfer.Copy
	for i := range 64 {
		p := i % partitions
		copies = append(copies, transfer.Copy{Partition: p, Stream: 1, Number: uint64(i), Chunk: transfer.Chunk{Entries: some(p, 1)}})
	}
	return []load{
		{"chunk of 512", 512, &transfer.Answers{Parts: []transfer.Part{part}}},
		{"64 copies", 64, &transfer.Replicate{Copies: copies}},
	}
}

// nodeSized makes the heap as large as that of a node with some counters, so that
// the collector runs as often as there.
func nodeSized(b *testing.B) {
	heap := make([]byte, 64<<20)
	b.Cleanup(func() { runtime.KeepAlive(heap) })
}

// BenchmarkPack measures a message's way into bytes, per counter. The ratios are
// to a copy of these bytes, and to a protobuf message for each counter.
func BenchmarkPack(b *testing.B) {
	for _, l := range loads(b) {
		b.Run(l.what, func(b *testing.B) {
			nodeSized(b)
			p := NewPacker()
			mustPack(b, p, l.m)
			var wire []byte
			pack := func() {
				wire, _ = proto.MarshalOptions{}.MarshalAppend(wire[:0], mustPack(b, p, l.m))
			}
			b.ReportAllocs()
			for b.Loop() {
				pack()
			}
			plain, other := simple(l.m), []byte(nil)
			report(b, l.counters, wire, func() {
				other, _ = proto.MarshalOptions{}.MarshalAppend(other[:0], plain)
			})
		})
	}
}

// BenchmarkUnpack measures the way back.
func BenchmarkUnpack(b *testing.B) {
	for _, l := range loads(b) {
		b.Run(l.what, func(b *testing.B) {
			nodeSized(b)
			p, u := NewPacker(), NewUnpacker(stranger())
			mustUnpack(b, u, mustPack(b, p, l.m))
			wire, err := proto.Marshal(mustPack(b, p, l.m))
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				arrived := &peerpb.Letter{}
				if err := proto.Unmarshal(wire, arrived); err != nil {
					b.Fatal(err)
				}
				mustUnpack(b, u, arrived)
			}
			other, err := proto.Marshal(simple(l.m))
			if err != nil {
				b.Fatal(err)
			}
			report(b, l.counters, wire, func() {
				if err := proto.Unmarshal(other, &descriptorpb.MessageOptions{}); err != nil {
					b.Fatal(err)
				}
			})
		})
	}
}

// simple is the counters of m as a list of messages that have two byte fields
// and a number each.
func simple(m transfer.Message) proto.Message {
	list := &descriptorpb.MessageOptions{}
	for _, e := range entries(m) {
		list.UninterpretedOption = append(list.UninterpretedOption, &descriptorpb.UninterpretedOption{
			IdentifierValue:  proto.String(string(e.Name)),
			PositiveIntValue: proto.Uint64(uint64(e.Rule.ID())),
			StringValue:      limit.AppendShipped(nil, &e.State),
		})
	}
	return list
}

// report compares the benchmark so far with its peers.
func report(b *testing.B, counters int, wire []byte, protobuf func()) {
	each := float64(b.Elapsed().Nanoseconds()) / float64(b.N) / float64(counters)
	into := make([]byte, len(wire))
	b.ReportMetric(each, "ns/counter")
	b.ReportMetric(float64(len(wire))/float64(counters), "bytes/counter")
	b.ReportMetric(each/(timed(func() { copy(into, wire) })/float64(counters)), "copy/ratio")
	b.ReportMetric(each/(timed(protobuf)/float64(counters)), "protobuf/ratio")
}

// timed is how many nanoseconds f takes.
func timed(f func()) float64 {
	n := 0
	before := time.Now()
	for time.Since(before) < 50*time.Millisecond {
		for range 100 {
			f()
		}
		n += 100
	}
	return float64(time.Since(before).Nanoseconds()) / float64(n)
}

// A counter costs no allocation, on neither side.
func TestNoAllocationPerCounter(t *testing.T) {
	for _, l := range loads(t) {
		p, u := NewPacker(), NewUnpacker(stranger())
		mustUnpack(t, u, mustPack(t, p, l.m))
		letter := mustPack(t, p, l.m)
		if n := testing.AllocsPerRun(100, func() { mustPack(t, p, l.m) }); n > 16 {
			t.Errorf("%s: %v allocations to pack it", l.what, n)
		}
		if n := testing.AllocsPerRun(100, func() { mustUnpack(t, u, letter) }); n > 8 {
			t.Errorf("%s: %v allocations to unpack it", l.what, n)
		}
	}
}
