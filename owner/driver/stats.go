package driver

import "github.com/ringlimit/ringlimit/owner/transfer"

// Stats are a driver's figures at one moment.
type Stats struct {
	Acquiring int   // partitions that this node owns and does not hold yet
	Unguarded int   // partitions held without a complete copy elsewhere
	Lag       int64 // nanoseconds since the oldest charge left that has no copy yet
	Fenced    bool
}

// Stats looks at all partitions.
func (d *Driver) Stats() Stats {
	d.mu.Lock()
	defer d.mu.Unlock()
	return Stats{
		Acquiring: d.core.Acquiring(),
		Unguarded: d.core.Unguarded(),
		Lag:       d.core.Lag(d.cfg.Now()),
		Fenced:    d.core.Fenced(),
	}
}

// Partitions shows what this node does with each partition, and what it knows of
// who else does what.
func (d *Driver) Partitions() []transfer.Partition {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := make([]transfer.Partition, d.cfg.Ring.Partitions)
	for p := range all {
		all[p] = d.core.Partition(p)
	}
	return all
}

// Fingerprint is that of the ring that this node goes by.
func (d *Driver) Fingerprint() uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.core.Ring().Fingerprint()
}
