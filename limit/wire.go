package limit

import (
	"encoding/binary"
	"errors"
	"math"
)

// A Shipped as it travels: a byte that says which parts follow, one bit each,
// and these parts as varints.
//
//	bit 0  A, zigzag
//	bit 1  B
//	bit 2  C
//	bit 3  Log: the number of stamps, and for each by how much it is younger than
//	       the one before (the first: its age) and its cost
//
// The other bits are for later versions; who does not know one refuses it.
const (
	wireA = 1 << iota
	wireB
	wireC
	wireLog
	wireAll = wireA | wireB | wireC | wireLog
)

var errBadShipped = errors.New("a shipped counter is cut short, or is none, or is of an unknown version")

// AppendShipped appends w as it travels. It must be of a Ship.
func AppendShipped(dst []byte, w *Shipped) []byte {
	head := len(dst)
	dst = append(dst, 0)
	if w.A != 0 {
		dst[head] |= wireA
		dst = binary.AppendVarint(dst, w.A)
	}
	if w.B != 0 {
		dst[head] |= wireB
		dst = binary.AppendUvarint(dst, uint64(w.B))
	}
	if w.C != 0 {
		dst[head] |= wireC
		dst = binary.AppendUvarint(dst, uint64(w.C))
	}
	if len(w.Log) > 0 {
		dst[head] |= wireLog
		dst = appendLog(dst, w.Log)
	}
	return dst
}

func appendLog(dst []byte, log []Stamp) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(log)))
	dst = binary.AppendUvarint(dst, uint64(log[0].At))
	for i, e := range log {
		if i > 0 {
			dst = binary.AppendUvarint(dst, uint64(log[i-1].At-e.At))
		}
		dst = binary.AppendUvarint(dst, uint64(e.Cost))
	}
	return dst
}

// CutShipped reads the Shipped that b begins with, which shares no memory with
// b, and returns the rest. It allocates in proportion to b, whatever b says.
// That the parts can be read does not mean that they make sense: for that,
// Receive cares.
func CutShipped(b []byte, w *Shipped) (rest []byte, err error) {
	*w = Shipped{}
	if len(b) == 0 || b[0]&^wireAll != 0 {
		return nil, errBadShipped
	}
	c := cutter{rest: b[1:]}
	if b[0]&wireA != 0 {
		w.A = c.signed()
	}
	if b[0]&wireB != 0 {
		w.B = c.number()
	}
	if b[0]&wireC != 0 {
		w.C = c.number()
	}
	if b[0]&wireLog != 0 {
		w.Log = c.log()
	}
	if c.bad {
		*w = Shipped{}
		return nil, errBadShipped
	}
	return c.rest, nil
}

// cutter reads numbers until one is bad.
type cutter struct {
	rest []byte
	bad  bool
}

func (c *cutter) number() int64 {
	v, n := binary.Uvarint(c.rest)
	return c.cut(int64(v), n, v <= math.MaxInt64)
}

func (c *cutter) signed() int64 {
	v, n := binary.Varint(c.rest)
	return c.cut(v, n, true)
}

func (c *cutter) cut(v int64, n int, ok bool) int64 {
	if c.bad = c.bad || n <= 0 || !ok; c.bad {
		return 0
	}
	c.rest = c.rest[n:]
	return v
}

func (c *cutter) log() []Stamp {
	n := c.number()
	// A stamp takes two bytes at least.
	if c.bad = c.bad || n < 1 || n > MaxLogLimit || n > int64(len(c.rest)/2); c.bad {
		return nil
	}
	log := make([]Stamp, n)
	for i := range log {
		at := c.number()
		if i > 0 {
			at = log[i-1].At - at
		}
		log[i] = Stamp{at, c.number()}
		if c.bad = c.bad || at < 0; c.bad {
			return nil
		}
	}
	return log
}
