package limit

import (
	"sort"
	"time"
)

// around is the day or month that contains now in the zone, from its first
// midnight to the next one's, as Unix nanoseconds. A day lasts 23 or 25 hours
// where the clocks change.
func (c Calendar) around(now int64, zone *time.Location) (start, end int64) {
	y, m, d := time.Unix(0, now).In(zone).Date()
	months, days := 0, 1
	if c == CalendarMonth {
		d, months, days = 1, 1, 0
	}
	end = midnight(y, m, d, zone)
	// Once suffices but where clocks go back over midnight: there the date of now
	// can be a day whose window is over.
	for end <= now {
		start = end
		m, d = m+time.Month(months), d+days
		end = midnight(y, m, d, zone)
	}
	return start, end
}

// midnight is the first moment at which the date in the zone is y-m-d or later.
// time.Date does not give it: where clocks go forward at midnight, there is no
// 00:00, and Date answers 23:00 of the day before, an hour in which no window
// would ever end. Nor does Time.ZoneBounds help to find the change of clocks: on
// the last day of a leap year after 2037 it gives one in the past.
func midnight(y int, m time.Month, d int, zone *time.Location) int64 {
	utc := time.Date(y, m, d, 0, 0, 0, 0, time.UTC)
	ahead := func(t time.Time) time.Duration {
		_, seconds := t.In(zone).Zone()
		return time.Duration(seconds) * time.Second
	}
	// No zone is a day off UTC, so clocks change at most once between these.
	before, after := ahead(utc.Add(-24*time.Hour)), ahead(utc.Add(24*time.Hour))
	first, second := utc.Add(-before), utc.Add(-after)
	if ahead(first) == before {
		return first.UnixNano()
	}
	// Clocks have changed by then. If they skipped midnight, the day starts with
	// the change, which lies between.
	skipped := sort.Search(int(first.Sub(second)/time.Second), func(i int) bool {
		return ahead(second.Add(time.Duration(i)*time.Second)) == after
	})
	return second.Add(time.Duration(skipped) * time.Second).UnixNano()
}
