package limit

import "strconv"

// Durability is how much of a counter's charges may be lost with the node that
// decides for it.
type Durability uint8

const (
	DurabilityAuto Durability = iota // at most 1 % of the limit, rounded down
	DurabilitySync                   // nothing: a reply waits until its charge has a copy
	DurabilityNone                   // everything: no copy is kept
)

// String is the choice as rule files spell it.
func (d Durability) String() string {
	switch d {
	case DurabilityAuto:
		return "auto"
	case DurabilitySync:
		return "sync"
	case DurabilityNone:
		return "none"
	}
	return ""
}

// ParseDurability is the inverse of String. Its error is a *SpecError.
func ParseDurability(name string) (Durability, error) {
	for d := DurabilityAuto; d <= DurabilityNone; d++ {
		if d.String() == name {
			return d, nil
		}
	}
	return 0, &SpecError{"durability", strconv.Quote(name) + " is unknown; use auto, sync or none"}
}

// MarshalText is String, for JSON.
func (d Durability) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText is ParseDurability, for JSON.
func (d *Durability) UnmarshalText(text []byte) (err error) {
	*d, err = ParseDurability(string(text))
	return err
}

// Slack is how many units of a counter's charges may be without a copy when
// their reply goes; negative: none of them needs one.
func (s Spec) Slack() int64 {
	switch s.Durability {
	case DurabilitySync:
		return 0
	case DurabilityNone:
		return -1
	}
	return s.Limit / 100
}
