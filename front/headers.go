package front

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/ringlimit/ringlimit/limit"
)

// maxInteger is the largest Integer of a structured field (RFC 9651, section
// 3.3.1): 15 digits. A limit may have 16.
const maxInteger = 999_999_999_999_999

// SetHeaders tells the client where it stands, in the three forms in use: the
// RateLimit-* triple (seconds), the X-RateLimit-* triple (its Reset is Unix
// time) and RateLimit with RateLimit-Policy (draft-ietf-httpapi-ratelimit-headers-11).
// The latter two list all limits of the request, the triples show the one that
// binds. A limit in shadow is none of the client's concern.
//
// A verdict without a rule has nothing to tell. One that no counter stands
// behind (nobody could be asked, or the request lacks what the rule counts by)
// tells the policy alone. A refusal that no wait helps has no time in it: any
// would read as one to come back at. For the same reason the limits that do not
// refuse show none in a refusal.
func SetHeaders(h http.Header, v *limit.Verdict, now time.Time) {
	if v.Rule == nil {
		return
	}
	only := [1]limit.Verdict{*v}
	limits := v.Limits()
	if limits == nil {
		limits = only[:]
	}
	var f fields
	f.text.Grow(textBytes)
	f.policies(limits, now)
	f.standings(limits, v)
	if counted(v) {
		f.triples(v, now)
	}
	f.copyTo(h)
}

// counted says whether the verdict's figures are a counter's.
func counted(v *limit.Verdict) bool {
	return v.Reason != limit.Unavailable && v.Reason != limit.MissingDimension
}

// effective is the time that the Reset fields speak of: a refused client's
// wait, which is never nothing, or an admitted one's time until the whole budget
// is back. false: no wait helps.
func effective(v *limit.Verdict) (time.Duration, bool) {
	switch {
	case v.Allowed:
		return v.ResetAfter, true
	case v.Reason == limit.NoReason:
		return max(v.RetryAfter, time.Millisecond), true
	}
	return 0, false
}

// instant is when a time of the verdict is over. now is a little later than the
// decision was, so the sum misses the end of a window by microseconds: the
// nearest millisecond is the one that is meant.
func instant(now time.Time, after time.Duration) time.Time {
	return now.Add(after).Round(time.Millisecond)
}

// textBytes is enough for the usual values together.
const textBytes = 192

// fields gathers header values in one text, so that all of them together cost two
// allocations: the text, and the slice that the values are cut from.
type fields struct {
	text strings.Builder
	ends [len(names)]int
	n    int
}

// names is the order in which the values are gathered, in Go's canonical form.
var names = [...]string{
	"Ratelimit-Policy", "Ratelimit",
	"Ratelimit-Limit", "Ratelimit-Remaining", "X-Ratelimit-Limit", "X-Ratelimit-Remaining",
	"Ratelimit-Reset", "X-Ratelimit-Reset", // last: a refusal for good has neither
}

// policies lists what the limits are.
func (f *fields) policies(limits []limit.Verdict, now time.Time) {
	for i := range limits {
		rule := limits[i].Rule
		if rule.Shadow {
			continue
		}
		f.member(rule.Name)
		f.param(";q=", rule.Limit)
		if w := rule.WindowSeconds(now.UnixNano()); w > 0 {
			f.param(";w=", w)
		}
	}
	f.end()
}

// standings lists where the client stands with those limits of the verdict that
// have a counter.
func (f *fields) standings(limits []limit.Verdict, v *limit.Verdict) {
	_, helps := effective(v)
	for i := range limits {
		l := &limits[i]
		if l.Rule.Shadow || !counted(l) {
			continue
		}
		f.member(l.Rule.Name)
		f.param(";r=", l.Remaining)
		if wait, some := effective(l); some && helps && l.Allowed == v.Allowed {
			f.param(";t=", wholeSeconds(wait))
		}
	}
	if f.text.Len() > f.start() { // an empty list is no field: RFC 9651, section 4.1
		f.end()
	}
}

func (f *fields) triples(v *limit.Verdict, now time.Time) {
	for range 2 {
		f.integer(v.Limit)
		f.integer(v.Remaining)
	}
	if wait, helps := effective(v); helps {
		f.integer(wholeSeconds(wait))
		f.integer(unixCeil(instant(now, wait)))
	}
}

// member begins a member of a list.
func (f *fields) member(policy string) {
	if f.text.Len() > f.start() {
		f.text.WriteString(", ")
	}
	f.name(policy)
}

// name appends a policy's name as an RFC 9651 String. Rule names are printable
// ASCII; anything else would end or corrupt the field and is replaced.
func (f *fields) name(s string) {
	f.text.WriteByte('"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			f.text.WriteByte('\\')
			f.text.WriteByte(c)
		case c < ' ' || c > '~':
			f.text.WriteByte('?')
		default:
			f.text.WriteByte(c)
		}
	}
	f.text.WriteByte('"')
}

func (f *fields) param(key string, value int64) {
	f.text.WriteString(key)
	f.number(value)
}

func (f *fields) integer(value int64) {
	f.number(value)
	f.end()
}

func (f *fields) number(n int64) {
	var digits [20]byte
	f.text.Write(strconv.AppendInt(digits[:0], min(max(n, 0), maxInteger), 10))
}

// start is where the value begins that is being written.
func (f *fields) start() int {
	if f.n == 0 {
		return 0
	}
	return f.ends[f.n-1]
}

// end closes a value.
func (f *fields) end() {
	f.ends[f.n] = f.text.Len()
	f.n++
}

func (f *fields) copyTo(h http.Header) {
	text, values, start := f.text.String(), make([]string, f.n), 0
	for i, end := range f.ends[:f.n] {
		values[i] = text[start:end]
		h[names[i]] = values[i : i+1 : i+1]
		start = end
	}
}

// wholeSeconds rounds up: a client that comes back when told must not be early.
func wholeSeconds(d time.Duration) int64 {
	return ceilDiv(max(d, 0), time.Second)
}

func wholeMillis(d time.Duration) int64 {
	return ceilDiv(max(d, 0), time.Millisecond)
}

func ceilDiv(d, unit time.Duration) int64 {
	n := int64(d / unit)
	if d%unit > 0 {
		n++
	}
	return n
}

func unixCeil(t time.Time) int64 {
	if t.Nanosecond() > 0 {
		return t.Unix() + 1
	}
	return t.Unix()
}
