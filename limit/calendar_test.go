package limit

import (
	"testing"
	"time"
)

const stamp = "2006-01-02 15:04:05 -0700"

// D32: envoyproxy/ratelimit#407, #743. A month or a day ends at its own
// midnight in its zone.
func TestD32CalendarWindows(t *testing.T) {
	cases := []struct {
		name       string
		calendar   Calendar
		zone       string
		now        string
		start, end string
	}{
		{"from 31 January", CalendarMonth, "", "2025-01-31 12:00:00 +0000",
			"2025-01-01 00:00:00 +0000", "2025-02-01 00:00:00 +0000"},
		{"February", CalendarMonth, "", "2025-02-28 23:59:59 +0000",
			"2025-02-01 00:00:00 +0000", "2025-03-01 00:00:00 +0000"},
		{"29 February", CalendarMonth, "", "2024-02-29 23:59:59 +0000",
			"2024-02-01 00:00:00 +0000", "2024-03-01 00:00:00 +0000"},
		{"2100 is no leap year", CalendarMonth, "", "2100-02-28 23:59:59 +0000",
			"2100-02-01 00:00:00 +0000", "2100-03-01 00:00:00 +0000"},
		{"over the year's end", CalendarMonth, "", "2025-12-31 23:59:59 +0000",
			"2025-12-01 00:00:00 +0000", "2026-01-01 00:00:00 +0000"},
		{"the first moment is of the new month", CalendarMonth, "", "2025-02-01 00:00:00 +0000",
			"2025-02-01 00:00:00 +0000", "2025-03-01 00:00:00 +0000"},
		{"in Tokyo it is February already", CalendarMonth, "Asia/Tokyo", "2025-01-31 15:00:00 +0000",
			"2025-02-01 00:00:00 +0900", "2025-03-01 00:00:00 +0900"},
		{"in New York not yet", CalendarMonth, "America/New_York", "2025-02-01 04:59:59 +0000",
			"2025-01-01 00:00:00 -0500", "2025-02-01 00:00:00 -0500"},
		{"a month in which the clocks go forward", CalendarMonth, "Europe/Berlin", "2025-03-31 12:00:00 +0200",
			"2025-03-01 00:00:00 +0100", "2025-04-01 00:00:00 +0200"},
		{"a day of 23 hours", CalendarDay, "Europe/Berlin", "2025-03-30 12:00:00 +0200",
			"2025-03-30 00:00:00 +0100", "2025-03-31 00:00:00 +0200"},
		{"a day of 25 hours", CalendarDay, "Europe/Berlin", "2025-10-26 02:30:00 +0100",
			"2025-10-26 00:00:00 +0200", "2025-10-27 00:00:00 +0100"},
		{"half an hour of summer time", CalendarDay, "Australia/Lord_Howe", "2025-04-06 12:00:00 +1030",
			"2025-04-06 00:00:00 +1100", "2025-04-07 00:00:00 +1030"},
		{"a day without midnight", CalendarDay, "America/Sao_Paulo", "2018-11-04 12:00:00 -0200",
			"2018-11-04 01:00:00 -0200", "2018-11-05 00:00:00 -0200"},
		{"the hour before it", CalendarDay, "America/Sao_Paulo", "2018-11-03 23:30:00 -0300",
			"2018-11-03 00:00:00 -0300", "2018-11-04 01:00:00 -0200"},
		{"23:30 comes twice", CalendarDay, "America/Sao_Paulo", "2018-02-17 23:30:00 -0300",
			"2018-02-17 00:00:00 -0200", "2018-02-18 00:00:00 -0300"},
		{"the clock goes back over midnight: the day stays over", CalendarDay, "America/St_Johns", "2010-11-06 23:30:00 -0330",
			"2010-11-07 00:00:00 -0230", "2010-11-08 00:00:00 -0330"},
		{"the day before that ends at its first midnight", CalendarDay, "America/St_Johns", "2010-11-06 23:30:00 -0230",
			"2010-11-06 00:00:00 -0230", "2010-11-07 00:00:00 -0230"},
		{"the last day of a leap year after 2037", CalendarDay, "Europe/Berlin", "2044-12-31 19:00:00 +0100",
			"2044-12-31 00:00:00 +0100", "2045-01-01 00:00:00 +0100"},
		{"Samoa went without 30 December", CalendarDay, "Pacific/Apia", "2011-12-29 12:00:00 -1000",
			"2011-12-29 00:00:00 -1000", "2011-12-31 00:00:00 +1400"},
		{"and came to the 31st", CalendarDay, "Pacific/Apia", "2011-12-31 12:00:00 +1400",
			"2011-12-31 00:00:00 +1400", "2012-01-01 00:00:00 +1400"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := mustRule(t, Spec{Algorithm: FixedWindow, Limit: 1, Calendar: c.calendar, Timezone: c.zone})
			now, begin, end := parseTime(t, c.now), parseTime(t, c.start), parseTime(t, c.end)
			s, v := r.Take(State{}, now, 1)
			if s.A != begin || s.B != end {
				zone, _ := time.LoadLocation(c.zone)
				t.Fatalf("window from %s to %s", time.Unix(0, s.A).In(zone).Format(stamp), time.Unix(0, s.B).In(zone).Format(stamp))
			}
			if !v.Allowed || int64(v.ResetAfter) != end-now {
				t.Errorf("%s, reset after %v", brief(v), v.ResetAfter)
			}
			if v := r.Peek(s, end-1, 1); v.Allowed {
				t.Errorf("a nanosecond before the end: %s", brief(v))
			}
			if v := r.Peek(s, end, 1); !v.Allowed {
				t.Errorf("at the end: %s", brief(v))
			}
		})
	}
}

func parseTime(t *testing.T, s string) int64 {
	t.Helper()
	at, err := time.Parse(stamp, s)
	if err != nil {
		t.Fatal(err)
	}
	return at.UnixNano()
}

// In every zone and year windows follow each other without a gap or an overlap,
// and contain the moments that they are for.
func TestCalendarWindowsTile(t *testing.T) {
	for _, name := range []string{"UTC", "Europe/Berlin", "America/Sao_Paulo", "America/St_Johns", "Asia/Beirut",
		"Africa/Cairo", "America/Havana", "Asia/Gaza", "Atlantic/Azores", "Pacific/Apia", "Pacific/Kwajalein", "Africa/Casablanca"} {
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []Calendar{CalendarDay, CalendarMonth} {
			_, now := c.around(parseTime(t, "1993-08-01 12:00:00 +0000"), zone)
			for now < parseTime(t, "2046-01-01 00:00:00 +0000") {
				start, end := c.around(now, zone)
				lastStart, lastEnd := c.around(end-1, zone)
				if start != now || end-start < int64(22*time.Hour) || lastStart != start || lastEnd != end {
					t.Fatalf("%s: the %v from %v to %v starts at %v; at its end it is from %v to %v", name, c,
						time.Unix(0, start), time.Unix(0, end), time.Unix(0, now), time.Unix(0, lastStart), time.Unix(0, lastEnd))
				}
				now = end
			}
		}
	}
}
