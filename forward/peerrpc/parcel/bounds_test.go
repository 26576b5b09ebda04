package parcel

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/ringlimit/ringlimit/forward/peerrpc/peerpb"
	"github.com/ringlimit/ringlimit/limit"
	"github.com/ringlimit/ringlimit/membership"
	"github.com/ringlimit/ringlimit/owner"
	"github.com/ringlimit/ringlimit/owner/transfer"
	"google.golang.org/protobuf/proto"
)

// spoiler damages a letter that would be read otherwise.
type spoiler struct {
	what  string
	m     transfer.Message
	spoil func(*peerpb.Letter)
	want  string // in the error
}

func spoilers(t *testing.T) []spoiler {
	rule := bucket(t, 1)
	records := []transfer.Record{{ID: "a", Boot: 1, Seq: 2, State: membership.Serving, Owner: true, Age: 3}}
	long := bytes.Repeat([]byte("n"), maxNode+1)
	views := &transfer.Views{Records: records}
	acquire := &transfer.Acquire{Absent: []membership.NodeID{"b"}, Asks: []transfer.Ask{{Partition: 3, Attempt: 1, Pull: true, Release: 2, From: 4}}}
	answers := &transfer.Answers{Parts: []transfer.Part{{
		Partition: 3, Attempt: 1, Status: transfer.Held, Release: 2, From: 3, Pulled: true,
		Chunk: transfer.Chunk{Entries: []owner.Entry{counter(3, "a", rule)}, Next: 5, More: true, Counters: 6, Names: 7},
	}}}
	ack := &transfer.Ack{Releases: []transfer.Release{{Partition: 3, Boot: 1, Number: 2}}}
	replicated := &transfer.Replicated{Receipts: []transfer.Receipt{{Partition: 3, Stream: 1, Number: 2, Refused: true}}}
	drop := &transfer.Drop{Partitions: []int{3}}
	nudge := &transfer.Nudge{Copies: []int{3}, Records: records, Releases: ack.Releases}
	back := &transfer.BeatBack{Records: records}
	const (
		columns = "has a column of"
		below   = "is not below 16"
		tooMany = "items; at most"
	)
	two, twoFlags, twoWords := []uint64{1, 1}, []bool{true, true}, []uint32{1, 1}
	return []spoiler{
		{"no name of a node", views, func(l *peerpb.Letter) { l.GetViews().Records.Nodes[0] = nil }, "it must have 1 to 256"},
		{"a long name of a node", views, func(l *peerpb.Letter) { l.GetViews().Records.Nodes[0] = long }, "it must have 1 to 256"},
		{"too many records", views, func(l *peerpb.Letter) { l.GetViews().Records.Boots = make([]uint64, maxMembers+1) }, tooMany},
		{"records without nodes", views, func(l *peerpb.Letter) { l.GetViews().Records.Nodes = nil }, "it must have 1 to 256"},
		{"two nodes of a record", views, func(l *peerpb.Letter) { l.GetViews().Records.Nodes = [][]byte{{1}, {2}} }, columns},
		{"two seqs of a record", views, func(l *peerpb.Letter) { l.GetViews().Records.Seqs = two }, columns},
		{"two states of a record", views, func(l *peerpb.Letter) { l.GetViews().Records.States = twoWords }, columns},
		{"two owners of a record", views, func(l *peerpb.Letter) { l.GetViews().Records.Owners = twoFlags }, columns},
		{"two ages of a record", views, func(l *peerpb.Letter) { l.GetViews().Records.Ages = []int64{1, 1} }, columns},
		{"absent without a name", views, func(l *peerpb.Letter) { l.GetViews().Absent = [][]byte{nil} }, "it must have 1 to 256"},

		{"a bad record in an acquire", acquire, func(l *peerpb.Letter) { l.GetAcquire().Records = &peerpb.Records{Seqs: two} }, columns},
		{"a long name of an absent node", acquire, func(l *peerpb.Letter) { l.GetAcquire().Absent[0] = long }, "it must have 1 to 256"},
		{"too many absent", acquire, func(l *peerpb.Letter) { l.GetAcquire().Absent = make([][]byte, maxMembers+1) }, tooMany},
		{"an ask for partition 16", acquire, func(l *peerpb.Letter) { l.GetAcquire().Partitions[0] = partitions }, below},
		{"too many asks", acquire, func(l *peerpb.Letter) { l.GetAcquire().Attempts = make([]uint64, maxItems+1) }, tooMany},
		{"asks without attempts", acquire, func(l *peerpb.Letter) { l.GetAcquire().Attempts = nil }, columns},
		{"two partitions of an ask", acquire, func(l *peerpb.Letter) { l.GetAcquire().Partitions = twoWords }, columns},
		{"two pulls of an ask", acquire, func(l *peerpb.Letter) { l.GetAcquire().Pulls = twoFlags }, columns},
		{"two releases of an ask", acquire, func(l *peerpb.Letter) { l.GetAcquire().Releases = two }, columns},
		{"two froms of an ask", acquire, func(l *peerpb.Letter) { l.GetAcquire().Froms = two }, columns},

		{"a bad record in answers", answers, func(l *peerpb.Letter) { l.GetAnswers().Records = &peerpb.Records{Seqs: two} }, columns},
		{"a part of partition 16", answers, func(l *peerpb.Letter) { l.GetAnswers().Partitions[0] = partitions }, below},
		{"too many parts", answers, func(l *peerpb.Letter) { l.GetAnswers().Attempts = make([]uint64, maxItems+1) }, tooMany},
		{"two partitions of a part", answers, func(l *peerpb.Letter) { l.GetAnswers().Partitions = twoWords }, columns},
		{"two statuses of a part", answers, func(l *peerpb.Letter) { l.GetAnswers().Statuses = twoWords }, columns},
		{"two releases of a part", answers, func(l *peerpb.Letter) { l.GetAnswers().Releases = two }, columns},
		{"two froms of a part", answers, func(l *peerpb.Letter) { l.GetAnswers().Froms = two }, columns},
		{"two pulls of a part", answers, func(l *peerpb.Letter) { l.GetAnswers().Pulled = twoFlags }, columns},
		{"two lengths of a chunk", answers, func(l *peerpb.Letter) { l.GetAnswers().Chunks.Lengths = twoWords }, columns},
		{"two nexts of a chunk", answers, func(l *peerpb.Letter) { l.GetAnswers().Chunks.Nexts = two }, columns},
		{"two mores of a chunk", answers, func(l *peerpb.Letter) { l.GetAnswers().Chunks.Mores = twoFlags }, columns},
		{"two totals of a chunk", answers, func(l *peerpb.Letter) { l.GetAnswers().Chunks.TotalCounters = twoWords }, columns},
		{"two name totals of a chunk", answers, func(l *peerpb.Letter) { l.GetAnswers().Chunks.TotalNames = twoWords }, columns},
		{"counters of another partition", answers, func(l *peerpb.Letter) { l.GetAnswers().Partitions[0] = 4 }, "belongs to another partition"},
		{"counters left over in answers", answers, func(l *peerpb.Letter) { l.GetAnswers().Chunks.Lengths = nil }, "are left over"},

		{"a release of partition 16", ack, func(l *peerpb.Letter) { l.GetAck().Partitions[0] = partitions }, below},
		{"too many releases", ack, func(l *peerpb.Letter) { l.GetAck().Boots = make([]uint64, maxItems+1) }, tooMany},
		{"two partitions of a release", ack, func(l *peerpb.Letter) { l.GetAck().Partitions = twoWords }, columns},
		{"one number of two releases", &transfer.Ack{Releases: slices.Repeat(ack.Releases, 2)}, func(l *peerpb.Letter) { l.GetAck().Numbers = two[:1] }, columns},
		{"two numbers of a release", ack, func(l *peerpb.Letter) { l.GetAck().Numbers = two }, columns},
		{"a nack of partition 16", &transfer.Nack{Releases: ack.Releases}, func(l *peerpb.Letter) { l.GetNack().Partitions[0] = partitions }, below},
		{"a bad record in a nudge", nudge, func(l *peerpb.Letter) { l.GetNudge().Records.Seqs = two }, columns},
		{"a nudge about partition 16", nudge, func(l *peerpb.Letter) { l.GetNudge().Releases.Partitions[0] = partitions }, below},
		{"a copy of partition 16 in a nudge", nudge, func(l *peerpb.Letter) { l.GetNudge().Copies[0] = partitions }, below},
		{"a bad record in a beat", back, func(l *peerpb.Letter) { l.GetBeatBack().Records.Seqs = two }, columns},

		{"a copy of partition 16", replicate(rule), func(l *peerpb.Letter) { l.GetReplicate().Partitions[0] = partitions }, below},
		{"too many copies", replicate(rule), func(l *peerpb.Letter) { l.GetReplicate().Numbers = make([]uint64, maxItems+1) }, tooMany},
		{"two partitions of a copy", replicate(rule), func(l *peerpb.Letter) { l.GetReplicate().Partitions = twoWords }, columns},
		{"two streams of a copy", replicate(rule), func(l *peerpb.Letter) { l.GetReplicate().Streams = two }, columns},
		{"a receipt for partition 16", replicated, func(l *peerpb.Letter) { l.GetReplicated().Partitions[0] = partitions }, below},
		{"too many receipts", replicated, func(l *peerpb.Letter) { l.GetReplicated().Numbers = make([]uint64, maxItems+1) }, tooMany},
		{"two partitions of a receipt", replicated, func(l *peerpb.Letter) { l.GetReplicated().Partitions = twoWords }, columns},
		{"two streams of a receipt", replicated, func(l *peerpb.Letter) { l.GetReplicated().Streams = two }, columns},
		{"two refusals of a receipt", replicated, func(l *peerpb.Letter) { l.GetReplicated().Refused = twoFlags }, columns},
		{"a drop of partition 16", drop, func(l *peerpb.Letter) { l.GetDrop().Partitions[0] = partitions }, below},
		{"too many drops", drop, func(l *peerpb.Letter) { l.GetDrop().Partitions = make([]uint32, maxItems+1) }, tooMany},

		{"a rule without an id", replicate(rule), func(l *peerpb.Letter) { l.RuleIds = nil }, "0 ids have 1 specs"},
		{"a rule under another id", replicate(rule), func(l *peerpb.Letter) { l.RuleIds[0]++ }, "is the id of another rule"},
		{"more counters than bytes", replicate(rule), func(l *peerpb.Letter) { l.GetReplicate().Chunks.Lengths[0] = 1 << 31 }, "claim 2147483648 counters"},
		{"more counters than can be", replicate(rule), func(l *peerpb.Letter) { l.GetReplicate().Chunks.Lengths[0] = 4 }, "claim 4 counters"},
		{"one counter less", replicate(rule), func(l *peerpb.Letter) { l.GetReplicate().Chunks.Lengths[0] = 2 }, "is cut short"},
		{"a byte too much", replicate(rule), func(l *peerpb.Letter) {
			l.GetReplicate().Chunks.Counters = append(l.GetReplicate().Chunks.Counters, 0)
		}, "1 bytes are left over"},
		{"a state of a later version", replicate(rule), func(l *peerpb.Letter) {
			c := l.GetReplicate().Chunks.Counters
			c[len(entries(replicate(rule))[0].Name)+9] |= 0x80
		}, "of an unknown version"},
		{"no name", replicate(rule), func(l *peerpb.Letter) { l.GetReplicate().Chunks.Counters[0] = 0 }, "is cut short"},
		{"an endless name", replicate(rule), func(l *peerpb.Letter) {
			copy(l.GetReplicate().Chunks.Counters, bytes.Repeat([]byte{0xff}, 10))
		}, "is cut short"},
	}
}

