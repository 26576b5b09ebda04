package transfer

import "github.com/ringlimit/ringlimit/owner"

// Store keeps the counters of the partitions.
type Store interface {
	// SetPhase changes a partition's phase, atomically with regard to
	// decisions; None drops its counters. In every phase but Holding the
	// counters change by Import alone.
	SetPhase(partition int, phase owner.Phase)
	// Export returns some of the partition's counters, beginning with from (0
	// at first), as of now in nanoseconds.
	Export(partition int, now int64, from uint64) Chunk
	// Import merges counters into the partition, whatever its phase: the most
	// restrictive of two states of a counter wins. Doing it twice or in another
	// order makes no difference.
	Import(partition int, now int64, c Chunk)
}

// Chunk is some of a partition's counters.
type Chunk struct {
	Entries []Entry
	Next    uint64 // where the next chunk begins
	More    bool   // there is one
}
