package limit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"
)

// Bounds on what a Spec may say. Within them every computation is exact: no
// time up to the year 2162 and no count overflows.
const (
	MaxLimit       = 1<<53 - 1 // the largest integer that every JSON reader keeps exact
	MaxLogLimit    = 1_000_000 // a log keeps up to one stamp a unit
	MinWindow      = time.Millisecond
	MaxWindow      = 36525 * 24 * time.Hour // 100 years; also the longest time to refill
	MaxSpecBytes   = 512
	maxTimezoneLen = 64
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
	// Durability is the owner's to know too: it keeps the copies.
	Durability Durability `json:"durability,omitempty"`
}

// SpecError says which field of a rule is wrong and what would be right.
type SpecError struct {
	Field   string // as rule files spell it: "limit", "window", "delay", …
	Problem string // what is wrong, and what would be right
}

func (e *SpecError) Error() string { return e.Field + ": " + e.Problem }

// Encode is the Spec's JSON form. Equal Specs have equal bytes.
func (s Spec) Encode() []byte {
	data, _ := json.Marshal(s) // cannot fail: numbers, strings and names of constants
	return data
}

// ParseSpec reads exactly what Encode writes. Every other form, such as a field
// twice or in another order, is refused: the sender is no node of ours, or of a
// version whose rules we would count wrongly. The Spec is not checked further;
// see NewRule.
func ParseSpec(data []byte) (Spec, error) {
	if len(data) > MaxSpecBytes {
		return Spec{}, fmt.Errorf("rule: is %d bytes long; at most %d are allowed", len(data), MaxSpecBytes)
	}
	var s Spec
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&s); err != nil {
		return Spec{}, fmt.Errorf("rule: %w", err)
	}
	if canonical := s.Encode(); !bytes.Equal(data, canonical) {
		return Spec{}, fmt.Errorf("rule: is %q; its canonical form is %q", data, canonical)
	}
	return s, nil
}

// normal leaves out what is the default anyway, so that Specs that count alike
// are equal.
func (s Spec) normal() Spec {
	if s.Timezone == "UTC" {
		s.Timezone = ""
	}
	if s.Limit == 0 || s.Algorithm == TokenBucket && s.Burst == s.Limit {
		s.Burst = 0
	}
	return s
}

func (s Spec) validate() error {
	if s.Algorithm < TokenBucket || s.Algorithm > SlidingWindowCounter {
		_, err := ParseAlgorithm(s.Algorithm.String())
		return err
	}
	if s.Durability > DurabilityNone {
		_, err := ParseDurability(s.Durability.String())
		return err
	}
	for _, check := range []func() *SpecError{s.checkLimit, s.checkWindow, s.checkTimezone, s.checkBurst} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (s Spec) checkLimit() *SpecError {
	switch {
	case s.Limit < 0 || s.Limit > MaxLimit:
		return &SpecError{"limit", fmt.Sprintf("is %d; it must be an integer from 0 (deny all) to %d", s.Limit, int64(MaxLimit))}
	case s.Algorithm == SlidingWindowLog && s.Limit > MaxLogLimit:
		return &SpecError{"limit", fmt.Sprintf("is %d; a sliding_window_log keeps every admission and allows at most %d: use sliding_window_counter", s.Limit, MaxLogLimit)}
	}
	return nil
}

func (s Spec) checkWindow() *SpecError {
	switch {
	case s.Calendar > CalendarMonth:
		return &SpecError{"window", "is an unknown part of the calendar; use day, month or a duration such as 60s"}
	case s.Calendar != NoCalendar && s.Algorithm != FixedWindow:
		return &SpecError{"window", fmt.Sprintf("is %q, which only fixed_window takes; use a duration such as 24h", s.Calendar)}
	case s.Calendar != NoCalendar && s.Window != 0:
		return &SpecError{"window", fmt.Sprintf("is both %q and %v; give one of them", s.Calendar, s.Window)}
	case s.Calendar == NoCalendar && (s.Window < MinWindow || s.Window > MaxWindow):
		return &SpecError{"window", fmt.Sprintf("is %v; it must be from 1ms to 100 years (%v)", s.Window, MaxWindow)}
	}
	return nil
}

func (s Spec) checkTimezone() *SpecError {
	if s.Timezone == "" {
		return nil
	}
	if s.Calendar == NoCalendar {
		return &SpecError{"timezone", "needs a fixed_window with window: day or month"}
	}
	// "Local" would be another zone on another node.
	if len(s.Timezone) > maxTimezoneLen || s.Timezone == "Local" {
		return s.unknownTimezone()
	}
	if _, err := time.LoadLocation(s.Timezone); err != nil {
		return s.unknownTimezone()
	}
	return nil
}

func (s Spec) unknownTimezone() *SpecError {
	return &SpecError{"timezone", fmt.Sprintf("%.64q is unknown here; use a name of the IANA time zone database, such as Europe/Berlin", s.Timezone)}
}

func (s Spec) checkBurst() *SpecError {
	buckets := s.Algorithm == TokenBucket || s.Algorithm == LeakyBucket
	switch {
	case s.Police && s.Algorithm != LeakyBucket:
		return &SpecError{"delay", fmt.Sprintf("belongs to leaky_bucket only; %s never delays", s.Algorithm)}
	case s.Burst != 0 && !buckets:
		return &SpecError{"burst", fmt.Sprintf("belongs to token_bucket and leaky_bucket only; %s has no burst", s.Algorithm)}
	case s.Burst < 0 || s.Burst >= MaxLimit:
		return &SpecError{"burst", fmt.Sprintf("is %d; it must be an integer from 0 to %d", s.Burst, int64(MaxLimit)-1)}
	case buckets && !s.refillsInTime():
		return &SpecError{"burst", fmt.Sprintf("is %d, which takes over 100 years to refill at %d in %v; make it smaller", s.Burst, s.Limit, s.Window)}
	}
	return nil
}
