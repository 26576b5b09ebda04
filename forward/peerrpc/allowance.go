package peerrpc

import "time"

// allowance counts what may happen so many times a second. Its zero value is
// ready.
type allowance struct {
	since int64 // when the present second began, Unix nanoseconds
	used  int
}

// take says whether it may happen at now, given that most times a second it may.
func (a *allowance) take(now int64, most int) bool {
	if now-a.since >= int64(time.Second) {
		a.since, a.used = now, 0
	}
	if a.used >= most {
		return false
	}
	a.used++
	return true
}
