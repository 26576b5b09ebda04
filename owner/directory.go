package owner

import (
	"iter"
	"math/bits"
	"sync/atomic"
	"unsafe"
)

// directory leads from an ID to its segment by the leading bits of Lo. It has a
// power of two of entries; a segment of a wider range has several. So one segment
// can be split while all others stay as they are (Fagin et al., "Extendible
// hashing", 1979).
type directory []atomic.Pointer[segment]

const entrySize = int64(unsafe.Sizeof(atomic.Pointer[segment]{}))

// divided is a directory of bare segments, 2^depth of them.
func divided(depth uint8) directory {
	d := make(directory, 1<<depth)
	for i := range d {
		d[i].Store(&segment{low: uint64(i) << (64 - depth), slots: slots{depth: depth}})
	}
	return d
}

// of is the segment of an ID. The directory is not empty.
func (d directory) of(lo uint64) *segment { return d[d.index(lo)].Load() }

func (d directory) index(lo uint64) int {
	hi, _ := bits.Mul64(lo, uint64(len(d)))
	return int(hi)
}

// put lets all entries of its range lead to the segment.
func (d directory) put(s *segment) {
	first := d.index(s.low)
	for i := range len(d) >> s.slots.depth {
		d[first+i].Store(s)
	}
}

// doubled is the same with twice the entries.
func (d directory) doubled() directory {
	twice := make(directory, 2*len(d))
	for i := range twice {
		twice[i].Store(d[i/2].Load())
	}
	return twice
}

// all is the segments, in order.
func (d directory) all() iter.Seq[*segment] {
	return func(yield func(*segment) bool) {
		for i := 0; i < len(d); {
			s := d[i].Load()
			if !yield(s) {
				return
			}
			i += len(d) >> s.slots.depth
		}
	}
}

func (d directory) bytes() int64 {
	sum := int64(len(d)) * entrySize
	for s := range d.all() {
		sum += s.bytes()
	}
	return sum
}
