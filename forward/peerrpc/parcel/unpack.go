package parcel

import (
	"fmt"

	"github.com/ringlimit/ringlimit/forward/peerrpc/peerpb"
	"github.com/ringlimit/ringlimit/limit"
	"github.com/ringlimit/ringlimit/owner"
	"github.com/ringlimit/ringlimit/owner/transfer"
)

// UnpackConfig is what an Unpacker needs to know of its node.
type UnpackConfig struct {
	Partitions int
	// Seed and Partition say where a counter belongs. A peer's word is not taken
	// for it.
	Seed      owner.Seed
	Partition func(hash uint64) int
	// Rule finds a rule that this node knows, or returns nil. It may be nil.
	Rule func(limit.RuleID) *limit.Rule
}

// Unpacker reads the letters of one stream. It is not safe for concurrent use.
type Unpacker struct {
	cfg   UnpackConfig
	rules map[limit.RuleID]*limit.Rule // that the stream has named; nil: of no use here
	last  *limit.Rule                  // that was looked up
}

// NewUnpacker makes an Unpacker for a stream that has carried nothing yet.
func NewUnpacker(cfg UnpackConfig) *Unpacker {
	return &Unpacker{cfg: cfg, rules: map[limit.RuleID]*limit.Rule{}}
}

// Unpack reads a letter. The message is nil when it is of a kind that this
// version does not know: it is to be skipped. An error ends the stream: no
// honest node sends such a letter.
//
// The message shares the letter's memory. The names in it are valid; the states
// are as they came, and a rule's Receive makes the best of them.
func (u *Unpacker) Unpack(l *peerpb.Letter) (transfer.Message, error) {
	if err := u.learn(l.GetRuleIds(), l.GetRules()); err != nil {
		return nil, err
	}
	switch m := l.GetMessage().(type) {
	case *peerpb.Letter_Views:
		return u.views(m.Views)
	case *peerpb.Letter_Acquire:
		return u.acquire(m.Acquire)
	case *peerpb.Letter_Answers:
		return u.answers(m.Answers)
	case *peerpb.Letter_Ack:
		releases, err := u.releases(m.Ack)
		return message(&transfer.Ack{Releases: releases}, err)
	case *peerpb.Letter_Nack:
		releases, err := u.releases(m.Nack)
		return message(&transfer.Nack{Releases: releases}, err)
	case *peerpb.Letter_Nudge:
		return u.nudge(m.Nudge)
	case *peerpb.Letter_Replicate:
		return u.replicate(m.Replicate)
	case *peerpb.Letter_Replicated:
		return u.replicated(m.Replicated)
	case *peerpb.Letter_Drop:
		partitions, err := u.partitions("drop", m.Drop.GetPartitions())
		return message(&transfer.Drop{Partitions: partitions}, err)
	case *peerpb.Letter_Beat:
		return &transfer.Beat{At: m.Beat.GetAt(), Sum: m.Beat.GetSum()}, nil
	case *peerpb.Letter_BeatBack:
		records, err := u.records(m.BeatBack.GetRecords())
		return message(&transfer.BeatBack{At: m.BeatBack.GetAt(), Records: records}, err)
	}
	return nil, nil
}

// message is m, or nothing with an error.
func message(m transfer.Message, err error) (transfer.Message, error) {
	if err != nil {
		return nil, err
	}
	return m, nil
}

// check says whether all partitions exist.
func (u *Unpacker) check(list string, partitions []uint32) error {
	for _, p := range partitions {
		if uint64(p) >= uint64(u.cfg.Partitions) {
			return fmt.Errorf("parcel: %s: partition %d is not below %d", list, p, u.cfg.Partitions)
		}
	}
	return nil
}

// items checks a list of things of which each is about a partition.
func (u *Unpacker) items(list string, n int, partitions []uint32, columns ...int) error {
	if err := fit(list, n, maxItems, append(columns, len(partitions))...); err != nil {
		return err
	}
	return u.check(list, partitions)
}

func (u *Unpacker) partitions(list string, column []uint32) ([]int, error) {
	if err := u.items(list, len(column), column); err != nil {
		return nil, err
	}
	return orNil(keyColumn(column, func(p *uint32) int { return int(*p) })), nil
}
