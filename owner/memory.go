package owner

import "sync/atomic"

// memory counts the bytes of all partitions' arrays against a bound.
type memory struct {
	max  int64
	used atomic.Int64
}

// reserve takes n bytes, unless that would exceed the bound, for a counter that
// may not.
func (m *memory) reserve(n int64, may admission) bool {
	for {
		used := m.used.Load()
		if n > 0 && used+n > m.max && may != beyondBound {
			return false
		}
		if m.used.CompareAndSwap(used, used+n) {
			return true
		}
	}
}

// tight says that less than an eighth is left.
func (m *memory) tight() bool { return m.used.Load() > m.max-m.max/8 }

// admission says whether the bound on memory holds for a counter.
type admission bool

const (
	withinBound admission = false // a new one: there it can be refused
	beyondBound admission = true  // one that another node has counted: to refuse it would forget
)

// add counts bytes that are taken, or with a negative n given back, come what
// may: a counter that exists is never refused.
func (m *memory) add(n int64) {
	if n != 0 {
		m.used.Add(n)
	}
}
