package gossip

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/hashicorp/memberlist"

	"github.com/ringlimit/ringlimit/membership"
)

// What a member says of itself travels in memberlist's Meta:
//
//	byte    format, 1
//	byte    state
//	byte    flags: bit 0 owner
//	uint64  boot, little endian
//	uint64  placement of its ring, little endian
//	string  id, then peer, then http: each a length in one byte, then the bytes
//	uint64  sequence, little endian
//	uint64  version of its rules, then their digest, little endian
//
// A node of an earlier version leaves out the last line, or the last two: zeros.
//
// What follows is ignored, so that a later version may append fields and be
// understood by its neighbour. Anything else is a new format.
const (
	metaFormat = 1
	flagOwner  = 1
	metaFixed  = 3 + 8 + 8
	maxID      = 128
	maxString  = 255
	metaSeq    = 8
	metaRules  = 8 + 8
	maxStrings = memberlist.MetaMaxSize - metaFixed - 3 - metaSeq - metaRules // all three together
)

// errMeta is the reason for a Meta that is cut short or makes no sense.
var errMeta = errors.New("damaged member record")

// encodeMeta fails when the record does not fit: memberlist would panic on it.
func encodeMeta(m membership.Member) ([]byte, error) {
	if len(m.ID) == 0 || len(m.ID) > maxID {
		return nil, fmt.Errorf("id: %d bytes, want 1 to %d", len(m.ID), maxID)
	}
	b := []byte{metaFormat, byte(m.State), 0}
	if m.Owner {
		b[2] |= flagOwner
	}
	b = binary.LittleEndian.AppendUint64(b, uint64(m.Boot))
	b = binary.LittleEndian.AppendUint64(b, m.Ring)
	for _, s := range []string{string(m.ID), m.Peer, m.HTTP} {
		if len(s) > maxString {
			return nil, fmt.Errorf("address %.20q…: %d bytes, want at most %d", s, len(s), maxString)
		}
		b = append(append(b, byte(len(s))), s...)
	}
	if strings := len(b) - metaFixed - 3; strings > maxStrings {
		return nil, fmt.Errorf("id, peer and http address take %d bytes together, %d fit", strings, maxStrings)
	}
	for _, n := range []uint64{m.Seq, m.Rules.Version, m.Rules.Digest} {
		b = binary.LittleEndian.AppendUint64(b, n)
	}
	return b, nil
}

// decodeMeta accepts what encodeMeta makes, with bytes after it or not.
func decodeMeta(b []byte) (membership.Member, error) {
	if len(b) < metaFixed || b[0] != metaFormat {
		return membership.Member{}, errMeta
	}
	m := membership.Member{
		State: membership.State(b[1]),
		Owner: b[2]&flagOwner != 0,
		Boot:  membership.BootID(binary.LittleEndian.Uint64(b[3:])),
		Ring:  binary.LittleEndian.Uint64(b[11:]),
	}
	rest := b[metaFixed:]
	var id string
	for _, s := range []*string{&id, &m.Peer, &m.HTTP} {
		if len(rest) == 0 || len(rest) < 1+int(rest[0]) {
			return membership.Member{}, errMeta
		}
		*s, rest = string(rest[1:1+int(rest[0])]), rest[1+int(rest[0]):]
	}
	if !decodeTail(&m, rest) {
		return membership.Member{}, errMeta
	}
	m.ID = membership.NodeID(id)
	if id == "" || len(id) > maxID || m.State < membership.Joining || m.State > membership.Draining {
		return membership.Member{}, errMeta
	}
	return m, nil
}

// decodeTail reads what later versions have appended.
func decodeTail(m *membership.Member, b []byte) bool {
	if len(b) >= metaSeq {
		m.Seq, b = binary.LittleEndian.Uint64(b), b[metaSeq:]
		if len(b) >= metaRules {
			m.Rules = membership.RulesSummary{Version: binary.LittleEndian.Uint64(b), Digest: binary.LittleEndian.Uint64(b[8:])}
			return true
		}
	}
	return len(b) == 0
}
