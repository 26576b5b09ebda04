package parcel

import (
	"github.com/ringlimit/ringlimit/forward/peerrpc/peerpb"
	"github.com/ringlimit/ringlimit/membership"
	"github.com/ringlimit/ringlimit/owner/transfer"
)

func packReleases(releases []transfer.Release) *peerpb.Releases {
	return &peerpb.Releases{
		Partitions: column(releases, func(r *transfer.Release) uint32 { return uint32(r.Partition) }),
		Boots:      keyColumn(releases, func(r *transfer.Release) uint64 { return uint64(r.Boot) }),
		Numbers:    column(releases, func(r *transfer.Release) uint64 { return r.Number }),
	}
}

func packNudge(m *transfer.Nudge) *peerpb.Nudge {
	return &peerpb.Nudge{Records: packRecords(m.Records), Releases: packReleases(m.Releases), Copies: packPartitions(m.Copies)}
}

func (u *Unpacker) releases(m *peerpb.Releases) ([]transfer.Release, error) {
	n := len(m.GetBoots())
	if err := u.items("releases", n, m.GetPartitions(), len(m.GetNumbers())); err != nil {
		return nil, err
	}
	releases := make([]transfer.Release, n)
	for i := range releases {
		releases[i] = transfer.Release{
			Partition: int(at(m.GetPartitions(), i)), Boot: membership.BootID(m.GetBoots()[i]), Number: at(m.GetNumbers(), i),
		}
	}
	return orNil(releases), nil
}

func (u *Unpacker) nudge(m *peerpb.Nudge) (transfer.Message, error) {
	records, err := u.records(m.GetRecords())
	if err != nil {
		return nil, err
	}
	releases, err := u.releases(m.GetReleases())
	if err != nil {
		return nil, err
	}
	copies, err := u.partitions("copies", m.GetCopies())
	return message(&transfer.Nudge{Records: records, Releases: releases, Copies: copies}, err)
}
