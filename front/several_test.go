package front_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/dunglas/httpsfv"

	"github.com/ringlimit/ringlimit/front"
	"github.com/ringlimit/ringlimit/limit"
)

// several are the limits of one request.
type several struct{ hour, day, never, unasked, trial limit.Verdict }

func newSeveral(t testing.TB) several {
	hour := rule(t, "hourly", limit.Spec{Algorithm: limit.FixedWindow, Limit: 5, Window: time.Hour})
	day := rule(t, "daily", limit.Spec{Algorithm: limit.FixedWindow, Limit: 100, Window: 24 * time.Hour})
	trial := rule(t, "trial", limit.Spec{Algorithm: limit.FixedWindow, Limit: 1, Window: time.Hour})
	trial.Shadow = true
	return several{
		hour:    limit.Verdict{Rule: hour, Limit: 5, RetryAfter: time.Minute, ResetAfter: time.Minute, Source: limit.SourceForwarded},
		day:     limit.Verdict{Allowed: true, Rule: day, Limit: 100, Remaining: 95, ResetAfter: 7 * time.Hour, Source: limit.SourceOwner},
		never:   limit.Verdict{Rule: hour, Limit: 5, Remaining: 5, Reason: limit.CostExceedsLimit},
		unasked: limit.Verdict{Rule: hour, Limit: 5, Reason: limit.Unavailable, Source: limit.SourceFallback},
		trial:   limit.Verdict{Rule: trial, Limit: 1, RetryAfter: time.Hour, ResetAfter: time.Hour, Source: limit.SourceOwner},
	}
}

func (s several) admitted() limit.Verdict {
	hour := s.hour
	hour.Allowed, hour.Remaining, hour.RetryAfter = true, 2, 0
	return limit.Combine([]limit.Verdict{hour, s.day, s.trial})
}

const bothPolicies = `"hourly";q=5;w=3600, "daily";q=100;w=86400`

func TestHeadersListAllLimits(t *testing.T) {
	s := newSeveral(t)
	longer := s.day
	longer.Allowed, longer.Remaining, longer.RetryAfter = false, 0, time.Hour
	tests := map[string]struct {
		verdict                                   limit.Verdict
		policies, standing, limit, reset, retries string
	}{
		"admitted": {s.admitted(),
			bothPolicies, `"hourly";r=2;t=60, "daily";r=95;t=25200`, "5", "60", ""},
		"refused: no time that is later than Retry-After": {limit.Combine([]limit.Verdict{s.hour, s.trial, s.day}),
			bothPolicies, `"hourly";r=0;t=60, "daily";r=95`, "5", "60", "60"},
		"refused by both": {limit.Combine([]limit.Verdict{s.hour, longer}),
			bothPolicies, `"hourly";r=0;t=60, "daily";r=0;t=3600`, "100", "3600", "3600"},
		"refused for good": {limit.Combine([]limit.Verdict{s.never, longer}),
			bothPolicies, `"hourly";r=5, "daily";r=0`, "5", "", ""},
		"one could not be asked": {limit.Combine([]limit.Verdict{s.unasked, s.day}),
			bothPolicies, `"daily";r=95`, "", "", "1"},
		"in shadow only": {limit.Combine([]limit.Verdict{s.trial}), "", "", "", "", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := httptest.NewRecorder()
			if test.verdict.Allowed {
				front.SetHeaders(w.Header(), &test.verdict, noon)
			} else {
				front.WriteDenial(w, &test.verdict, noon, 0, 0)
			}
			for name, want := range map[string]string{
				"RateLimit-Policy": test.policies, "RateLimit": test.standing,
				"RateLimit-Limit": test.limit, "X-RateLimit-Limit": test.limit,
				"RateLimit-Reset": test.reset, "Retry-After": test.retries,
			} {
				if got := w.Header().Get(name); got != want {
					t.Errorf("%s: %s, want %s", name, got, want)
				}
			}
			parseLists(t, w.Header())
		})
	}
}

// parseLists reads both fields as RFC 9651 would.
func parseLists(t *testing.T, h http.Header) {
	t.Helper()
	for _, name := range []string{"Ratelimit-Policy", "Ratelimit"} {
		list, err := httpsfv.UnmarshalList(h[name])
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, member := range list {
			if _, ok := member.(httpsfv.Item).Value.(string); !ok {
				t.Errorf("%s: %v is no String", name, member)
			}
		}
	}
}

