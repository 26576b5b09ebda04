package rules

import (
	"strings"
	"time"

	"github.com/ringlimit/ringlimit/limit"
)

// parseWindow reads a duration as Go writes it, or a part of the calendar. The
// problem is empty when the text is fine.
func parseWindow(text string) (window time.Duration, calendar limit.Calendar, problem string) {
	if calendar, err := limit.ParseCalendar(text); err == nil {
		return 0, calendar, ""
	}
	window, err := time.ParseDuration(text)
	switch {
	case err == nil && window == 0:
		return 0, 0, `must be longer than 0, like 60s; for "never" write limit: 0`
	case err == nil:
		return window, 0, ""
	case text != "" && strings.Trim(text, "0123456789.") == "":
		return 0, 0, "lacks a unit; write 60s, 5m or 24h"
	case strings.HasSuffix(text, "d") || strings.HasSuffix(text, "w"):
		return 0, 0, "has a unit that is not known; write days as hours (24h, 168h), or day for the calendar's own"
	}
	return 0, 0, "must be a duration, like 500ms, 60s, 5m or 24h; fixed_window also takes day and month"
}
