package limit

import (
	"fmt"
	"testing"
	"time"
	_ "time/tzdata" // the zones of the tests, wherever they run
)

// start is a round moment: 2023-11-15 00:00:00 UTC, a boundary of every window
// that divides a day.
var start = time.Date(2023, 11, 15, 0, 0, 0, 0, time.UTC).UnixNano()

func algorithms() []Algorithm {
	return []Algorithm{TokenBucket, LeakyBucket, FixedWindow, SlidingWindowLog, SlidingWindowCounter}
}

func mustRule(t testing.TB, s Spec) *Rule {
	t.Helper()
	r, err := NewRule(s)
	if err != nil {
		t.Fatalf("%+v: %v", s, err)
	}
	return r
}

// brief is a verdict for transcripts: "yes 4", "yes 4 delay 1s", "no 0 in 1.3s",
// "never 1".
func brief(v Verdict) string {
	switch {
	case v.Allowed && v.Delay > 0:
		return fmt.Sprintf("yes %d delay %v", v.Remaining, v.Delay)
	case v.Allowed:
		return fmt.Sprintf("yes %d", v.Remaining)
	case v.Reason != NoReason:
		return fmt.Sprintf("never %d", v.Remaining)
	}
	return fmt.Sprintf("no %d in %v", v.Remaining, v.RetryAfter)
}