// A refusal names all that refused, and has the figures of the one that binds.
func TestDenialNamesAllThatRefused(t *testing.T) {
	s := newSeveral(t)
	third := s.hour
	third.Rule, third.RetryAfter = perMinute(t, "third", 7), time.Second
	lost := limit.Verdict{Rule: perMinute(t, "lost", 7), Reason: limit.Unavailable, Limit: 7}
	v := limit.Combine([]limit.Verdict{third, lost, s.hour, s.day, s.trial})
	w := httptest.NewRecorder()
	front.WriteDenial(w, &v, noon, 0, 0)
	const want = `{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Too Many Requests","status":429,"violated-policies":["third","hourly"],"limit":5,"window":"3600s","retry_after":60}`
	if got := w.Body.String(); got != want || w.Code != 429 {
		t.Errorf("%d\n%s, want\n%s", w.Code, got, want)
	}
	v = limit.Combine([]limit.Verdict{s.day, lost})
	w = httptest.NewRecorder()
	front.WriteDenial(w, &v, noon, 0, 0)
	if got := w.Body.String(); w.Code != 503 || !strings.Contains(got, `"violated-policies":["lost"]`) {
		t.Errorf("nobody could be asked: %d %s", w.Code, got)
	}
}

func TestVerdictJSONListsAllLimits(t *testing.T) {
	s := newSeveral(t)
	missing := limit.Verdict{Rule: s.hour.Rule, Limit: 5, Reason: limit.MissingDimension}
	const (
		hour  = `{"rule":"hourly","allowed":false,"limit":5,"remaining":0,"retry_after_ms":60000,"reset_at":"2025-02-01T12:01:00.000Z"}`
		day   = `{"rule":"daily","allowed":true,"limit":100,"remaining":95,"retry_after_ms":0,"reset_at":"2025-02-01T19:00:00.000Z"}`
		trial = `{"rule":"trial","allowed":false,"limit":1,"remaining":0,"retry_after_ms":3600000,"reset_at":"2025-02-01T13:00:00.000Z","shadow":true}`
		never = `{"rule":"hourly","allowed":false,"limit":5,"remaining":5,"reset_at":"2025-02-01T12:00:00.000Z","reason":"cost_exceeds_limit"}`
	)
	tests := map[string]struct {
		limits []limit.Verdict
		want   string
	}{
		"the binding one, and each": {[]limit.Verdict{s.day, s.hour, s.trial},
			`{"allowed":false,"limit":5,"remaining":0,"retry_after_ms":60000,"reset_at":"2025-02-01T12:01:00.000Z","rule":"hourly","source":"owner","limits":[` + day + `,` + hour + `,` + trial + `]}`},
		"for good": {[]limit.Verdict{s.never, s.day},
			`{"allowed":false,"limit":5,"remaining":5,"reset_at":"2025-02-01T12:00:00.000Z","rule":"hourly","reason":"cost_exceeds_limit","limits":[` + never + `,` + day + `]}`},
		"nobody was asked": {[]limit.Verdict{missing},
			`{"allowed":false,"rule":"hourly","reason":"missing_dimension","limits":[{"rule":"hourly","allowed":false,"reason":"missing_dimension"}]}`},
		"in shadow only": {[]limit.Verdict{s.trial}, `{"allowed":true,"limits":[` + trial + `]}`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			v := limit.Combine(test.limits)
			if got := string(front.AppendVerdict(nil, &v, noon)); got != test.want {
				t.Errorf("\n%s, want\n%s", got, test.want)
			}
		})
	}
}

// BenchmarkHeadersOfTwo compares the headers of two limits with those of one.
func BenchmarkHeadersOfTwo(b *testing.B) {
	s := newSeveral(b)
	v, h := limit.Combine([]limit.Verdict{s.hour, s.day}), http.Header{}
	b.ReportAllocs()
	for b.Loop() {
		front.SetHeaders(h, &v, noon)
	}
	two, began := b.Elapsed(), time.Now()
	for range b.N {
		front.SetHeaders(h, &s.hour, noon)
	}
	b.ReportMetric(float64(two)/float64(time.Since(began)), "one/ratio")
}
