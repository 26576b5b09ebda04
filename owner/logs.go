package owner

import (
	"math/bits"
	"unsafe"

	"github.com/ringlimit/ringlimit/limit"
)

// logs holds the stamps of the partition's sliding_window_log counters in
// blocks. A block of class k has places for 2^k stamps. The blocks of a class
// stand without gaps: who frees one moves the last into the hole, so that
// memory shrinks as counters go, and no free list can fragment.
type logs struct {
	classes []class
}

// class keeps its blocks in chunks, because one large array would have to be
// copied whole to grow.
type class struct {
	chunks []chunk
	blocks int // that are in use
}

type chunk struct {
	stamps []limit.Stamp
	owners []ID // the counter of each block
}

// block names a block and the length of the log in it: index<<32 | length. The
// zero block is no log.
type block uint64

const (
	stampSize  = int64(unsafe.Sizeof(limit.Stamp{}))
	ownerSize  = int64(unsafe.Sizeof(ID{}))
	chunkClass = 7 // blocks of 2^7 stamps (2 KiB) or more have a chunk each
)

func newBlock(index, length int) block { return block(index)<<32 | block(length) }

func (b block) length() int { return int(uint32(b)) }
func (b block) index() int  { return int(b >> 32) }
func (b block) class() int  { return classOf(b.length()) }

// classOf is the class for logs of that length, which is at least 1.
func classOf(length int) int { return bits.Len(uint(length - 1)) }

// shared is how many blocks of class k share a chunk, as a power of two.
func shared(k int) int { return max(0, chunkClass-k) }

func chunkBytes(k int) int64 { return (stampSize<<k + ownerSize) << shared(k) }

// place is the whole block.
func (c *class) place(k, index int) []limit.Stamp {
	start := index & (1<<shared(k) - 1) << k
	return c.chunks[index>>shared(k)].stamps[start : start+1<<k]
}

// owner is the counter whose block has that index.
func (c *class) owner(k, index int) *ID {
	return &c.chunks[index>>shared(k)].owners[index&(1<<shared(k)-1)]
}

// at is the log in the block. An append to it cannot reach the next block.
func (l *logs) at(b block) []limit.Stamp {
	if b == 0 {
		return nil
	}
	k, n := b.class(), b.length()
	return l.classes[k].place(k, b.index())[:n:n]
}

// need is how many bytes put would allocate for a log of that length.
func (l *logs) need(length int) int64 {
	if length == 0 {
		return 0
	}
	k := classOf(length)
	if k < len(l.classes) && !l.classes[k].full(k) {
		return 0
	}
	return chunkBytes(k)
}

func (c *class) full(k int) bool { return c.blocks == len(c.chunks)<<shared(k) }

// put copies a log of that counter into a block of its own.
func (l *logs) put(id ID, log []limit.Stamp) block {
	if len(log) == 0 {
		return 0
	}
	k := classOf(len(log))
	for len(l.classes) <= k {
		l.classes = append(l.classes, class{})
	}
	c := &l.classes[k]
	if c.full(k) {
		c.chunks = append(c.chunks, chunk{make([]limit.Stamp, 1<<(k+shared(k))), make([]ID, 1<<shared(k))})
	}
	b := newBlock(c.blocks, len(log))
	c.blocks++
	*c.owner(k, b.index()) = id
	copy(l.at(b), log)
	return b
}

// rewrite puts another log, of the same class, into the block.
func (l *logs) rewrite(b block, log []limit.Stamp) block {
	b = newBlock(b.index(), len(log))
	copy(l.at(b), log)
	return b
}

// free gives a block back. When another counter's block moves into its place,
// that counter's ID is returned: its block now has the index of b. released
// counts the bytes that went with empty chunks.
func (l *logs) free(b block) (moved ID, ok bool, released int64) {
	if b == 0 {
		return ID{}, false, 0
	}
	k, hole := b.class(), b.index()
	c := &l.classes[k]
	last := c.blocks - 1
	if hole != last {
		copy(c.place(k, hole), c.place(k, last))
		moved, ok = *c.owner(k, last), true
		*c.owner(k, hole) = moved
	}
	c.blocks = last
	return moved, ok, c.shrink(k)
}

// shrink drops empty chunks and returns their bytes. One is kept while there
// are blocks, so that a counter that comes and goes does not allocate each time.
func (c *class) shrink(k int) (released int64) {
	for n := len(c.chunks); n > 0 && c.blocks <= max(0, n-2)<<shared(k); n-- {
		c.chunks[n-1] = chunk{}
		c.chunks = c.chunks[:n-1]
		released += chunkBytes(k)
	}
	if c.blocks == 0 {
		*c = class{}
	}
	return released
}

func (l *logs) bytes() (sum int64) {
	for k := range l.classes {
		sum += int64(len(l.classes[k].chunks)) * chunkBytes(k)
	}
	return sum
}
