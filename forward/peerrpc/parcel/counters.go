package parcel

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/ringlimit/ringlimit/forward/peerrpc/peerpb"
	"github.com/ringlimit/ringlimit/limit"
	"github.com/ringlimit/ringlimit/owner"
	"github.com/ringlimit/ringlimit/owner/transfer"
)

// appendCounters packs entries; the rules are on their way.
func appendCounters(b []byte, entries []owner.Entry) []byte {
	for i := range entries {
		e := &entries[i]
		b = binary.AppendUvarint(b, uint64(len(e.Name)))
		b = append(b, e.Name...)
		b = binary.LittleEndian.AppendUint64(b, uint64(e.Rule.ID()))
		b = limit.AppendShipped(b, &e.State)
	}
	return b
}

var errBadCounter = errors.New("is cut short, too long, or none")

// chunks packs those of a letter together.
func (p *Packer) chunks(chunks []*transfer.Chunk) (*peerpb.Chunks, error) {
	b := p.counters[:0]
	for _, k := range chunks {
		if err := p.introduce(k.Entries); err != nil {
			return nil, err
		}
		if b = appendCounters(b, k.Entries); len(b) > maxCounters {
			return nil, ErrTooLarge
		}
	}
	return &peerpb.Chunks{
		Counters:      p.keep(b),
		Lengths:       column(chunks, func(k **transfer.Chunk) uint32 { return uint32(len((*k).Entries)) }),
		Nexts:         column(chunks, func(k **transfer.Chunk) uint64 { return uint64((*k).Next) }),
		Mores:         column(chunks, func(k **transfer.Chunk) bool { return (*k).More }),
		TotalCounters: column(chunks, func(k **transfer.Chunk) uint32 { return bounded((*k).Counters) }),
		TotalNames:    column(chunks, func(k **transfer.Chunk) uint32 { return bounded((*k).Names) }),
	}, nil
}

// reader hands out the chunks of a letter, one after the other.
type reader struct {
	u       *Unpacker
	from    *peerpb.Chunks
	rest    []byte        // of the counters
	entries []owner.Entry // room for them
}

// open checks that there can be as many counters as the chunks claim.
func (u *Unpacker) open(from *peerpb.Chunks, chunks int) (reader, error) {
	err := fit("chunks", chunks, maxItems, len(from.GetLengths()), len(from.GetNexts()), len(from.GetMores()),
		len(from.GetTotalCounters()), len(from.GetTotalNames()))
	if err != nil {
		return reader{}, err
	}
	r := reader{u: u, from: from, rest: from.GetCounters()}
	total := uint64(0)
	for _, n := range from.GetLengths() {
		total += uint64(n)
	}
	if total > uint64(len(r.rest)/minCounter) {
		return reader{}, fmt.Errorf("parcel: chunks: claim %d counters in %d bytes", total, len(r.rest))
	}
	r.entries = make([]owner.Entry, total)
	return r, nil
}

// next reads the i-th chunk, which is of that partition.
func (r *reader) next(i, partition int, k *transfer.Chunk) error {
	n := at(r.from.GetLengths(), i)
	entries := r.entries[:n:n]
	r.entries = r.entries[n:]
	for j := range entries {
		var err error
		if r.rest, err = r.u.cut(r.rest, partition, &entries[j]); err != nil {
			return fmt.Errorf("parcel: chunks: counter %d of partition %d: %w", j, partition, err)
		}
	}
	*k = transfer.Chunk{
		Entries: orNil(entries),
		Next:    owner.Cursor(at(r.from.GetNexts(), i)), More: at(r.from.GetMores(), i),
		Counters: int(at(r.from.GetTotalCounters(), i)), Names: int(at(r.from.GetTotalNames(), i)),
	}
	return nil
}

// close checks that nothing is left over.
func (r *reader) close() error {
	if len(r.rest) != 0 {
		return fmt.Errorf("parcel: chunks: %d bytes are left over", len(r.rest))
	}
	return nil
}

// cut reads the counter that b begins with, whose name stays in b.
func (u *Unpacker) cut(b []byte, partition int, e *owner.Entry) (rest []byte, err error) {
	n, used := binary.Uvarint(b)
	if used <= 0 || n == 0 || n > maxName || n > uint64(len(b)-used) {
		return nil, errBadCounter
	}
	e.Name, b = b[used:used+int(n):used+int(n)], b[used+int(n):]
	if e.ID = u.cfg.Seed.ID(e.Name); u.cfg.Partition(e.ID.Hi) != partition {
		return nil, errors.New("belongs to another partition")
	}
	if len(b) < ruleIDBytes {
		return nil, errBadCounter
	}
	if e.Rule, err = u.rule(limit.RuleID(binary.LittleEndian.Uint64(b))); err != nil {
		return nil, err
	}
	return limit.CutShipped(b[ruleIDBytes:], &e.State)
}

// bounded is a count as it travels.
func bounded(n int) uint32 { return uint32(min(max(n, 0), math.MaxUint32)) }
