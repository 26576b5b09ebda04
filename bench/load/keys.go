// Package load asks a rival as fast as a number of callers can, each of whom
// waits for an answer before it asks again.
package load

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
)

// Spread says which keys are asked for: One, or Count keys, each as often as the
// next (Uniform), or the first ones most (Zipf, with exponent 1.1).
type Spread struct {
	Kind  Kind
	Count int
}

// Kind is how often keys are asked for.
type Kind string

// The kinds of Spread.
const (
	One     Kind = "one"
	Uniform Kind = "uniform"
	Zipf    Kind = "zipf"
)

// maxKeys bounds a spread: all names are kept in memory.
const maxKeys = 10_000_000

// ParseSpread reads "one", "uniform-10k", "zipf-1M" or "uniform-500".
func ParseSpread(text string) (Spread, error) {
	kind, count, _ := strings.Cut(text, "-")
	if Kind(kind) == One && count == "" {
		return Spread{One, 1}, nil
	}
	factor := 1
	switch {
	case strings.HasSuffix(count, "k"):
		factor, count = 1_000, strings.TrimSuffix(count, "k")
	case strings.HasSuffix(count, "M"):
		factor, count = 1_000_000, strings.TrimSuffix(count, "M")
	}
	n, err := strconv.Atoi(count)
	if (Kind(kind) != Uniform && Kind(kind) != Zipf) || err != nil || n < 1 || n > maxKeys/factor {
		return Spread{}, fmt.Errorf("keys: %q must be one, uniform-N or zipf-N, with N from 1 to 10M, such as uniform-10k", text)
	}
	return Spread{Kind(kind), n * factor}, nil
}

// String is what ParseSpread reads.
func (s Spread) String() string {
	switch {
	case s.Kind == One:
		return string(One)
	case s.Count%1_000_000 == 0:
		return fmt.Sprintf("%s-%dM", s.Kind, s.Count/1_000_000)
	case s.Count%1_000 == 0:
		return fmt.Sprintf("%s-%dk", s.Kind, s.Count/1_000)
	}
	return fmt.Sprintf("%s-%d", s.Kind, s.Count)
}

// Cell is a place in the table: how many callers ask for which keys.
type Cell struct {
	Callers int    `json:"callers"`
	Keys    string `json:"keys"` // a Spread
}

// String is the cell for people.
func (c Cell) String() string {
	if c.Callers == 1 {
		return "1 caller, " + c.Keys
	}
	return fmt.Sprintf("%d callers, %s", c.Callers, c.Keys)
}

// nameWidth is the length of every key.
const nameWidth = 17

// Name is key number i.
func Name(i int) string { return fmt.Sprintf("customer-%08d", i) }

// draws is how long the sequence is before it repeats. Every rival gets the same.
const draws = 1 << 20

// Keys is a sequence of keys. Both parts are read in order or by one read of
// memory, so that little of what is measured is the choice of a key.
type Keys struct {
	names string // all of them, one after the other
	order []uint32
}

// NewKeys draws the sequence of a spread, the same each time.
func NewKeys(s Spread) *Keys {
	var names strings.Builder
	names.Grow(s.Count * nameWidth)
	for i := range s.Count {
		names.WriteString(Name(i))
	}
	k := &Keys{names: names.String(), order: make([]uint32, draws)}
	draw := drawer(s)
	for i := range k.order {
		k.order[i] = draw()
	}
	return k
}

func drawer(s Spread) func() uint32 {
	rng := rand.New(rand.NewPCG(1, uint64(s.Count)))
	if s.Kind == Zipf {
		zipf := rand.NewZipf(rng, 1.1, 1, uint64(s.Count-1))
		return func() uint32 { return uint32(zipf.Uint64()) }
	}
	return func() uint32 { return rng.Uint32N(uint32(s.Count)) }
}

// at is the key at a place of the sequence, which goes round.
func (k *Keys) at(place int) string {
	i := int(k.order[place&(draws-1)])
	return k.names[i*nameWidth : (i+1)*nameWidth]
}
