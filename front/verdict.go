package front

import (
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/ringlimit/ringlimit/limit"
)

// AppendVerdict appends the verdict as a JSON object. now is when it was given;
// reset_at is a time of this clock, to the nearest millisecond. A request that
// lacks what the rule counts by has met no counter and gets no figures. Where there
// are several limits, or one in shadow, each of them follows as a member of limits.
func AppendVerdict(b []byte, v *limit.Verdict, now time.Time) []byte {
	b = append(b, `{"allowed":`...)
	b = strconv.AppendBool(b, v.Allowed)
	if v.Rule != nil && v.Reason != limit.MissingDimension {
		b = appendFigures(b, v, now)
	}
	b = appendDecision(b, v)
	b = appendLimits(b, v.Limits(), now)
	return append(b, '}')
}

func appendLimits(b []byte, limits []limit.Verdict, now time.Time) []byte {
	if limits == nil {
		return b
	}
	b = append(b, `,"limits":[`...)
	for i := range limits {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendLimit(b, &limits[i], now)
	}
	return append(b, ']')
}

func appendLimit(b []byte, v *limit.Verdict, now time.Time) []byte {
	b = appendText(b, `{"rule":`, v.Rule.Name)
	b = append(b, `,"allowed":`...)
	b = strconv.AppendBool(b, v.Allowed)
	if v.Reason != limit.MissingDimension {
		b = appendFigures(b, v, now)
	}
	b = appendText(b, `,"reason":`, v.Reason.String())
	if v.Rule.Shadow {
		b = append(b, `,"shadow":true`...)
	}
	return append(b, '}')
}

func appendFigures(b []byte, v *limit.Verdict, now time.Time) []byte {
	b = appendInt(b, `,"limit":`, v.Limit)
	b = appendInt(b, `,"remaining":`, v.Remaining)
	if wait, ok := retryAfterMillis(v); ok {
		b = appendInt(b, `,"retry_after_ms":`, wait)
	}
	b = append(b, `,"reset_at":"`...)
	b = instant(now, v.ResetAfter).UTC().AppendFormat(b, "2006-01-02T15:04:05.000Z07:00")
	return append(b, '"')
}

func appendDecision(b []byte, v *limit.Verdict) []byte {
	if v.Rule != nil {
		b = appendText(b, `,"rule":`, v.Rule.Name)
		b = appendText(b, `,"source":`, v.Source.Decider())
	}
	b = appendText(b, `,"reason":`, v.Reason.String())
	if v.Delay > 0 {
		b = appendInt(b, `,"delay_ms":`, wholeMillis(v.Delay))
	}
	return b
}

// retryAfterMillis is exact, rounded up: 0 when allowed, absent when no wait is
// known to help.
func retryAfterMillis(v *limit.Verdict) (int64, bool) {
	if v.Allowed {
		return 0, true
	}
	wait, helps := effective(v)
	return wholeMillis(wait), helps
}

func appendInt(b []byte, name string, n int64) []byte {
	return strconv.AppendInt(append(b, name...), n, 10)
}

// appendText leaves empty text out. What is not UTF-8 is replaced; the error
// that says so is of no use here.
func appendText(b []byte, name, text string) []byte {
	if text == "" {
		return b
	}
	b, _ = jsontext.AppendQuote(append(b, name...), text)
	return b
}
