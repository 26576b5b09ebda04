package limit

import (
	"time"
)

// Algorithm is how a rule counts.
type Algorithm uint8

const (
	TokenBucket Algorithm = iota + 1
	LeakyBucket
	FixedWindow
	SlidingWindowLog
	SlidingWindowCounter
)

// Calendar is a window of varying length.
type Calendar uint8

const (
	NoCalendar Calendar = iota
	CalendarDay
	CalendarMonth
)

// OnFailure is what answers when the owner of a counter cannot.
type OnFailure uint8

const (
	FailLocal OnFailure = iota // this node's share of the limit
	FailAllow
	FailDeny
)

// Spec is what a rule says about counting: all that the owner of a counter
// needs to know. Nodes send it to each other in its JSON form.
type Spec struct {
	Algorithm Algorithm     `json:"algorithm"`
	Limit     int64         `json:"limit"`              // 0 denies all
	Window    time.Duration `json:"window,omitempty"`   // nanoseconds; 0 with Calendar
	Calendar  Calendar      `json:"calendar,omitempty"` // fixed_window only
	Timezone  string        `json:"timezone,omitempty"` // IANA name; empty is UTC; Calendar only
	Burst     int64         `json:"burst,omitempty"`    // token_bucket: capacity, 0 means Limit; leaky_bucket: places in the queue
	Police    bool          `json:"police,omitempty"`   // leaky_bucket with `delay: false`: admit at once, do not queue
}

// RuleID names the content of a Spec. Two nodes with the same Spec have the
// same RuleID.
type RuleID uint64

// Rule is a Spec, checked and compiled, and what the caller's side does with
// the verdict. It is immutable once made and safe for concurrent use.
type Rule struct {
	Spec
	Name, Tier string
	OnFailure  OnFailure
	Jitter     bool // spread the Retry-After header

	id RuleID
}
