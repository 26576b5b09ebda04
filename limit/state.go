package limit

// State is what a counter remembers. The zero State is a fresh counter. What
// the words mean is up to the rule's algorithm; see its file.
//
// Log is used by sliding_window_log alone: a ring buffer of the admitted
// stamps. A Take may write to unused places of it and may return a larger one,
// so a State given to Take or Refund must not be used afterwards.
type State struct {
	A, B, C int64
	Log     []Stamp
}

// Stamp is one admission in a log.
type Stamp struct {
	At   int64 // Unix nanoseconds
	Cost int64
}
