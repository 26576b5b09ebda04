package live

import (
	"errors"
	"fmt"
	"unicode/utf8"
)

// Bounds on what a store holds. What is written here stays below half of the
// latter two, so that the two sides of a partition still fit together.
const (
	MaxBody    = 16 << 20  // of one entity; package rules bounds what may be written far lower
	MaxEntries = 400_000   // tombstones included
	MaxBytes   = 256 << 20 // of all names and bodies
	maxName    = 512
	maxKind    = 32
	maxNode    = 128
	maxCount   = 1 << 62 // far above what writes reach
	// maxLead is how far the count of an entry may be above the store's highest:
	// more than any partition can have written. Else one made-up entry could use up
	// all counts, and nobody could ever write again.
	maxLead = 1 << 32
)

// Errors of writes. Those of a body are package rules'.
var (
	// ErrPrecondition means that the entity is not what the writer took it for.
	ErrPrecondition = errors.New("the precondition does not hold: it was changed meanwhile, or is not there; get it, and write again")
	// ErrNotFound means that there is nothing to delete.
	ErrNotFound = errors.New("there is none of this name")
	// ErrInUse means that clients are in the tier.
	ErrInUse = errors.New("clients are in this tier; give them another first")
	// ErrFull means that there are too many entities, deleted ones included.
	ErrFull = errors.New("there are too many tiers and clients, counting deleted ones")
)

// Check says what no store would have written. Entries of others are checked
// before they are merged.
func (e Entry) Check() error {
	if err := e.Stamp().Check(); err != nil {
		return err
	}
	if len(e.Body) > MaxBody {
		return fmt.Errorf("%s: its body has %d bytes; at most %d are right", e.Name, len(e.Body), MaxBody)
	}
	if !utf8.Valid(e.Body) || e.Body != nil && len(e.Body) == 0 {
		return fmt.Errorf("%s: its body is not JSON", e.Name)
	}
	return nil
}

// Check says what no store would have written. A kind that this version does not
// know is right: the entity is for a later version, and passed on.
func (s Stamp) Check() error {
	kind, name, node := string(s.Name.Kind), s.Name.Name, s.Version.Node
	switch {
	case !isWord(kind):
		return fmt.Errorf("kind %q: want 1 to %d letters a to z", kind[:min(len(kind), maxKind)], maxKind)
	case name == "" || len(name) > maxName || !utf8.ValidString(name):
		return fmt.Errorf("name: %d bytes; want 1 to %d bytes of UTF-8", len(name), maxName)
	case node == "" || len(node) > maxNode || !utf8.ValidString(node):
		return fmt.Errorf("%s: node: %d bytes; want 1 to %d bytes of UTF-8", s.Name, len(node), maxNode)
	case s.Version.Count > maxCount:
		return fmt.Errorf("%s: count %d is above %d", s.Name, s.Version.Count, uint64(maxCount))
	}
	return nil
}

// room is how much a store may hold.
type room struct{ entries, bytes int }

func (r room) half() room { return room{r.entries / 2, r.bytes / 2} }

func isWord(s string) bool {
	for _, c := range []byte(s) {
		if c < 'a' || c > 'z' {
			return false
		}
	}
	return s != "" && len(s) <= maxKind
}
