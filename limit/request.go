package limit

import (
	"fmt"
	"net/netip"
	"unicode/utf8"
)

// Bounds on what a request may carry. A larger one is refused, never cut short:
// two keys that share their first 512 bytes are still two clients.
const (
	MaxKeyBytes   = 512
	MaxRouteBytes = 8 << 10
	MaxAttributes = 32
	MaxCost       = 1<<53 - 1 // the largest integer that every JSON reader keeps exact
)

// MaxLimits bounds how many limits a request has to pass: those of one owner are
// decided in one step, which holds up whoever else asks for their counters.
const MaxLimits = 192

// Request is one check as a caller states it.
type Request struct {
	Key        string            // who is limited; never empty
	Route      string            // what is called: "METHOD /path", or any string; may be empty
	Cost       int64             // how much this request takes; 0 means 1
	Tier       string            // the key's tier; empty means the default tier
	IP         netip.Addr        // the client's address; the zero Addr means unknown
	Attributes map[string]string // further dimensions, by name
	Peek       bool              // look without taking
}

// InputError says which field of a request is wrong and what would be right.
type InputError struct {
	Field   string // as the caller spells it: "key", "cost", …
	Problem string // what is wrong, and what would be right
}

func (e *InputError) Error() string { return e.Field + ": " + e.Problem }

// RefundError says that a cost was not given back to all limits of a request, or
// that nobody knows. The refund must not be sent again: the limits that have it
// would get it twice, and admit more than they should. What is lost stays used, as
// long as it counts.
type RefundError struct {
	Returned int // to how many limits the cost was given back for certain
	Of       int
	Err      error // why not to the others
}

func (e *RefundError) Error() string {
	return fmt.Sprintf("the cost was given back to %d of %d limits; do not send the refund again: %v", e.Returned, e.Of, e.Err)
}

func (e *RefundError) Unwrap() error { return e.Err }

// Units is the request's cost with the default filled in.
func (r *Request) Units() int64 {
	if r.Cost == 0 {
		return 1
	}
	return r.Cost
}

// Validate returns an *InputError for a request that no rule could judge.
func (r *Request) Validate() error {
	switch {
	case r.Key == "":
		return &InputError{"key", "is empty; it must name who is limited"}
	case len(r.Key) > MaxKeyBytes:
		return &InputError{"key", fmt.Sprintf("is %d bytes long; at most %d are allowed", len(r.Key), MaxKeyBytes)}
	case !utf8.ValidString(r.Key):
		return &InputError{"key", "is not valid UTF-8"}
	case r.Cost < 0 || r.Cost > MaxCost:
		return &InputError{"cost", fmt.Sprintf("is %d; it must be an integer from 1 to %d", r.Cost, int64(MaxCost))}
	}
	return r.validateDimensions()
}

func (r *Request) validateDimensions() error {
	switch {
	case len(r.Route) > MaxRouteBytes:
		return &InputError{"route", fmt.Sprintf("is %d bytes long; at most %d are allowed", len(r.Route), MaxRouteBytes)}
	case r.Route != "" && !utf8.ValidString(r.Route):
		return &InputError{"route", "is not valid UTF-8"}
	case len(r.Attributes) > MaxAttributes:
		return &InputError{"attributes", fmt.Sprintf("has %d entries; at most %d are allowed", len(r.Attributes), MaxAttributes)}
	}
	if len(r.Attributes) == 0 {
		return nil // sooner than a range finds out
	}
	for name, value := range r.Attributes {
		if len(value) > MaxKeyBytes || !utf8.ValidString(value) {
			return &InputError{"attributes." + name, fmt.Sprintf("must be valid UTF-8 of at most %d bytes", MaxKeyBytes)}
		}
	}
	return nil
}
