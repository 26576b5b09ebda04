package judge

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/ringlimit/ringlimit/chaos/history"
)

// account is what one key came to. Costs are summed.
type account struct {
	first, last int64 // its first call and its last return
	owner       int64 // admitted by owners
	fallback    int64 // admitted by on_failure
	unknown     int64 // no owner's verdict: charged or not, nobody knows
	refused     bool  // an owner refused it at the end
}

// tally is what the whole run came to.
type tally struct {
	away     absence
	accounts map[uint32]*account

	checks, unanswered, fallbacks int64
	excused                       int64 // without a verdict, but who was asked was killed or stopped
	took                          *hdrhistogram.Histogram
}

// longest is the longest latency that is told apart.
const longest = int64(2 * time.Minute)

func tallies(c *Case, away absence) *tally {
	t := &tally{away: away, accounts: map[uint32]*account{}, took: hdrhistogram.New(1_000, longest, 3)}
	for r := range c.History.Records() {
		t.account(r.Key, r).add(r)
		t.answer(r)
	}
	return t
}

func (t *tally) account(key uint32, r *history.Record) *account {
	a := t.accounts[key]
	if a == nil {
		a = &account{first: r.Call}
		t.accounts[key] = a
	}
	return a
}

func (a *account) add(r *history.Record) {
	a.first, a.last = min(a.first, r.Call), max(a.last, r.Return)
	cost := int64(r.Cost)
	switch {
	case !r.ByOwner():
		a.unknown += cost
		if r.Allowed {
			a.fallback += cost
		}
	case r.Allowed:
		a.owner += cost
		a.refused = false
	default:
		a.refused = true
	}
}

func (t *tally) answer(r *history.Record) {
	t.checks++
	switch {
	case t.away.during(r):
		if !r.ByOwner() {
			t.excused++
		}
		return
	case !r.ByOwner():
		t.unanswered++
		if r.Source == history.Fallback {
			t.fallbacks++
		}
	}
	if !r.Batched {
		_ = t.took.RecordValue(min(int64(r.Latency()), longest)) // in range by the min
	}
}

func (t *tally) latencies() []Line {
	at := func(q float64) time.Duration { return time.Duration(t.took.ValueAtQuantile(q)) }
	return []Line{
		span("latency, p50", 0, at(50), ""),
		span("latency, p99", 0, at(99), ""),
		span("latency, p99.9", 0, at(99.9), ""),
		span("latency, longest", 0, at(100), ""),
	}
}
