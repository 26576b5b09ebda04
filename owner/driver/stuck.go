package driver

import "time"

const (
	stuckAfter = 5 * time.Second
	stuckAgain = time.Minute
	stuckLook  = time.Second // it looks at all partitions
)

// stuck notices that partitions do not come. Silence is no denial, so one member
// whose peer port cannot be reached keeps them away for as long as gossip sees it
// alive, and whoever runs the cluster has to be told which.
type stuck struct {
	look  int64 // when to look next
	since int64 // when it first looked and some were missing; 0: none are
	told  int64 // when it last said so; 0: not yet
}

// note is called at every tick, under the driver's lock.
func (s *stuck) note(d *Driver, now int64) {
	if now < s.look {
		return
	}
	s.look = now + int64(stuckLook)
	missing := d.core.Acquiring()
	switch {
	case missing == 0 || d.core.Fenced() || d.superseded:
		s.since = 0
	case s.since == 0:
		s.since = now
	case now-s.since >= int64(stuckAfter) && (s.told == 0 || now-s.told >= int64(stuckAgain)):
		s.told = now
		d.cfg.Logger.Warn("partitions do not come: members have not answered, or not to the end; can their peer ports be reached from here?",
			"partitions", missing, "members", d.core.Awaited())
	}
}
