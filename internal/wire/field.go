package wire

import (
	"encoding/binary"
	"errors"
	"math"
)

// errMalformed is said of bytes that are no protobuf message.
var errMalformed = errors.New("is not a protobuf message of its type")

// Wire types of protobuf.
const (
	kindVarint = 0
	kindFixed8 = 1 // bytes, not bits
	kindBytes  = 2
	kindGroup  = 3
	kindEnd    = 4
	kindFixed4 = 5
)

// Tags: a field's number and its wire type. A field of another type than ours is one
// that we do not know.
const (
	one   = 1 << 3
	two   = 2 << 3
	three = 3 << 3
	four  = 4 << 3
	five  = 5 << 3
	six   = 6 << 3
	seven = 7 << 3
	eight = 8 << 3
	nine  = 9 << 3
	ten   = 10 << 3
	n11   = 11 << 3
	n12   = 12 << 3
	n13   = 13 << 3
	n14   = 14 << 3
)

// field is one field as it came: a number or bytes, as its tag says.
type field struct {
	tag    uint64
	number uint64
	bytes  string
}

// maxDepth is how deep groups may nest, which no message of ours has.
const maxDepth = 32

// cut reads the first field of s and returns the rest.
func (f *field) cut(s string) (rest string, err error) {
	if f.tag, s, err = cutUvarint(s); err != nil {
		return "", err
	}
	if f.tag>>3 == 0 || f.tag > math.MaxUint32 {
		return "", errMalformed
	}
	switch f.tag & 7 {
	case kindVarint:
		f.number, s, err = cutUvarint(s)
	case kindBytes:
		f.bytes, s, err = cutBytes(s)
	default:
		s, err = skip(s, f.tag, maxDepth)
	}
	return s, err
}

// skip passes over what no message of ours has.
func skip(s string, tag uint64, depth int) (rest string, err error) {
	switch n := len(s); {
	case tag&7 == kindFixed8 && n >= 8:
		return s[8:], nil
	case tag&7 == kindFixed4 && n >= 4:
		return s[4:], nil
	case tag&7 == kindGroup && depth > 0:
		return skipGroup(s, tag, depth)
	}
	return "", errMalformed
}

func skipGroup(s string, start uint64, depth int) (rest string, err error) {
	for {
		var tag uint64
		if tag, s, err = cutUvarint(s); err != nil || tag>>3 == 0 {
			return "", errMalformed
		}
		switch tag & 7 {
		case kindEnd:
			if tag>>3 != start>>3 {
				return "", errMalformed
			}
			return s, nil
		case kindVarint:
			_, s, err = cutUvarint(s)
		case kindBytes:
			_, s, err = cutBytes(s)
		default:
			s, err = skip(s, tag, depth-1)
		}
		if err != nil {
			return "", err
		}
	}
}

func cutUvarint(s string) (v uint64, rest string, err error) {
	if len(s) > 0 && s[0] < 0x80 { // most are
		return uint64(s[0]), s[1:], nil
	}
	for i := 0; i < len(s) && i < binary.MaxVarintLen64; i++ {
		b := s[i]
		v |= uint64(b&0x7f) << (7 * i)
		if b < 0x80 {
			if i == binary.MaxVarintLen64-1 && b > 1 {
				break // over 64 bits
			}
			return v, s[i+1:], nil
		}
	}
	return 0, "", errMalformed
}

func cutBytes(s string) (v, rest string, err error) {
	n, s, err := cutUvarint(s)
	if err != nil || n > uint64(len(s)) {
		return "", "", errMalformed
	}
	return s[:n], s[n:], nil
}

// appendNumber leaves zeros out, as proto3 does.
func appendNumber(b []byte, tag, n uint64) []byte {
	if n == 0 {
		return b
	}
	return appendPresent(b, tag, n)
}

// appendPresent is for optional fields, whose zeros say something.
func appendPresent(b []byte, tag, n uint64) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(b, tag|kindVarint), n)
}

func appendBool(b []byte, tag uint64, v bool) []byte {
	if !v {
		return b
	}
	return appendPresent(b, tag, 1)
}

func appendString(b []byte, tag uint64, s string) []byte {
	if s == "" {
		return b
	}
	b = binary.AppendUvarint(b, tag|kindBytes)
	b = binary.AppendUvarint(b, uint64(len(s)))
	return append(b, s...)
}

// begin starts a message in a message, which end closes.
func begin(b []byte, tag uint64) (_ []byte, at int) {
	b = append(binary.AppendUvarint(b, tag|kindBytes), 0)
	return b, len(b)
}

// end writes the length of what came since begin. Most are short; what is longer
// has to move over.
func end(b []byte, at int) []byte {
	n := len(b) - at
	if n < 0x80 {
		b[at-1] = byte(n)
		return b
	}
	var length [binary.MaxVarintLen64]byte
	more := binary.PutUvarint(length[:], uint64(n)) - 1
	b = append(b, length[:more]...)
	copy(b[at+more:], b[at:at+n])
	copy(b[at-1:], length[:more+1])
	return b
}
