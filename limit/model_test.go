package limit

import (
	"math/big"
	"slices"
	"sort"
	"time"
)

// model is an algorithm in its most obvious form: it keeps the whole history,
// reckons in exact rationals and cares for nothing else. The laws hold the real
// algorithms against it.
type model interface {
	clock(now int64) int64   // now as the counter sees it: time does not run back
	left(at int64) *big.Rat  // what could be taken at that time; may be negative
	charge(at, cost int64)   // of a request that fits
	giveBack(at, cost int64) // of a refund
}

func newModel(s Spec) model {
	switch s.Algorithm {
	case FixedWindow:
		return &windowModel{limit: s.Limit, label: labels(s)}
	case SlidingWindowLog:
		return &logModel{limit: s.Limit, window: int64(s.Window)}
	case SlidingWindowCounter:
		return &counterModel{limit: s.Limit, window: int64(s.Window), counts: map[int64]int64{}}
	}
	return &bucketModel{spec: s, capacity: integer(s.capacity()), missing: new(big.Rat)}
}

func integer(n int64) *big.Rat         { return new(big.Rat).SetInt64(n) }
func ratio(a, b int64) *big.Rat        { return big.NewRat(a, b) }
func minus(a, b *big.Rat) *big.Rat     { return new(big.Rat).Sub(a, b) }
func times(a, b *big.Rat) *big.Rat     { return new(big.Rat).Mul(a, b) }
func atLeast(a *big.Rat, n int64) bool { return a.Cmp(integer(n)) >= 0 }
func clip(a, low, high *big.Rat) *big.Rat {
	switch {
	case a.Cmp(low) < 0:
		return low
	case a.Cmp(high) > 0:
		return high
	}
	return a
}

func floor(a *big.Rat) int64 {
	q := new(big.Int)
	return q.Div(a.Num(), a.Denom()).Int64() // Euclidean: down for a positive divisor
}

func ceil(a *big.Rat) int64 { return -floor(new(big.Rat).Neg(a)) }

// bucketModel counts tokens: they come in at the rate and stop at the capacity.
type bucketModel struct {
	spec     Spec
	capacity *big.Rat
	missing  *big.Rat // tokens, at last
	last     int64
}

func (m *bucketModel) clock(now int64) int64 { return max(now, m.last) }

func (m *bucketModel) lack(at int64) *big.Rat {
	came := times(integer(at-m.last), ratio(m.spec.Limit, int64(m.spec.Window)))
	return clip(minus(m.missing, came), new(big.Rat), m.capacity)
}

func (m *bucketModel) left(at int64) *big.Rat { return minus(m.capacity, m.lack(at)) }

func (m *bucketModel) charge(at, cost int64) {
	m.missing = new(big.Rat).Add(m.lack(at), integer(cost))
	m.last = at
}

func (m *bucketModel) giveBack(at, cost int64) {
	if lack := m.lack(at); lack.Sign() > 0 {
		m.missing = clip(minus(lack, integer(cost)), new(big.Rat), m.capacity)
		m.last = at
	}
}

type charged struct{ at, cost int64 }

// windowModel sums what was charged under the same label as now.
type windowModel struct {
	limit   int64
	label   func(at int64) string
	charges []charged
	last    int64
}

func labels(s Spec) func(int64) string {
	layout := "2006-01-02"
	switch s.Calendar {
	case NoCalendar:
		return func(at int64) string { return integer(at / int64(s.Window)).String() }
	case CalendarMonth:
		layout = "2006-01"
	}
	zone, err := time.LoadLocation(s.Timezone)
	if err != nil {
		panic(err)
	}
	return func(at int64) string { return time.Unix(0, at).In(zone).Format(layout) }
}

func (m *windowModel) clock(now int64) int64 {
	if now >= m.last {
		return now
	}
	want := m.label(m.last)
	return now + int64(sort.Search(int(m.last-now), func(i int) bool { return m.label(now+int64(i)) == want }))
}

func (m *windowModel) left(at int64) *big.Rat {
	left := m.limit
	for _, c := range m.charges {
		if m.label(c.at) == m.label(at) {
			left -= c.cost
		}
	}
	return integer(left)
}

func (m *windowModel) charge(at, cost int64) {
	m.charges, m.last = append(m.charges, charged{at, cost}), at
}

func (m *windowModel) giveBack(at, cost int64) {
	for i := range m.charges {
		if c := &m.charges[i]; m.label(c.at) == m.label(at) {
			part := min(cost, c.cost)
			c.cost -= part
			cost -= part
		}
	}
}

// logModel sums what was charged less than a window ago. A charge or a refund
// shows what time it is: whatever has expired by then does not come back.
type logModel struct {
	limit, window int64
	charges       []charged
}

func (m *logModel) clock(now int64) int64 {
	for _, c := range m.charges {
		now = max(now, c.at)
	}
	return now
}

func (m *logModel) left(at int64) *big.Rat {
	left := m.limit
	for _, c := range m.charges {
		if at-c.at < m.window {
			left -= c.cost
		}
	}
	return integer(left)
}

func (m *logModel) expire(at int64) {
	m.charges = slices.DeleteFunc(m.charges, func(c charged) bool { return at-c.at >= m.window })
}

func (m *logModel) charge(at, cost int64) {
	m.expire(at)
	m.charges = append(m.charges, charged{at, cost})
}

func (m *logModel) giveBack(at, cost int64) {
	m.expire(at)
	for n := len(m.charges); n > 0 && cost > 0; n = len(m.charges) {
		last := &m.charges[n-1]
		part := min(cost, last.cost)
		cost -= part
		if last.cost -= part; last.cost == 0 {
			m.charges = m.charges[:n-1]
		}
	}
}

// counterModel is the estimate p·(1−f) + c over counts of aligned windows.
type counterModel struct {
	limit, window int64
	counts        map[int64]int64 // by the window's number
	last          int64
}

func (m *counterModel) clock(now int64) int64 { return max(now, m.last*m.window) }

func (m *counterModel) left(at int64) *big.Rat {
	n := at / m.window
	weight := times(integer(m.counts[n-1]), ratio(m.window-at%m.window, m.window))
	return minus(integer(m.limit-m.counts[n]), weight)
}

func (m *counterModel) charge(at, cost int64) {
	m.last = at / m.window
	m.counts[m.last] += cost
}

func (m *counterModel) giveBack(at, cost int64) {
	n := at / m.window
	m.counts[n] -= min(cost, m.counts[n])
}
