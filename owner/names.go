package owner

import (
	"encoding/binary"
	"math/bits"
)

// names holds the counters' names, each behind its length, one after the
// other. A name is written when its counter comes to be and read by listings
// and hand-over alone. A dropped one stays as garbage until its segment is built
// anew. Nothing is ever overwritten.
type names struct {
	text    []byte
	garbage int
}

// nameSize is how many bytes a name takes here.
func nameSize(name []byte) int {
	return len(name) + max(1, (bits.Len(uint(len(name)))+6)/7)
}

// add appends a name and returns where it lies. The caller has made room.
func (n *names) add(name []byte) uint32 {
	at := uint32(len(n.text))
	n.text = binary.AppendUvarint(n.text, uint64(len(name)))
	n.text = append(n.text, name...)
	return at
}

// at is the name that lies there.
func (n *names) at(offset uint32) []byte {
	size, k := binary.Uvarint(n.text[offset:])
	start := uint64(offset) + uint64(k)
	return n.text[start : start+size : start+size]
}

// drop makes the name that lies there garbage.
func (n *names) drop(offset uint32) { n.garbage += nameSize(n.at(offset)) }

// live is how many bytes are no garbage.
func (n *names) live() int { return len(n.text) - n.garbage }

// littered says that at least an n-th part is garbage.
func (n *names) littered(part int) bool { return n.garbage > 0 && n.garbage*part >= len(n.text) }

// sparse says that an eighth of the room would do: more was expected than came. A
// new segment for one counter has room for six.
func (n *names) sparse() bool { return len(n.text)*8 < cap(n.text) }

func (n *names) bytes() int64 { return int64(cap(n.text)) }
