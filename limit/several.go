package limit

import (
	"math"
	"math/bits"
	"time"
)

// Combine is the verdict on a request that has to pass all the given limits: that
// of the limit that binds, and all of them as its Limits. Each of them has its
// Rule. Combine keeps the list.
//
// If any refuses, so does the verdict, and the one with the longest wait binds: a
// client that came back sooner would be refused again. A refusal for good is the
// longest. If all admit, the one binds of which the least share remains; the
// request waits for the latest of its turns.
//
// A limit in shadow neither refuses nor binds. Where there are no others the
// request is admitted by no rule.
func Combine(limits []Verdict) Verdict {
	v := Verdict{Allowed: true}
	var delay time.Duration
	for i := range limits {
		l := &limits[i]
		if l.Rule.Shadow {
			continue
		}
		delay = max(delay, l.Delay)
		if v.Rule == nil || l.bindsBefore(&v) {
			v = *l
		}
	}
	if v.Allowed {
		v.Delay = delay
	}
	v.limits = &limits
	return v
}

// Limits is the verdict of each limit, the most specific first, those in shadow
// included. It is nil when the request has one limit and the verdict says all about
// it. In a refusal each verdict is what it would be by itself: nothing is charged,
// not even where it says Allowed. One without a Source nobody was asked for: it is
// as the limit was within the last second.
func (v *Verdict) Limits() []Verdict {
	if v.limits == nil {
		return nil
	}
	return *v.limits
}

func (v *Verdict) bindsBefore(w *Verdict) bool {
	switch {
	case v.Allowed != w.Allowed:
		return w.Allowed
	case !v.Allowed:
		return v.patience() > w.patience()
	}
	return v.leavesLess(w)
}

// patience is how long a refused client has to wait. Where nobody could be asked
// no wait is known, so that any which is goes before it.
func (v *Verdict) patience() time.Duration {
	if v.Reason == CostExceedsLimit || v.Reason == MissingDimension {
		return math.MaxInt64
	}
	return v.RetryAfter
}

// leavesLess compares Remaining/Limit, exactly: v.Remaining × w.Limit may have 106
// bits. Of equal shares the one that takes longer to come back is less.
func (v *Verdict) leavesLess(w *Verdict) bool {
	vhi, vlo := bits.Mul64(uint64(v.Remaining), uint64(max(w.Limit, 1)))
	whi, wlo := bits.Mul64(uint64(w.Remaining), uint64(max(v.Limit, 1)))
	switch {
	case vhi != whi:
		return vhi < whi
	case vlo != wlo:
		return vlo < wlo
	}
	return v.ResetAfter > w.ResetAfter
}
