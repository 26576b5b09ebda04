package transfer

import (
	"cmp"
	"slices"

	"github.com/ringlimit/ringlimit/membership"
	"github.com/ringlimit/ringlimit/ring"
)

// Times are in nanoseconds.
const (
	ms = int64(1e6)
	// askTheDead is how long after its death a member is still asked: gossip
	// may be wrong about it.
	askTheDead = 60_000 * ms
	// absence is how long a refused connection keeps a member out of the ring.
	// By then gossip has noticed, or the next attempt is refused again.
	absence = 3_000 * ms
	// Who is declared dead so often within that time waits before it serves
	// again, each time twice as long, or its counters would never rest.
	flaps     = 3
	flapSpan  = 300_000 * ms
	holdDown  = 10_000 * ms
	maxHolds  = 5 // doublings
	neverThis = int64(1) << 62
)

// member is a record and what this node alone knows of the member.
type member struct {
	Record
	died    int64 // when it died, as far as we can tell
	refused int64 // its process is gone, until then; see Core.Refused
	mute    int64 // it is no standby, until then
	deaf    bool  // though it talked all the while
	heard   int64 // when its latest message came
	trip    int64 // how long a word to it and back takes; see travelled
}

// longestTrip bounds what a question that waited with a process that stood still
// says of the way.
const longestTrip = 200 * ms

// travelled notes how long an answer took. The longest counts, and is forgotten by
// an eighth with each beat: on a distant or busy node's silence we wait longer
// than on that of a near one, whose answers come at once.
func (m *member) travelled(took int64) { m.trip = min(max(took, m.trip-m.trip/8), longestTrip) }

// gone says that no process answers under this record.
func (m *member) gone(now int64) bool { return m.State == Dead || now < m.refused }

// view is the members as this node sees them, itself included.
type view struct {
	members []member // sorted by ID
	records []Record // the same, to be sent; replaced as a whole
	written int64    // when
	sum     uint64   // of them
	ring    *ring.Ring
	owners  []membership.NodeID // what ring was made of
	heirs   *ring.Ring          // without this node and those that are mute; nil when yet to be made
}

func (v *view) find(id membership.NodeID) *member {
	i, ok := v.search(id)
	if !ok {
		return nil
	}
	return &v.members[i]
}

func (v *view) search(id membership.NodeID) (int, bool) {
	return slices.BinarySearchFunc(v.members, id, func(m member, id membership.NodeID) int { return cmp.Compare(m.ID, id) })
}

// put stores a record that is new or newer than what is known. It reports
// whether the node had no living record of that run before.
func (v *view) put(r Record, now int64) (came bool) {
	i, ok := v.search(r.ID)
	if !ok {
		v.members = slices.Insert(v.members, i, member{})
	}
	m := &v.members[i]
	came = r.State != Dead && (!ok || m.State == Dead || m.Boot != r.Boot)
	if m.Boot != r.Boot {
		m.refused, m.mute, m.heard, m.trip = 0, 0, 0, 0 // another process
	}
	if r.State == Dead {
		m.died = r.died(now)
	}
	m.Record, m.Age = r, 0
	v.records = nil
	return came
}

// rebuild brings the ring up to date and reports whether it changed.
func (v *view) rebuild(make func([]membership.NodeID) *ring.Ring, now int64) bool {
	v.heirs = nil
	var ids []membership.NodeID
	for i := range v.members {
		if m := &v.members[i]; m.owns() && !m.gone(now) {
			ids = append(ids, m.ID)
		}
	}
	if v.ring != nil && slices.Equal(ids, v.owners) {
		return false
	}
	v.owners, v.ring = ids, make(ids)
	return true
}

// owner is who should hold the partition; empty when nobody serves.
func (v *view) owner(p int) membership.NodeID {
	if i := v.ring.Owner(p); i >= 0 {
		return v.ring.Nodes()[i]
	}
	return ""
}
