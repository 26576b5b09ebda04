package limit

import "strconv"

// Algorithm is how a rule counts.
type Algorithm uint8

const (
	TokenBucket Algorithm = iota + 1
	LeakyBucket
	FixedWindow
	SlidingWindowLog
	SlidingWindowCounter
)

// String is the algorithm as rule files spell it.
func (a Algorithm) String() string {
	switch a {
	case TokenBucket:
		return "token_bucket"
	case LeakyBucket:
		return "leaky_bucket"
	case FixedWindow:
		return "fixed_window"
	case SlidingWindowLog:
		return "sliding_window_log"
	case SlidingWindowCounter:
		return "sliding_window_counter"
	}
	return ""
}

// ParseAlgorithm is the inverse of String. Its error is a *SpecError.
func ParseAlgorithm(name string) (Algorithm, error) {
	for a := TokenBucket; a <= SlidingWindowCounter; a++ {
		if a.String() == name {
			return a, nil
		}
	}
	return 0, &SpecError{"algorithm", strconv.Quote(name) + " is unknown; use token_bucket, leaky_bucket, fixed_window, sliding_window_log or sliding_window_counter"}
}

// MarshalText is String, for JSON.
func (a Algorithm) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText is ParseAlgorithm, for JSON.
func (a *Algorithm) UnmarshalText(text []byte) (err error) {
	*a, err = ParseAlgorithm(string(text))
	return err
}

// Calendar is a window of varying length.
type Calendar uint8

const (
	NoCalendar Calendar = iota
	CalendarDay
	CalendarMonth
)

// String is the window as rule files spell it; empty for NoCalendar.
func (c Calendar) String() string {
	switch c {
	case CalendarDay:
		return "day"
	case CalendarMonth:
		return "month"
	}
	return ""
}

// ParseCalendar reads "day" and "month". Its error is a *SpecError.
func ParseCalendar(name string) (Calendar, error) {
	for c := CalendarDay; c <= CalendarMonth; c++ {
		if c.String() == name {
			return c, nil
		}
	}
	return 0, &SpecError{"window", strconv.Quote(name) + " is unknown; use day, month or a duration such as 60s"}
}

// MarshalText is String, for JSON.
func (c Calendar) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText is ParseCalendar, for JSON.
func (c *Calendar) UnmarshalText(text []byte) (err error) {
	*c, err = ParseCalendar(string(text))
	return err
}

// OnFailure is what answers when the owner of a counter cannot.
type OnFailure uint8

const (
	FailLocal OnFailure = iota // this node's share of the limit
	FailAllow
	FailDeny
)

// String is the choice as rule files spell it.
func (f OnFailure) String() string {
	switch f {
	case FailLocal:
		return "local"
	case FailAllow:
		return "allow"
	case FailDeny:
		return "deny"
	}
	return ""
}

// ParseOnFailure is the inverse of String. Its error is a *SpecError.
func ParseOnFailure(name string) (OnFailure, error) {
	for f := FailLocal; f <= FailDeny; f++ {
		if f.String() == name {
			return f, nil
		}
	}
	return 0, &SpecError{"on_failure", strconv.Quote(name) + " is unknown; use local, allow or deny"}
}
