package judge

import (
	"cmp"
	"math/bits"
	"time"

	"github.com/ringlimit/ringlimit/chaos/scenario"
)

// Admits is A: the most that the class's algorithm admits by definition to one
// key from the wall time from to the wall time to, both included, when the key
// was new at from.
func Admits(c *scenario.Class, from, to time.Time) int64 {
	span := to.Sub(from)
	switch c.Algorithm {
	case "token_bucket", "leaky_bucket":
		return Capacity(c) + refilled(c, span)
	case "sliding_window_log": // any span of one window holds at most the limit
		return c.Limit * (int64(span/c.Window) + 1)
	}
	return c.Limit * windows(c, from, to)
}

// Capacity is the most that the class admits at once.
func Capacity(c *scenario.Class) int64 {
	switch c.Algorithm {
	case "token_bucket":
		return cmp.Or(c.Burst, c.Limit)
	case "leaky_bucket":
		return 1 + c.Burst
	}
	return c.Limit
}

// refilled is floor(limit * span / window). The product can exceed 64 bits.
func refilled(c *scenario.Class, span time.Duration) int64 {
	high, low := bits.Mul64(uint64(c.Limit), uint64(span))
	whole, _ := bits.Div64(high%uint64(c.Window), low, uint64(c.Window))
	return int64(whole)
}

// windows counts the aligned windows that from and to touch, those between
// included.
func windows(c *scenario.Class, from, to time.Time) int64 {
	w := int64(c.Window)
	return to.UnixNano()/w - from.UnixNano()/w + 1
}
