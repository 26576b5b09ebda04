// Package keyspace names the keys of a run and the rules that limit them. A key
// is a number to the history and the judge; its text is only for the wire.
package keyspace

import (
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/ringlimit/ringlimit/chaos/scenario"
)

// Space numbers the keys of all classes, generation after generation. A new
// generation has as many keys as the one before, none of them ever asked for.
// Safe for concurrent use.
type Space struct {
	classes    []scenario.Class // those for once come last
	starts     []int            // of each class within a generation
	size, once int              // keys of a generation; those of them that are for once
	generation atomic.Int32
}

// New begins with generation 0.
func New(classes []scenario.Class) *Space {
	s := &Space{}
	for _, once := range []bool{false, true} {
		for _, c := range classes {
			if c.Once == once {
				s.add(c)
			}
		}
	}
	return s
}

func (s *Space) add(c scenario.Class) {
	s.classes = append(s.classes, c)
	s.starts = append(s.starts, s.size)
	s.size += c.Keys
	if c.Once {
		s.once += c.Keys
	}
}

// Classes lists the classes.
func (s *Space) Classes() []scenario.Class { return s.classes }

// Fresh begins a new generation.
func (s *Space) Fresh() { s.generation.Add(1) }

// Size is the number of keys of a generation that are asked for again and again.
func (s *Space) Size() int { return s.size - s.once }

// Key is the i-th of the current generation.
func (s *Space) Key(i int) uint32 { return uint32(int(s.generation.Load())*s.size + i) }

// Current lists the keys of the current generation but those for once.
func (s *Space) Current() []uint32 { return s.list(0, s.Size()) }

// Once lists the keys of the current generation that are for once.
func (s *Space) Once() []uint32 { return s.list(s.Size(), s.size) }

func (s *Space) list(from, to int) []uint32 {
	keys := make([]uint32, 0, to-from)
	for i := from; i < to; i++ {
		keys = append(keys, s.Key(i))
	}
	return keys
}

// Class is the rule of a key.
func (s *Space) Class(key uint32) *scenario.Class {
	within := int(key) % s.size
	i := len(s.starts) - 1
	for s.starts[i] > within {
		i--
	}
	return &s.classes[i]
}

// Name is the key's text.
func (s *Space) Name(key uint32) string {
	return fmt.Sprintf("%s-%d-%d", s.Class(key).Name, int(key)/s.size, int(key)%s.size)
}

// Route is what makes the key's rule match.
func (s *Space) Route(key uint32) string { return "GET /" + s.Class(key).Name }

// Rules is the rule file that gives each class its rule.
func (s *Space) Rules() []byte {
	var b strings.Builder
	b.WriteString("tiers:\n  default:\n")
	for i := range s.classes {
		c := &s.classes[i]
		fmt.Fprintf(&b, "    - %s\n", Rule(c, c.Limit))
	}
	return []byte(b.String())
}

// Rule is the rule of a class with another limit, as JSON, which is YAML too.
func Rule(c *scenario.Class, limit int64) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, `{"name":%q,"route_pattern":"GET /%s","algorithm":%q,"limit":%d,"window":"%dms","on_failure":%q`,
		c.Name, c.Name, c.Algorithm, limit, c.Window.Milliseconds(), c.OnFailure)
	if c.Burst > 0 {
		fmt.Fprintf(&b, `,"burst":%d`, c.Burst)
	}
	if c.Durability != "auto" {
		fmt.Fprintf(&b, `,"durability":%q`, c.Durability)
	}
	b.WriteString("}")
	return []byte(b.String())
}
