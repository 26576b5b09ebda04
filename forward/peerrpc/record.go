package peerrpc

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/ringlimit/ringlimit/limit"
)

// A check as it travels:
//
//	byte     the mode in the two low bits, bit 2: a rule's body follows, bit 3: the
//	         check is decided together with the one before it, bit 4: its refusal
//	         does not refuse those, bit 5: an age follows
//	8 bytes  the rule's id, little-endian
//	uvarint  the cost
//	uvarint  how long ago it was taken, in nanoseconds (only with bit 5)
//	uvarint  the length of the counter's name, and the name
//	uvarint  the length of the rule's body, and the body (only with bit 2)
//
// The rule's body is its Spec in JSON. It is sent to an owner that has said
// that it lacks the rule. Bits 3 to 5 are sent to owners of version 4 and later.

// Bounds on a record and on a frame. Longest name: a key, a route and 32
// attributes, each as long as package limit allows.
const (
	maxName    = 32 << 10
	maxBody    = limit.MaxSpecBytes
	maxRecords = 512
	frameBytes = 16 << 10 // a frame that has records takes no more beyond this
	maxFrame   = frameBytes + maxName + maxBody
	maxReply   = maxRecords*(maxHint+16) + 32 // every check "not mine"
)

const (
	modeMask = 0b011
	withBody = 0b100
	joined   = 0b1000
	shadow   = 0b10000
	withAge  = 0b100000
	allBits  = modeMask | withBody | joined | shadow | withAge
)

var errBadFrame = errors.New("a frame is cut short, too long, or no frame at all")

// record is a check on the wire. Name and body alias the frame they were read
// from.
type record struct {
	mode limit.Mode
	rule limit.RuleID
	cost int64
	name []byte
	body []byte
	age  time.Duration // of what a Refund gives back; 0: not known

	joined, shadow bool // see owner.Call
}

// valid says whether the record states a check that can be judged. A record
// that does not is rejected by itself; the frame goes on.
func (r *record) valid() bool {
	return r.mode <= limit.Refund && r.cost >= 1 && r.cost <= limit.MaxCost && len(r.name) > 0
}

// maxSize bounds what appendRecord adds, for a frame to have room.
func (r *record) maxSize() int { return 1 + 8 + 4*binary.MaxVarintLen64 + len(r.name) + len(r.body) }

func appendRecord(b []byte, r *record) []byte {
	head := byte(r.mode)
	if r.body != nil {
		head |= withBody
	}
	if r.joined {
		head |= joined
	}
	if r.shadow {
		head |= shadow
	}
	if r.age > 0 {
		head |= withAge
	}
	b = append(b, head)
	b = binary.LittleEndian.AppendUint64(b, uint64(r.rule))
	b = binary.AppendUvarint(b, uint64(r.cost))
	if r.age > 0 {
		b = binary.AppendUvarint(b, uint64(r.age))
	}
	b = binary.AppendUvarint(b, uint64(len(r.name)))
	b = append(b, r.name...)
	if r.body != nil {
		b = binary.AppendUvarint(b, uint64(len(r.body)))
		b = append(b, r.body...)
	}
	return b
}

// cutRecord reads the first record of b and returns the rest. It allocates
// nothing, whatever the lengths in b say.
func cutRecord(b []byte, r *record) (rest []byte, err error) {
	if len(b) < 9 || b[0]&^allBits != 0 {
		return nil, errBadFrame
	}
	head := b[0]
	*r = record{
		mode: limit.Mode(head & modeMask), rule: limit.RuleID(binary.LittleEndian.Uint64(b[1:])),
		joined: head&joined != 0, shadow: head&shadow != 0,
	}
	cost, b, err := cutUvarint(b[9:])
	if err != nil {
		return nil, err
	}
	r.cost = int64(min(cost, limit.MaxCost+1)) // too much stays too much
	if head&withAge != 0 {
		var age uint64
		if age, b, err = cutUvarint(b); err != nil {
			return nil, err
		}
		r.age = time.Duration(min(age, uint64(maxDuration)))
	}
	if r.name, b, err = cutBytes(b, maxName); err != nil {
		return nil, err
	}
	if head&withBody != 0 {
		r.body, b, err = cutBytes(b, maxBody)
	}
	return b, err
}

func cutUvarint(b []byte) (v uint64, rest []byte, err error) {
	v, n := binary.Uvarint(b)
	if n <= 0 {
		return 0, nil, errBadFrame
	}
	return v, b[n:], nil
}

func cutBytes(b []byte, most uint64) (v, rest []byte, err error) {
	n, b, err := cutUvarint(b)
	if err != nil || n > most || n > uint64(len(b)) {
		return nil, nil, errBadFrame
	}
	return b[:n:n], b[n:], nil
}
