package transfer

import (
	"cmp"
	"encoding/binary"
	"hash/fnv"

	"github.com/ringlimit/ringlimit/membership"
)

// Dead is the state of a member that gossip has given up. No member says it of
// itself. It is the worst of the states of package membership.
const Dead = membership.Draining + 1

// Record is what is known of a member.
type Record struct {
	ID    membership.NodeID
	Boot  membership.BootID
	Seq   uint64 // raised by the member whenever it says something new of itself
	State membership.State
	Owner bool // false: never owns a partition
	// Age is how many nanoseconds ago a dead member died, by the sender's
	// reckoning, so that all forget it together. It makes no record newer.
	Age int64
}

// newer orders records of one node: the later run, then the later word of it,
// then the worse state, so that a death is believed until the dead contradicts.
func (r Record) newer(than Record) bool {
	return cmp.Or(cmp.Compare(r.Boot, than.Boot), cmp.Compare(r.Seq, than.Seq), cmp.Compare(r.State, than.State)) > 0
}

// sum is equal for equal records, ages aside. The long dead are not in it, for who
// does not know them will not learn of them either, and would be told for minutes.
// Nodes that reckon it in different ways tell each other all records.
func sum(records []Record) uint64 {
	h := fnv.New64a()
	var b []byte
	for i := range records {
		r := &records[i]
		if r.State == Dead && r.Age >= strangers {
			continue
		}
		b = binary.AppendUvarint(b[:0], uint64(len(r.ID)))
		b = append(b, r.ID...)
		b = binary.AppendUvarint(b, uint64(r.Boot))
		b = binary.AppendUvarint(b, r.Seq)
		b = append(b, byte(r.State), ownerByte(r.Owner))
		h.Write(b)
	}
	return h.Sum64()
}

func ownerByte(owner bool) byte {
	if owner {
		return 1
	}
	return 0
}

func (r Record) owns() bool { return r.State == membership.Serving && r.Owner }