func TestUnpackRefuses(t *testing.T) {
	for _, c := range spoilers(t) {
		l := travel(t, mustPack(t, NewPacker(), c.m))
		mustUnpack(t, NewUnpacker(stranger()), l)
		c.spoil(l)
		if m, err := NewUnpacker(stranger()).Unpack(l); m != nil || err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %+v, %v; want an error with %q", c.what, m, err, c.want)
		}
	}
}

// Wherever the counters are cut short, nobody reads on.
func TestCountersCutShort(t *testing.T) {
	m := &transfer.Replicate{Copies: []transfer.Copy{{Partition: 3, Chunk: transfer.Chunk{
		Entries: []owner.Entry{counter(3, "a name that is longer than the shortest counter", bucket(t, 1))},
	}}}}
	l := mustPack(t, NewPacker(), m)
	k := l.GetReplicate().Chunks
	for whole := k.Counters; len(k.Counters) > 0; {
		k.Counters = k.Counters[:len(k.Counters)-1]
		if m, err := NewUnpacker(stranger()).Unpack(l); m != nil || err == nil {
			t.Errorf("%d bytes of %d: %v, %v", len(k.Counters), len(whole), m, err)
		}
	}
}

// A name may have 32 KiB and no more.
func TestLongestName(t *testing.T) {
	rule := bucket(t, 1)
	for _, size := range []int{maxName, maxName + 1} {
		e := counter(0, "x", rule)
		for i := 0; ; i++ {
			e.Name = bytes.Repeat([]byte("x"), size)
			e.Name[0], e.Name[1] = byte(i), byte(i>>8)
			if e.ID = seed.ID(e.Name); partitionOf(e.ID.Hi) == 0 {
				break
			}
		}
		m := &transfer.Replicate{Copies: []transfer.Copy{{Chunk: transfer.Chunk{Entries: []owner.Entry{e}}}}}
		got, err := NewUnpacker(stranger()).Unpack(travel(t, mustPack(t, NewPacker(), m)))
		if fits := size <= maxName; fits != (err == nil) || fits != (got != nil) {
			t.Errorf("a name of %d bytes: %v", size, err)
		}
	}
}

