package transfer

import "github.com/ringlimit/ringlimit/owner"

// Store is what a core needs of an owner.Table, which is one.
type Store interface {
	// SetPhase changes a partition's phase. None drops its counters. Nothing is
	// decided in a phase but Holding from the moment of the change on.
	SetPhase(partition int, phase owner.Phase)
	// Export returns the next counters of a partition and where to go on.
	Export(partition int, now int64, from owner.Cursor, most int) (entries []owner.Entry, next owner.Cursor, done bool)
	// ExportThese returns the counters with these IDs, as far as there are any.
	ExportThese(partition int, now int64, ids []owner.ID) []owner.Entry
	// Import merges counters into a partition that is acquired or held: the
	// most restrictive of two states wins. Its error says which of them no
	// honest node sends; the others are merged.
	Import(partition int, now int64, entries []owner.Entry) error
}

// Chunk is some of a partition's counters.
type Chunk struct {
	Entries []owner.Entry
	Next    owner.Cursor // where the next chunk begins
	More    bool         // there is one
	// With the first chunk, about how many counters all chunks bring and of how
	// many bytes their names are; else 0.
	Counters, Names int
}

func (c *Core) export(p int, from owner.Cursor) Chunk {
	entries, next, done := c.cfg.Store.Export(p, c.now, from, c.cfg.Chunk)
	return Chunk{Entries: entries, Next: next, More: !done}
}

// take merges counters that came. What is unusable in them does not keep the
// rest from coming; nobody is worse off than if it had been lost.
func (c *Core) take(p int, entries []owner.Entry) {
	if err := c.cfg.Store.Import(p, c.now, entries); err != nil {
		c.do(Complain{p, err})
	}
}
