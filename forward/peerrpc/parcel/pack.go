package parcel

import (
	"fmt"

	"github.com/ringlimit/ringlimit/forward/peerrpc/peerpb"
	"github.com/ringlimit/ringlimit/limit"
	"github.com/ringlimit/ringlimit/owner/transfer"
)

// keepMost is how large a buffer a Packer keeps from letter to letter.
const keepMost = 1 << 20

// Packer packs the messages of one stream. It is not safe for concurrent use.
type Packer struct {
	rules map[limit.RuleID]struct{} // that the stream has named
	fresh []*limit.Rule             // of them, those that the letter at hand names
	last  *limit.Rule               // that was looked up

	counters []byte // of the letter at hand
}

// NewPacker makes a Packer for a stream that has carried nothing yet.
func NewPacker() *Packer { return &Packer{rules: map[limit.RuleID]struct{}{}} }

// Pack makes a letter of the message. It is to be sent before the next one is
// packed, for that may use its memory again; if it is not sent, the stream has
// to end, or the receiver would lack rules.
//
// After ErrTooLarge the stream may go on, without the message. After any other
// error it cannot.
func (p *Packer) Pack(m transfer.Message) (*peerpb.Letter, error) {
	p.fresh = p.fresh[:0]
	l := &peerpb.Letter{}
	if err := p.pack(l, m); err != nil {
		p.withdraw()
		return nil, err
	}
	for _, rule := range p.fresh {
		l.RuleIds = append(l.RuleIds, uint64(rule.ID()))
		l.Rules = append(l.Rules, rule.Encode())
	}
	return l, nil
}

func (p *Packer) pack(l *peerpb.Letter, m transfer.Message) (err error) {
	switch m := m.(type) {
	case *transfer.Views:
		l.Message = &peerpb.Letter_Views{Views: packViews(m)}
	case *transfer.Acquire:
		l.Message = &peerpb.Letter_Acquire{Acquire: packAcquire(m)}
	case *transfer.Answers:
		var answers *peerpb.Answers
		answers, err = p.packAnswers(m)
		l.Message = &peerpb.Letter_Answers{Answers: answers}
	case *transfer.Ack:
		l.Message = &peerpb.Letter_Ack{Ack: packReleases(m.Releases)}
	case *transfer.Nack:
		l.Message = &peerpb.Letter_Nack{Nack: packReleases(m.Releases)}
	case *transfer.Nudge:
		l.Message = &peerpb.Letter_Nudge{Nudge: packNudge(m)}
	case *transfer.Replicate:
		var replicate *peerpb.Replicate
		replicate, err = p.packReplicate(m)
		l.Message = &peerpb.Letter_Replicate{Replicate: replicate}
	case *transfer.Replicated:
		l.Message = &peerpb.Letter_Replicated{Replicated: packReplicated(m)}
	case *transfer.Drop:
		l.Message = &peerpb.Letter_Drop{Drop: &peerpb.Drop{Partitions: packPartitions(m.Partitions)}}
	case *transfer.Beat:
		l.Message = &peerpb.Letter_Beat{Beat: &peerpb.Beat{At: m.At, Sum: m.Sum}}
	case *transfer.BeatBack:
		l.Message = &peerpb.Letter_BeatBack{BeatBack: &peerpb.BeatBack{At: m.At, Records: packRecords(m.Records)}}
	default:
		err = fmt.Errorf("parcel: does not know how to pack a %T", m)
	}
	return err
}

// keep remembers the buffer for the next letter, unless it is a large one.
func (p *Packer) keep(b []byte) []byte {
	if p.counters = b; cap(b) > keepMost {
		p.counters = nil
	}
	return b
}