// The largest chunk that a table exports has room in a letter: as many stamps as
// it takes short of its bound, and one whole log behind them, spread over 100
// years; and the longest names.
func TestLargestChunkFits(t *testing.T) {
	rule := mustRule(t, limit.Spec{Algorithm: limit.SlidingWindowLog, Limit: limit.MaxLogLimit, Window: limit.MaxWindow})
	log := func(stamps int) limit.Shipped {
		w := limit.Shipped{Log: make([]limit.Stamp, 0, stamps)}
		// The oldest lie far apart, the rest as far as seven bytes reach.
		age := int64(limit.MaxWindow)
		for i := range stamps {
			w.Log = append(w.Log, limit.Stamp{At: age, Cost: 1})
			if gap := int64(1) << 42; i < stamps*7/10 && age > gap {
				age -= gap
			} else {
				age = max(0, age-1<<35)
			}
		}
		return w
	}
	chunk := transfer.Chunk{More: true}
	for i := range 512 {
		n := 127
		if i == 511 {
			n = limit.MaxLogLimit
		}
		name := bytes.Repeat([]byte{byte(i), byte(i >> 8)}, maxName/2)
		chunk.Entries = append(chunk.Entries, owner.Entry{ID: seed.ID(name), Name: name, Rule: rule, State: log(n)})
	}
	m := &transfer.Replicate{Copies: []transfer.Copy{{Chunk: chunk}}}
	l := mustPack(t, NewPacker(), m)
	if n := proto.Size(l); n > MaxLetter || n < maxCounters*95/100 {
		t.Errorf("%d bytes; they must be near %d, or they are not the worst, and below %d", n, maxCounters, MaxLetter)
	}
}
