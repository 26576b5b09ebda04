// Package counters measures what ten million counters in one table cost: memory,
// garbage collection, time, and how long anybody waits while the table grows and
// forgets. It uses what package owner exports.
package counters

import (
	"fmt"
	"runtime"
	"strconv"
	"time"

	"github.com/ringlimit/ringlimit/limit"
	"github.com/ringlimit/ringlimit/owner"
)

// start is when everything happens: the clock is no part of what is measured.
const start = int64(1_800_000_000_000_000_000)

// clusterPartitions is how many a node holds that is alone.
const clusterPartitions = 1024

// table is n counters in so many partitions.
type table struct {
	*owner.Table
	partitions int
	rule       *limit.Rule
	named      bool // the counters' names are kept, as a node does
}

func newTable(partitions int, named bool) (*table, error) {
	// A day, so that none equals a fresh one before it has to.
	rule, err := limit.NewRule(limit.Spec{Algorithm: limit.TokenBucket, Limit: 100, Window: 24 * time.Hour})
	if err != nil {
		return nil, err
	}
	t := &table{partitions: partitions, rule: rule, named: named}
	t.Table = owner.NewTable(owner.Config{Partitions: partitions, Memory: 8 << 30, Now: func() int64 { return start }})
	for p := range partitions {
		t.SetPhase(p, owner.Holding)
	}
	return t, nil
}

// name is that of counter number i, as rules make them: tier, rule and key.
func name(buf []byte, i int) []byte {
	buf = append(buf[:0], "\x07default\x03all\x11customer-"...)
	return strconv.AppendInt(buf, int64(100_000_000+i), 10)
}

// call is a check of counter number i. buf is the room for its name.
func (t *table) call(buf []byte, i int) owner.Call {
	counter := name(buf, i)
	id := owner.Seed(1).ID(counter)
	if !t.named {
		counter = nil
	}
	return owner.Call{ID: id, Partition: int(id.Hi % uint64(t.partitions)), Charge: limit.Charge{Counter: counter, Rule: t.rule, Cost: 1}}
}

// fill makes the counters from one number to another.
func (t *table) fill(from, to int) error {
	var v limit.Verdict
	buf := make([]byte, 0, 64)
	for i := from; i < to; i++ {
		c := t.call(buf, i)
		if err := t.Decide(start, &c, &v); err != nil {
			return fmt.Errorf("counter %d: %w", i, err)
		}
		if !v.Allowed {
			return fmt.Errorf("counter %d is new and refuses", i)
		}
	}
	return nil
}

// Memory is bytes per counter.
type Memory struct {
	Table, Heap float64 // as the table says, and as the heap has grown
}

// memory fills a table and weighs it.
func memory(n int, named bool) (*table, Memory, error) {
	before := heap()
	t, err := newTable(clusterPartitions, named)
	if err != nil {
		return nil, Memory{}, err
	}
	if err := t.fill(0, n); err != nil {
		return nil, Memory{}, err
	}
	s := t.Stats()
	if s.Counters != int64(n) {
		return nil, Memory{}, fmt.Errorf("there are %d counters, not %d", s.Counters, n)
	}
	return t, Memory{float64(s.Bytes) / float64(n), float64(heap()-before) / float64(n)}, nil
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
