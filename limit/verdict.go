package limit

import "time"

// Verdict is the answer to a check. Times are relative, because the node that
// decided and the node that answers may have different clocks. For a request with
// several limits it is that of the limit that binds: see Combine and Limits.
type Verdict struct {
	Allowed   bool
	Reason    Reason // why waiting does not help; None when it does, or when allowed
	Source    Source // who decided
	Rule      *Rule  // the rule that decided; nil when no rule matched
	Limit     int64  // the most that could be taken at once
	Remaining int64  // what could be taken now: whole, never negative

	RetryAfter time.Duration // until the same request would pass; 0 when allowed and when no wait helps
	Delay      time.Duration // how long an admitted leaky_bucket request has to wait for its turn
	ResetAfter time.Duration // until the whole budget is back

	// limits is behind a pointer because a Verdict is copied on hot paths, and
	// compared.
	limits *[]Verdict
}

// Reason says why a request is refused for good.
type Reason uint8

const (
	NoReason         Reason = iota
	CostExceedsLimit        // more than the rule could ever admit
	MissingDimension        // the request lacks a value that the rule counts by, and on_missing is deny
	Unavailable             // no owner could be asked, and on_failure is deny
)

// String is the reason as it stands in a JSON answer.
func (r Reason) String() string {
	switch r {
	case CostExceedsLimit:
		return "cost_exceeds_limit"
	case MissingDimension:
		return "missing_dimension"
	case Unavailable:
		return "unavailable"
	}
	return ""
}

// Source says who decided.
type Source uint8

const (
	NoSource        Source = iota // nobody had to: no rule matched
	SourceOwner                   // this node, which owns the counter
	SourceForwarded               // the owner, one hop away
	SourceDenyCache               // this node, from the owner's earlier denial
	SourceFallback                // this node, because the owner could not be asked
)

// String is the source as it stands in a metric's label.
func (s Source) String() string {
	switch s {
	case SourceOwner:
		return "owner"
	case SourceForwarded:
		return "forwarded"
	case SourceDenyCache:
		return "deny_cache"
	case SourceFallback:
		return "fallback"
	}
	return ""
}

// Decider is the source as a verdict shows it: whether the owner was a hop away
// is no concern of the caller's.
func (s Source) Decider() string {
	if s == SourceForwarded {
		s = SourceOwner
	}
	return s.String()
}
