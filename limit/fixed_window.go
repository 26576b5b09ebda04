package limit

import "time"

// fixedWindow counts in windows that are aligned to the Unix epoch or to a
// calendar: at most limit in each, so up to twice that across a boundary.
//
// State.A and State.B are the start and the end of the window, Unix
// nanoseconds, and State.C is the count in it. With both ends at hand the usual
// check needs no division and no calendar.
type fixedWindow struct {
	limit    int64
	window   int64 // nanoseconds; 0 with a calendar
	calendar Calendar
	zone     *time.Location
}

// newFixedWindow needs a Spec whose time zone was checked.
func newFixedWindow(s Spec) *fixedWindow {
	f := &fixedWindow{limit: s.Limit, window: int64(s.Window), calendar: s.Calendar}
	if s.Calendar != NoCalendar {
		f.zone, _ = time.LoadLocation(s.Timezone)
	}
	return f
}

// around is the window that contains now.
func (f *fixedWindow) around(now int64) (start, end int64) {
	if f.calendar != NoCalendar {
		return f.calendar.around(now, f.zone)
	}
	start = now - now%f.window
	return start, start + f.window
}

// at brings the state to now and returns now as the counter sees it: a now
// before the window counts in the window, or a late one would open it anew.
func (f *fixedWindow) at(s *State, now int64) int64 {
	if now >= s.B {
		s.A, s.B = f.around(now)
		s.C = 0
	}
	return max(now, s.A)
}

// take may open a window and nevertheless leave a refused state as it was: a new
// window has room for any cost that gets here.
func (f *fixedWindow) take(s *State, v *Verdict, now, cost int64) {
	now = f.at(s, now)
	v.Limit = f.limit
	v.ResetAfter = time.Duration(s.B - now)
	if cost > f.limit-s.C {
		v.Remaining = max(0, f.limit-s.C)
		v.RetryAfter = v.ResetAfter
		return
	}
	s.C += cost
	v.Allowed = true
	v.Remaining = f.limit - s.C
}

func (f *fixedWindow) peek(s State, now, cost int64) Verdict {
	v := f.look(s, now)
	if cost > v.Remaining {
		v.RetryAfter = v.ResetAfter
		return v
	}
	v.Allowed = true
	return v
}

func (f *fixedWindow) look(s State, now int64) Verdict {
	now = f.at(&s, now)
	v := Verdict{Limit: f.limit, Remaining: max(0, f.limit-s.C)}
	if s.C > 0 {
		v.ResetAfter = time.Duration(s.B - now)
	}
	return v
}

// refund gives back to the window that the cost was taken in, unless that is over.
func (f *fixedWindow) refund(s State, now, cost, age int64) State {
	if now >= s.B || s.C == 0 || age > max(0, now-s.A) {
		return s
	}
	if s.C -= min(cost, s.C); s.C == 0 { // as a fresh one: on boundaries of our own
		s.A, s.B = f.around(max(now, s.A))
	}
	return s
}

func (f *fixedWindow) until(s State, now, _ int64) time.Duration {
	return time.Duration(s.B - max(now, s.A))
}

func (f *fixedWindow) freshAt(s State) int64 {
	if s.C == 0 {
		return s.A
	}
	return s.B
}

// carry keeps the count in the window that contains now.
func (f *fixedWindow) carry(from judge, s State, now int64) State {
	old := from.(*fixedWindow)
	now = old.at(&s, now)
	if s.C == 0 {
		return State{}
	}
	if f.window != old.window || f.calendar != old.calendar || f.zone != old.zone {
		s.A, s.B = f.around(now)
	}
	return s
}
