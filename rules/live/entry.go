package live

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/url"

	"github.com/ringlimit/ringlimit/rules"
)

// Version orders the writes of an entity: by Count, then by Node.
type Version struct {
	// Count is a Lamport count: each write takes one more than the highest that
	// its node has seen in any entity. 0: the entity is from a rule file that
	// seeded a cluster without rules, so that any write is later.
	Count uint64
	// Node is who wrote it. For Count 0 it is a hash of the content: nodes that
	// are seeded with equal files have equal entries.
	Node string
}

// Compare is negative when v is the earlier one.
func (v Version) Compare(w Version) int {
	return cmp.Or(cmp.Compare(v.Count, w.Count), cmp.Compare(v.Node, w.Node))
}

// Stamp is an entry without its content.
type Stamp struct {
	Name    rules.EntityName
	Version Version
	// Sum is of the content. It decides between contents of one version: a node
	// that lost its memory while it was cut off may give a version twice.
	Sum uint64
}

// Compare orders stamps of one entity; negative: s is the earlier one.
func (s Stamp) Compare(t Stamp) int {
	return cmp.Or(s.Version.Compare(t.Version), cmp.Compare(s.Sum, t.Sum))
}

// hash is the stamp's part in a digest.
func (s Stamp) hash() uint64 {
	b := make([]byte, 0, 128)
	for _, part := range []string{string(s.Name.Kind), s.Name.Name, s.Version.Node} {
		b = append(binary.AppendUvarint(b, uint64(len(part))), part...)
	}
	b = binary.LittleEndian.AppendUint64(b, s.Version.Count)
	b = binary.LittleEndian.AppendUint64(b, s.Sum)
	sum := sha256.Sum256(b)
	return binary.LittleEndian.Uint64(sum[:])
}

// Entry is the latest write of an entity.
type Entry struct {
	Name    rules.EntityName
	Version Version
	Body    []byte // canonical JSON; nil: deleted
}

// Stamp is what the others compare.
func (e Entry) Stamp() Stamp { return Stamp{e.Name, e.Version, e.sum()} }

// sum is never 0 for a body: a tombstone differs from it.
func (e Entry) sum() uint64 {
	if e.Body == nil {
		return 0
	}
	sum := sha256.Sum256(e.Body)
	return binary.LittleEndian.Uint64(sum[:]) | 1
}

// ETag is the entry's entity tag; see [Stamp.ETag].
func (e Entry) ETag() string { return e.Stamp().ETag() }

// ETag is the stamp as a strong entity tag, quotes included. The sum is in it because
// a version alone may be given to two contents; see [Stamp]. What would end a tag or
// a list of them is escaped.
func (s Stamp) ETag() string {
	return fmt.Sprintf(`"%d-%s-%016x"`, s.Version.Count, url.PathEscape(s.Version.Node), s.Sum)
}

// SeedOf is the entry of an entity in a rule file; body is its canonical one.
func SeedOf(name rules.EntityName, body []byte) Entry {
	sum := sha256.Sum256(body)
	return Entry{name, Version{Node: hex.EncodeToString(sum[:8])}, body}
}

// Summary tells the rules of two nodes apart. Equal digests mean equal entries.
type Summary struct {
	Version uint64 // the highest Count
	Digest  uint64 // of the names and versions of all entries; 0: there are none
}
