package parcel

import (
	"fmt"

	"github.com/ringlimit/ringlimit/forward/peerrpc/peerpb"
	"github.com/ringlimit/ringlimit/membership"
	"github.com/ringlimit/ringlimit/owner/transfer"
)

func packRecords(records []transfer.Record) *peerpb.Records {
	return &peerpb.Records{
		Nodes:  keyColumn(records, func(r *transfer.Record) []byte { return []byte(r.ID) }),
		Boots:  keyColumn(records, func(r *transfer.Record) uint64 { return uint64(r.Boot) }),
		Seqs:   column(records, func(r *transfer.Record) uint64 { return r.Seq }),
		States: column(records, func(r *transfer.Record) uint32 { return uint32(r.State) }),
		Owners: column(records, func(r *transfer.Record) bool { return r.Owner }),
		Ages:   column(records, func(r *transfer.Record) int64 { return r.Age }),
	}
}

func packNodes(ids []membership.NodeID) [][]byte {
	return keyColumn(ids, func(id *membership.NodeID) []byte { return []byte(*id) })
}

func packViews(m *transfer.Views) *peerpb.Views {
	return &peerpb.Views{Records: packRecords(m.Records), Absent: packNodes(m.Absent)}
}

// records leaves out those in a state that this version does not know.
func (u *Unpacker) records(m *peerpb.Records) ([]transfer.Record, error) {
	n := len(m.GetBoots())
	err := fit("records", n, maxMembers, len(m.GetNodes()), len(m.GetSeqs()), len(m.GetStates()), len(m.GetOwners()), len(m.GetAges()))
	if err != nil {
		return nil, err
	}
	records := make([]transfer.Record, 0, n)
	for i := range n {
		id, err := node(at(m.GetNodes(), i))
		if err != nil {
			return nil, err
		}
		state := at(m.GetStates(), i)
		if state < uint32(membership.Joining) || state > uint32(transfer.Dead) {
			continue
		}
		records = append(records, transfer.Record{
			ID: id, Boot: membership.BootID(m.GetBoots()[i]), Seq: at(m.GetSeqs(), i),
			State: membership.State(state), Owner: at(m.GetOwners(), i), Age: max(0, at(m.GetAges(), i)),
		})
	}
	return orNil(records), nil
}

func node(name []byte) (membership.NodeID, error) {
	if len(name) == 0 || len(name) > maxNode {
		return "", fmt.Errorf("parcel: a node's name is %d bytes long; it must have 1 to %d", len(name), maxNode)
	}
	return membership.NodeID(name), nil
}

func nodes(names [][]byte) ([]membership.NodeID, error) {
	if err := fit("absent", len(names), maxMembers); err != nil {
		return nil, err
	}
	ids := make([]membership.NodeID, len(names))
	for i, name := range names {
		var err error
		if ids[i], err = node(name); err != nil {
			return nil, err
		}
	}
	return orNil(ids), nil
}

func (u *Unpacker) views(m *peerpb.Views) (transfer.Message, error) {
	records, err := u.records(m.GetRecords())
	if err != nil {
		return nil, err
	}
	absent, err := nodes(m.GetAbsent())
	return message(&transfer.Views{Records: records, Absent: absent}, err)
}
