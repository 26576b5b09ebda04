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
	// Size is how many counters a partition has, and of how many bytes their
	// names are.
	Size(partition int) (counters, names int)
	// Expect makes room for so many counters more that Import is about to bring.
	Expect(partition int, counters, names int)
}

const (
	exportAtOnce = 16  // counters, before a look at how long their logs are
	stampsWorth  = 128 // stamps of a log weigh as much as another counter
)

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
	chunk := Chunk{Entries: entries, Next: next, More: !done}
	if from == 0 {
		chunk.Counters, chunk.Names = c.cfg.Store.Size(p)
	}
	return chunk
}

// exportThese exports the first n of these counters: all of them, unless their
// logs are so long that they would fill more than a message.
func (c *Core) exportThese(p int, ids []owner.ID) (entries []owner.Entry, n int) {
	for heavy := 0; n < len(ids) && heavy < c.cfg.Chunk; {
		some := ids[n:min(n+exportAtOnce, len(ids))]
		more := c.cfg.Store.ExportThese(p, c.now, some)
		entries, n, heavy = append(entries, more...), n+len(some), heavy+weight(more)
	}
	return entries, n
}

// weight is how many counters these are worth in a message.
func weight(entries []owner.Entry) int {
	w := len(entries)
	for i := range entries {
		w += len(entries[i].State.Log) / stampsWorth
	}
	return w
}

// take merges counters that came. What is unusable in them does not keep the
// rest from coming; nobody is worse off than if it had been lost.
func (c *Core) take(p int, chunk *Chunk) {
	if chunk.Counters > 0 {
		// Mostly they are those that are here already, as a copy.
		counters, names := c.cfg.Store.Size(p)
		c.cfg.Store.Expect(p, chunk.Counters-counters, chunk.Names-names)
	}
	if err := c.cfg.Store.Import(p, c.now, chunk.Entries); err != nil {
		c.do(Complain{p, err})
	}
}
