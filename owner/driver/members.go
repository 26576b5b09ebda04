package driver

import (
	"slices"

	"github.com/ringlimit/ringlimit/membership"
	"github.com/ringlimit/ringlimit/owner/transfer"
)

func recordOf(m membership.Member) transfer.Record {
	return transfer.Record{ID: m.ID, Boot: m.Boot, Seq: m.Seq, State: m.State, Owner: m.Owner}
}

// Members is the event that gossip sees these members. Who was in the view
// before and is not any more, is dead.
func (d *Driver) Members(v membership.View) {
	d.event(func(now int64) {
		var records []transfer.Record
		for _, m := range v.Members {
			records = append(records, recordOf(m))
		}
		for _, m := range d.members.Members {
			if other, ok := v.Find(m.ID); !ok || other.Boot < m.Boot {
				records = append(records, d.dead(m))
			}
		}
		d.members, d.superseded = v, d.superseded || v.Superseded(d.cfg.Self)
		d.core.Learn(now, records)
		d.contradict()
		d.publish(d.core.Ring()) // a member may have another address
	})
}

// dead is the record of a member that is gone. Of a run that we have later word
// of than gossip brought, that is the word to contradict.
func (d *Driver) dead(m membership.Member) transfer.Record {
	r := recordOf(m)
	if known, ok := d.record(m.ID); ok && known.Boot == r.Boot {
		r.Seq = max(r.Seq, known.Seq)
	}
	r.State = transfer.Dead
	return r
}

func (d *Driver) record(id membership.NodeID) (transfer.Record, bool) {
	records := d.core.Records()
	i := slices.IndexFunc(records, func(r transfer.Record) bool { return r.ID == id })
	if i < 0 {
		return transfer.Record{}, false
	}
	return records[i], true
}

// contradict tells members that gossip sees, and that once were declared dead,
// of that: only their own later word can undo it. It is told again until they
// have, for a message may be lost.
func (d *Driver) contradict() {
	for _, m := range d.members.Members {
		if r, ok := d.record(m.ID); ok && r.State == transfer.Dead && r.Boot == m.Boot {
			d.cfg.Send(m.ID, &transfer.Views{Records: d.core.Records()})
		}
	}
}

// Superseded says that a later process was seen under this node's name. This one
// decides nothing any more, also when the later one has gone.
func (d *Driver) Superseded() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.superseded
}
