package front

import (
	"net/http"
	"strconv"
	"time"

	"github.com/ringlimit/ringlimit/limit"
)

// Problem types of draft-ietf-httpapi-ratelimit-headers-11, section 6.
const (
	typeQuotaExceeded   = "https://iana.org/assignments/http-problem-types#quota-exceeded"
	typeReducedCapacity = "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"
)

const maxJitter = 10 * time.Second

// Status is what a refusal is over HTTP: 503 when nobody could be asked and the
// rule refuses then (the client did nothing wrong), else 429.
func Status(v *limit.Verdict) int {
	if v.Reason == limit.Unavailable {
		return http.StatusServiceUnavailable
	}
	return http.StatusTooManyRequests
}

// WriteDenial answers a refused request: the headers, Retry-After, and a problem
// body with exact figures. A status other than 0 stands in for [Status], for
// proxies that understand only some. random is in [0, 1) and spreads Retry-After.
func WriteDenial(w http.ResponseWriter, v *limit.Verdict, now time.Time, status int, random float64) {
	SetHeaders(w.Header(), v, now)
	if seconds := RetryAfter(v, random); seconds > 0 {
		w.Header().Set("Retry-After", strconv.FormatInt(seconds, 10))
	}
	p := denial(v)
	if status != 0 {
		p.Status = status
	}
	p.Write(w)
}

// RetryAfter is the Retry-After header of a refused request in whole seconds, at
// least 1; 0 means that there is none, because no wait would help. If the rule
// says so the wait is spread over [wait, wait + min(wait, 10 s)), so that clients
// refused together do not come back together.
func RetryAfter(v *limit.Verdict, random float64) int64 {
	wait, helps := effective(v)
	switch {
	case v.Reason == limit.Unavailable && !v.Allowed:
		return 1 // nobody knows; soon
	case v.Allowed || !helps:
		return 0
	}
	if v.Rule != nil && v.Rule.Jitter {
		wait += time.Duration(random * float64(min(wait, maxJitter)))
	}
	return wholeSeconds(wait)
}

func denial(v *limit.Verdict) *Problem {
	p := &Problem{Type: typeQuotaExceeded, Title: "Too Many Requests", Status: Status(v)}
	switch v.Reason {
	case limit.Unavailable:
		p.Type, p.Title = typeReducedCapacity, http.StatusText(p.Status)
		p.Detail = "nobody who counts this limit could be asked, and it refuses then"
	case limit.MissingDimension:
		p.Type = typeBlank
		p.Detail = "the request lacks a value that this limit counts by"
	case limit.CostExceedsLimit:
		p.Detail = "the request costs more than this limit ever admits"
	}
	if v.Rule != nil {
		p.describe(v)
	}
	return p
}

// describe adds the rules that refuse. The figures are those of the one that binds;
// its limit and window are those of RateLimit-Policy.
func (p *Problem) describe(v *limit.Verdict) {
	p.Policies = violated(v)
	p.Limit = &v.Rule.Limit
	p.Window = window(v.Rule)
	if wait, helps := effective(v); helps {
		p.RetryAfter = wholeSeconds(wait)
	}
}

// violated is the policies that the problem is about: those whose quota is exceeded,
// and where none is, those whose capacity is reduced. A limit that nobody could be
// asked for was not exceeded.
func violated(v *limit.Verdict) []string {
	limits := v.Limits()
	if limits == nil {
		return []string{v.Rule.Name}
	}
	var names []string
	for i := range limits {
		l := &limits[i]
		if about := (l.Reason == limit.Unavailable) == (v.Reason == limit.Unavailable); about && !l.Allowed && !l.Rule.Shadow {
			names = append(names, l.Rule.Name)
		}
	}
	return names
}

// window is the rule's window as a rule file would have it, in one unit.
func window(r *limit.Rule) string {
	switch {
	case r.Calendar != limit.NoCalendar:
		return r.Calendar.String()
	case r.Window%time.Second == 0:
		return strconv.FormatInt(int64(r.Window/time.Second), 10) + "s"
	case r.Window%time.Millisecond == 0:
		return strconv.FormatInt(r.Window.Milliseconds(), 10) + "ms"
	}
	return r.Window.String()
}
