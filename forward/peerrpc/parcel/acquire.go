package parcel

import (
	"github.com/ringlimit/ringlimit/forward/peerrpc/peerpb"
	"github.com/ringlimit/ringlimit/owner"
	"github.com/ringlimit/ringlimit/owner/transfer"
)

func packAcquire(m *transfer.Acquire) *peerpb.Acquire {
	return &peerpb.Acquire{
		Records:    packRecords(m.Records),
		Absent:     packNodes(m.Absent),
		Partitions: column(m.Asks, func(a *transfer.Ask) uint32 { return uint32(a.Partition) }),
		Attempts:   keyColumn(m.Asks, func(a *transfer.Ask) uint64 { return a.Attempt }),
		Pulls:      column(m.Asks, func(a *transfer.Ask) bool { return a.Pull }),
		Releases:   column(m.Asks, func(a *transfer.Ask) uint64 { return a.Release }),
		Froms:      column(m.Asks, func(a *transfer.Ask) uint64 { return uint64(a.From) }),
	}
}

func (p *Packer) packAnswers(m *transfer.Answers) (*peerpb.Answers, error) {
	chunks, err := p.chunks(keyColumn(m.Parts, func(a *transfer.Part) *transfer.Chunk { return &a.Chunk }))
	if err != nil {
		return nil, err
	}
	return &peerpb.Answers{
		Records:    packRecords(m.Records),
		Partitions: column(m.Parts, func(a *transfer.Part) uint32 { return uint32(a.Partition) }),
		Attempts:   keyColumn(m.Parts, func(a *transfer.Part) uint64 { return a.Attempt }),
		Statuses:   column(m.Parts, func(a *transfer.Part) uint32 { return uint32(a.Status) }),
		Releases:   column(m.Parts, func(a *transfer.Part) uint64 { return a.Release }),
		Froms:      column(m.Parts, func(a *transfer.Part) uint64 { return uint64(a.From) }),
		Pulled:     column(m.Parts, func(a *transfer.Part) bool { return a.Pulled }),
		Chunks:     chunks,
	}, nil
}

func (u *Unpacker) acquire(m *peerpb.Acquire) (transfer.Message, error) {
	records, err := u.records(m.GetRecords())
	if err != nil {
		return nil, err
	}
	absent, err := nodes(m.GetAbsent())
	if err != nil {
		return nil, err
	}
	asks, err := u.asks(m)
	return message(&transfer.Acquire{Records: records, Absent: absent, Asks: asks}, err)
}

func (u *Unpacker) asks(m *peerpb.Acquire) ([]transfer.Ask, error) {
	n := len(m.GetAttempts())
	err := u.items("asks", n, m.GetPartitions(), len(m.GetPulls()), len(m.GetReleases()), len(m.GetFroms()))
	if err != nil {
		return nil, err
	}
	asks := make([]transfer.Ask, n)
	for i := range asks {
		asks[i] = transfer.Ask{
			Partition: int(at(m.GetPartitions(), i)), Attempt: m.GetAttempts()[i], Pull: at(m.GetPulls(), i),
			Release: at(m.GetReleases(), i), From: owner.Cursor(at(m.GetFroms(), i)),
		}
	}
	return orNil(asks), nil
}

func (u *Unpacker) answers(m *peerpb.Answers) (transfer.Message, error) {
	records, err := u.records(m.GetRecords())
	if err != nil {
		return nil, err
	}
	parts, err := u.parts(m)
	return message(&transfer.Answers{Records: records, Parts: parts}, err)
}

// parts leaves out those with a status that this version does not know: as if
// they had been lost, they are asked for again.
func (u *Unpacker) parts(m *peerpb.Answers) ([]transfer.Part, error) {
	n := len(m.GetAttempts())
	err := u.items("parts", n, m.GetPartitions(), len(m.GetStatuses()), len(m.GetReleases()), len(m.GetFroms()), len(m.GetPulled()))
	if err != nil {
		return nil, err
	}
	chunks, err := u.open(m.GetChunks(), n)
	if err != nil {
		return nil, err
	}
	parts := make([]transfer.Part, 0, n)
	for i := range n {
		status := at(m.GetStatuses(), i)
		part := transfer.Part{
			Partition: int(at(m.GetPartitions(), i)), Attempt: m.GetAttempts()[i], Status: transfer.Status(status),
			Release: at(m.GetReleases(), i), From: owner.Cursor(at(m.GetFroms(), i)), Pulled: at(m.GetPulled(), i),
		}
		if err := chunks.next(i, part.Partition, &part.Chunk); err != nil {
			return nil, err
		}
		if status <= uint32(transfer.Busy) {
			parts = append(parts, part)
		}
	}
	return orNil(parts), chunks.close()
}
