package limit

import "time"

// Charge is one rule applied to one counter: what the owner is asked to do.
type Charge struct {
	// Counter names the counter: length-prefixed parts, so that no two
	// combinations of rule and dimension values share a name. The bytes belong
	// to the caller and are valid during the call only.
	Counter []byte
	Rule    *Rule
	Cost    int64 // at least 1
	Mode    Mode
	// Age, of a Refund, is at most how long ago the cost was taken: what the
	// counter has forgotten since is not given back. Too large an Age gives back
	// less, too small a one may give back what was never taken. 0 is a caller who
	// does not know: see Rule.Refund.
	Age time.Duration
}

// Mode is what to do with the cost.
type Mode uint8

const (
	Take   Mode = iota // charge it if it fits
	Peek               // say whether it would fit
	Refund             // give it back
)
