package owner

import (
	"math"
	"sync"
	"sync/atomic"

	"github.com/ringlimit/ringlimit/limit"
)

// Call is a charge and where its counter lies.
type Call struct {
	ID        ID
	Partition int
	limit.Charge
	// Joined says, in a frame, that the call is decided together with the one
	// before it: see DecideFrame.
	Joined bool
	// Shadow says that a refusal of this call does not refuse its group.
	Shadow bool
}

// Result is the answer to a call of a frame: a verdict, or ErrNotHolder or
// ErrFull.
type Result struct {
	Verdict limit.Verdict
	Err     error
	// Taken says that the cost was charged. A call that would have been admitted
	// is not, if another one refuses its group. With an error it is a charge whose
	// copy is late.
	Taken bool
}

// Config says how large a table is.
type Config struct {
	Partitions int          // at least 1
	Memory     int64        // bytes for counters; 0 means DefaultMemory
	Now        func() int64 // Unix nanoseconds, for the sweep; nil means a clock of its own
}

// DefaultMemory is room for about ten million counters with short names.
const DefaultMemory = 1 << 30

// Table is the counters of this node. It is safe for concurrent use.
type Table struct {
	// Every decision reads these two, and they hardly ever change.
	partitions []partition
	until      atomic.Int64 // no decision is made as of later

	_ [64]byte // keeps what changes often off their cache line

	rules   registry
	memory  memory
	now     func() int64
	large   int // counters in a segment that is split, rather than given more room
	maxText int // bytes of names in a segment: slots have 32 bits to point at them

	sweeping sync.Mutex // guards cursor
	cursor   int        // the partition to sweep next
	pressed  chan struct{}

	dropped, refused atomic.Int64
}

// NewTable makes a table in which every partition is in phase None.
func NewTable(cfg Config) *Table {
	t := &Table{
		partitions: make([]partition, max(1, cfg.Partitions)),
		memory:     memory{max: cfg.Memory},
		now:        cfg.Now,
		large:      segmentCounters,
		maxText:    math.MaxUint32,
		pressed:    make(chan struct{}, 1),
	}
	if t.memory.max <= 0 {
		t.memory.max = DefaultMemory
	}
	if t.now == nil {
		t.now = limit.NewClock().Now
	}
	t.rules.init()
	t.DecideUntil(math.MaxInt64)
	return t
}

// DecideUntil bounds the table's decisions: with a later now it answers
// ErrNotHolder, in any phase. A process that stood still goes on as if nothing
// had happened, while another node decides; the bound, compared with the
// caller's reading of the clock, is what stops it. A process that is stopped
// between that reading and the decision decides what was read: as many calls as
// there are goroutines in that gap. A new table has no bound.
func (t *Table) DecideUntil(until int64) { t.until.Store(until) }

// Phase returns the partition's phase.
func (t *Table) Phase(p int) Phase {
	pt := &t.partitions[p]
	pt.mu.Lock()
	defer pt.mu.Unlock()
	return pt.phase
}

// SetPhase changes the partition's phase. None drops its counters and gives
// their memory back.
func (t *Table) SetPhase(p int, ph Phase) {
	var gone directory
	var stamps logs
	pt := &t.partitions[p]
	pt.mu.Lock()
	pt.phase = ph
	if ph == None {
		gone, stamps = pt.clear()
		pt.floor, pt.barren = 0, 0
	}
	pt.mu.Unlock()
	t.forget(gone, stamps)
}

// forget gives back what nobody else can reach any more.
func (t *Table) forget(gone directory, stamps logs) {
	t.memory.add(-gone.bytes() - stamps.bytes())
	for s := range gone.all() {
		for i := range s.slots.at {
			if n := s.slots.at[i].rule; n != 0 {
				t.rules.release(n)
			}
		}
	}
}

// Rule returns a rule that the table has learned, or nil.
func (t *Table) Rule(id limit.RuleID) *limit.Rule { return t.rules.find(id) }

// Learn makes rules known, several for the cost of one. A rule that no counter uses
// may be forgotten when there are very many.
func (t *Table) Learn(rules ...*limit.Rule) { t.rules.learn(rules...) }

// Stats are a table's figures at one moment.
type Stats struct {
	Counters int64 // counters there are
	Bytes    int64 // memory they take, names and room to grow included
	Holding  int   // partitions in phase Holding
	Dropped  int64 // counters dropped because they equalled fresh ones, ever
	Refused  int64 // new counters refused with ErrFull, ever
}

// Stats takes each partition's lock for a moment.
func (t *Table) Stats() Stats {
	s := Stats{Bytes: t.memory.used.Load(), Dropped: t.dropped.Load(), Refused: t.refused.Load()}
	for i := range t.partitions {
		p := &t.partitions[i]
		p.mu.Lock()
		s.Counters += int64(p.used)
		if p.phase == Holding {
			s.Holding++
		}
		p.mu.Unlock()
	}
	return s
}
