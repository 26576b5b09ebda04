// Package history keeps what every check of a run came to. It is append-only:
// what was recorded is evidence, and the judge reads it once the run is over.
package history

import (
	"iter"
	"sync"
	"sync/atomic"
	"time"
)

// Source says who decided a check.
type Source uint8

// What a verdict's "source" can say; None is a check without a verdict.
const (
	None      Source = iota
	Owner            // the counter's owner, here or one hop away
	DenyCache        // the owner too, a moment ago
	Fallback         // the rule's on_failure: nobody reached the owner
)

// ParseSource reads the "source" of a verdict.
func ParseSource(text string) (Source, bool) {
	switch text {
	case "owner":
		return Owner, true
	case "deny_cache":
		return DenyCache, true
	case "fallback":
		return Fallback, true
	}
	return None, false
}

func (s Source) String() string {
	return [...]string{None: "none", Owner: "owner", DenyCache: "deny_cache", Fallback: "fallback"}[s]
}

// Fault says why a check has no verdict.
type Fault uint8

// The kinds of a failed call.
const (
	Answered Fault = iota
	Refused        // every node refused the connection: certainly not counted
	Broken         // the connection ended before the answer: perhaps counted
	TimedOut       // no answer within the client's patience: perhaps counted
	Wrong          // an answer that is no verdict
)

func (f Fault) String() string {
	return [...]string{"answered", "refused", "broken", "timed out", "wrong"}[f]
}

// Record is one check. Times are nanoseconds since the history began, of one
// monotonic clock. Call is when the check was first sent; Node is who was asked
// last (a refused connection sends a client on to the next node).
type Record struct {
	Call, Return int64
	Key          uint32 // the keyspace knows its name and its rule
	Cost         uint32
	Node         uint16
	Source       Source
	Fault        Fault
	Allowed      bool
	Batched      bool // one of many in a call: its latency is the call's
}

// ByOwner says that the verdict is one that counts: it came from the owner.
func (r *Record) ByOwner() bool { return r.Source == Owner || r.Source == DenyCache }

// Latency is how long the caller waited.
func (r *Record) Latency() time.Duration { return time.Duration(r.Return - r.Call) }

// chunk keeps appending cheap: what was written is never moved.
const chunk = 4096

// History is safe for concurrent use.
type History struct {
	began time.Time

	mu      sync.Mutex
	chunks  [][]Record
	events  []Event
	samples []Sample

	checks, denied, unanswered atomic.Int64
}

// New begins a history now.
func New() *History { return &History{began: time.Now()} }

// Now is the time on the history's clock.
func (h *History) Now() int64 { return int64(time.Since(h.began)) }

// Began is the wall time of the clock's zero.
func (h *History) Began() time.Time { return h.began }

// Add appends records.
func (h *History) Add(records ...Record) {
	h.mu.Lock()
	for _, r := range records {
		h.append(r)
	}
	h.mu.Unlock()
	for i := range records {
		h.count(&records[i])
	}
}

func (h *History) append(r Record) {
	if n := len(h.chunks); n == 0 || len(h.chunks[n-1]) == chunk {
		h.chunks = append(h.chunks, make([]Record, 0, chunk))
	}
	last := &h.chunks[len(h.chunks)-1]
	*last = append(*last, r)
}

func (h *History) count(r *Record) {
	h.checks.Add(1)
	switch {
	case !r.ByOwner():
		h.unanswered.Add(1)
	case !r.Allowed:
		h.denied.Add(1)
	}
}

// Records lists the checks in the order in which they ended, about. It must not
// run beside Add.
func (h *History) Records() iter.Seq[*Record] {
	return func(yield func(*Record) bool) {
		for _, c := range h.chunks {
			for i := range c {
				if !yield(&c[i]) {
					return
				}
			}
		}
	}
}

// Totals are counts so far.
type Totals struct{ Checks, Denied, Unanswered int64 }

// Totals may be asked at any time.
func (h *History) Totals() Totals {
	return Totals{h.checks.Load(), h.denied.Load(), h.unanswered.Load()}
}
