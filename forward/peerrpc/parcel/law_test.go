package parcel

import (
	"math"
	"testing"
	_ "time/tzdata" // the zones of the tests, wherever they run

	"pgregory.net/rapid"

	"github.com/ringlimit/ringlimit/limit"
	"github.com/ringlimit/ringlimit/membership"
	"github.com/ringlimit/ringlimit/owner"
	"github.com/ringlimit/ringlimit/owner/transfer"
)

// Whatever the core may say arrives as it was said, one message behind the
// other on one stream.
func TestLawMessagesRoundTrip(t *testing.T) {
	rules := testRules(t)
	rapid.Check(t, func(t *rapid.T) {
		d := drawer{t, rules}
		p, u := NewPacker(), NewUnpacker(stranger())
		for range rapid.IntRange(1, 6).Draw(t, "messages") {
			want := d.message()
			same(t, mustUnpack(t, u, travel(t, mustPack(t, p, want))), want)
		}
	})
}

// drawer draws messages. Lists that are empty are nil, as unpacked ones are.
type drawer struct {
	t     *rapid.T
	rules []*limit.Rule
}

func list[T any](d drawer, label string, most int, draw func() T) (items []T) {
	for range rapid.IntRange(0, most).Draw(d.t, label) {
		items = append(items, draw())
	}
	return items
}

func (d drawer) message() transfer.Message {
	switch rapid.IntRange(0, 10).Draw(d.t, "kind") {
	case 0:
		return &transfer.Views{Records: d.records(), Absent: d.nodes()}
	case 1:
		return &transfer.Acquire{Records: d.records(), Absent: d.nodes(), Asks: list(d, "asks", 5, d.ask)}
	case 2:
		return &transfer.Answers{Records: d.records(), Parts: list(d, "parts", 4, d.part)}
	case 3:
		return &transfer.Ack{Releases: list(d, "releases", 4, d.release)}
	case 4:
		return &transfer.Nack{Releases: list(d, "releases", 4, d.release)}
	case 5:
		return &transfer.Nudge{Records: d.records(), Releases: list(d, "releases", 4, d.release), Copies: list(d, "copies", 4, d.partition)}
	case 6:
		return &transfer.Replicate{Copies: list(d, "copies", 4, d.copy)}
	case 7:
		return &transfer.Replicated{Receipts: list(d, "receipts", 4, d.receipt)}
	case 8:
		return &transfer.Drop{Partitions: list(d, "partitions", 4, d.partition)}
	case 9:
		return &transfer.Beat{At: rapid.Int64().Draw(d.t, "at")}
	default:
		return &transfer.BeatBack{At: rapid.Int64().Draw(d.t, "at"), Records: d.records()}
	}
}

// number is often zero, so that whole columns are.
func (d drawer) number() uint64 {
	return rapid.OneOf(rapid.Just(uint64(0)), rapid.Uint64Max(1000), rapid.Uint64()).Draw(d.t, "number")
}

func (d drawer) flag() bool     { return rapid.Bool().Draw(d.t, "flag") }
func (d drawer) partition() int { return rapid.IntRange(0, partitions-1).Draw(d.t, "partition") }

func (d drawer) node() membership.NodeID {
	return membership.NodeID(rapid.SliceOfN(rapid.Byte(), 1, maxNode).Draw(d.t, "node"))
}

func (d drawer) nodes() []membership.NodeID { return list(d, "nodes", 3, d.node) }

func (d drawer) records() []transfer.Record {
	return list(d, "records", 4, func() transfer.Record {
		return transfer.Record{
			ID: d.node(), Boot: membership.BootID(d.number()), Seq: d.number(), Owner: d.flag(),
			State: membership.State(rapid.IntRange(int(membership.Joining), int(transfer.Dead)).Draw(d.t, "state")),
			Age:   rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Min(0)).Draw(d.t, "age"),
		}
	})
}

func (d drawer) ask() transfer.Ask {
	return transfer.Ask{
		Partition: d.partition(), Attempt: d.number(), Pull: d.flag(), Release: d.number(), From: owner.Cursor(d.number()),
	}
}

func (d drawer) part() transfer.Part {
	p := transfer.Part{
		Partition: d.partition(), Attempt: d.number(), Release: d.number(), From: owner.Cursor(d.number()), Pulled: d.flag(),
		Status: transfer.Status(rapid.IntRange(0, int(transfer.Busy)).Draw(d.t, "status")),
	}
	p.Chunk = d.chunk(p.Partition)
	return p
}

func (d drawer) release() transfer.Release {
	return transfer.Release{Partition: d.partition(), Boot: membership.BootID(d.number()), Number: d.number()}
}

func (d drawer) copy() transfer.Copy {
	c := transfer.Copy{Partition: d.partition(), Stream: d.number(), Number: d.number()}
	c.Chunk = d.chunk(c.Partition)
	return c
}

func (d drawer) receipt() transfer.Receipt {
	return transfer.Receipt{Partition: d.partition(), Stream: d.number(), Number: d.number(), Refused: d.flag()}
}

func (d drawer) chunk(partition int) transfer.Chunk {
	size := rapid.OneOf(rapid.Just(0), rapid.IntRange(0, math.MaxUint32))
	return transfer.Chunk{
		Entries: list(d, "entries", 5, func() owner.Entry { return d.entry(partition) }),
		Next:    owner.Cursor(d.number()), More: d.flag(),
		Counters: size.Draw(d.t, "counters"), Names: size.Draw(d.t, "names"),
	}
}

// entry is a counter with a history under a rule.
func (d drawer) entry(partition int) owner.Entry {
	rule := rapid.SampledFrom(d.rules).Draw(d.t, "rule")
	var state limit.State
	now := start
	for range rapid.IntRange(0, 8).Draw(d.t, "history") {
		state, _ = rule.Take(state, now, rapid.Int64Range(1, rule.Capacity()).Draw(d.t, "cost"))
		now += rapid.Int64Range(0, int64(rule.Window)/4+1).Draw(d.t, "pass")
	}
	n := name(partition, rapid.StringN(0, 100, 300).Draw(d.t, "stem"))
	return owner.Entry{ID: seed.ID(n), Name: n, Rule: rule, State: rule.Ship(state, now)}
}
