package owner

import "github.com/zeebo/xxh3"

// ID is a counter's identity: a hash of its name. Two counters among 10⁹ share
// one with odds of 10⁻²¹.
type ID struct{ Hi, Lo uint64 }

// Seed comes from the cluster's secret. Without it a client could choose keys
// that all fall on one node: the hash itself is public.
type Seed uint64

// ID names the counter.
func (s Seed) ID(counter []byte) ID {
	h := xxh3.Hash128Seed(counter, uint64(s))
	return ID{h.Hi, h.Lo}
}
