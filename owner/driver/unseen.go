package driver

import (
	"time"

	"github.com/ringlimit/ringlimit/membership"
	"github.com/ringlimit/ringlimit/owner/transfer"
)

const (
	// unseenFor is how long others may speak of a member that gossip does not show
	// and that says nothing to us. Who lives is in our gossip long before: it has all
	// members from the moment it joins.
	unseenFor  = 5 * time.Second
	unseenLook = time.Second
)

// unseen is the members that only others speak of. The last words of a member may
// arrive after gossip has dropped it, and contradict its death: then nobody would
// ever notice that it is gone, and whoever acquires a partition would wait for it.
type unseen struct {
	look  int64 // when to look next
	since map[membership.NodeID]absentee
}

// absentee is a run of a node that was not seen since then.
type absentee struct {
	boot  membership.BootID
	since int64
}

// bury declares those dead that were not seen for too long. Who lives contradicts.
// It is called at every tick, under the driver's lock.
func (u *unseen) bury(d *Driver, now int64) {
	if now < u.look {
		return
	}
	was := u.since
	if now-u.look > int64(unseenLook) {
		was = nil // we stood still: that we have not seen it says nothing
	}
	u.look, u.since = now+int64(unseenLook), map[membership.NodeID]absentee{}
	var dead []transfer.Record
	for _, r := range d.core.Records() {
		if r.State == transfer.Dead || r.ID == d.cfg.Self.ID || d.sees(r) {
			continue
		}
		a, known := was[r.ID]
		if !known || a.boot != r.Boot {
			a = absentee{r.Boot, now}
		}
		a.since = max(a.since, d.core.Heard(r.ID))
		if u.since[r.ID] = a; now-a.since >= int64(unseenFor) {
			r.State = transfer.Dead
			dead = append(dead, r)
		}
	}
	if len(dead) > 0 {
		d.core.Learn(now, dead)
	}
}

// sees says whether gossip shows the record's run, or a later one.
func (d *Driver) sees(r transfer.Record) bool {
	m, ok := d.members.Find(r.ID)
	return ok && m.Boot >= r.Boot
}
