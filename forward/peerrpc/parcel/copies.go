package parcel

import (
	"github.com/ringlimit/ringlimit/forward/peerrpc/peerpb"
	"github.com/ringlimit/ringlimit/owner/transfer"
)

func (p *Packer) packReplicate(m *transfer.Replicate) (*peerpb.Replicate, error) {
	chunks, err := p.chunks(keyColumn(m.Copies, func(c *transfer.Copy) *transfer.Chunk { return &c.Chunk }))
	if err != nil {
		return nil, err
	}
	return &peerpb.Replicate{
		Partitions: column(m.Copies, func(c *transfer.Copy) uint32 { return uint32(c.Partition) }),
		Streams:    column(m.Copies, func(c *transfer.Copy) uint64 { return c.Stream }),
		Numbers:    keyColumn(m.Copies, func(c *transfer.Copy) uint64 { return c.Number }),
		Chunks:     chunks,
	}, nil
}

func packReplicated(m *transfer.Replicated) *peerpb.Replicated {
	return &peerpb.Replicated{
		Partitions: column(m.Receipts, func(r *transfer.Receipt) uint32 { return uint32(r.Partition) }),
		Streams:    column(m.Receipts, func(r *transfer.Receipt) uint64 { return r.Stream }),
		Numbers:    keyColumn(m.Receipts, func(r *transfer.Receipt) uint64 { return r.Number }),
		Refused:    column(m.Receipts, func(r *transfer.Receipt) bool { return r.Refused }),
	}
}

func (u *Unpacker) replicate(m *peerpb.Replicate) (transfer.Message, error) {
	n := len(m.GetNumbers())
	if err := u.items("copies", n, m.GetPartitions(), len(m.GetStreams())); err != nil {
		return nil, err
	}
	chunks, err := u.open(m.GetChunks(), n)
	if err != nil {
		return nil, err
	}
	r := &transfer.Replicate{Copies: orNil(make([]transfer.Copy, n))}
	for i := range r.Copies {
		c := &r.Copies[i]
		c.Partition, c.Stream, c.Number = int(at(m.GetPartitions(), i)), at(m.GetStreams(), i), m.GetNumbers()[i]
		if err := chunks.next(i, c.Partition, &c.Chunk); err != nil {
			return nil, err
		}
	}
	return message(r, chunks.close())
}

func (u *Unpacker) replicated(m *peerpb.Replicated) (transfer.Message, error) {
	n := len(m.GetNumbers())
	if err := u.items("receipts", n, m.GetPartitions(), len(m.GetStreams()), len(m.GetRefused())); err != nil {
		return nil, err
	}
	r := &transfer.Replicated{Receipts: orNil(make([]transfer.Receipt, n))}
	for i := range r.Receipts {
		r.Receipts[i] = transfer.Receipt{
			Partition: int(at(m.GetPartitions(), i)), Stream: at(m.GetStreams(), i), Number: m.GetNumbers()[i], Refused: at(m.GetRefused(), i),
		}
	}
	return r, nil
}
