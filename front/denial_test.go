package front_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/ringlimit/ringlimit/front"
	"github.com/ringlimit/ringlimit/limit"
)

func TestDenial(t *testing.T) {
	hundred := perMinute(t, "free-client", 100)
	jittered := perMinute(t, "free-client", 100)
	jittered.Jitter = true
	odd := rule(t, "odd", limit.Spec{Algorithm: limit.FixedWindow, Limit: 1, Window: 1500 * time.Millisecond})
	day := rule(t, "daily", limit.Spec{Algorithm: limit.FixedWindow, Calendar: limit.CalendarDay})
	wait := 5200 * time.Millisecond
	tests := map[string]struct {
		verdict limit.Verdict
		status  int // asked for
		random  float64
		want    int
		retry   string
		body    string
	}{
		"exact": {limit.Verdict{Rule: hundred, RetryAfter: wait}, 0, 0.99, 429, "6",
			`{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Too Many Requests","status":429,"violated-policies":["free-client"],"limit":100,"window":"60s","retry_after":6}`},
		"the header is jittered, the body is not": {limit.Verdict{Rule: jittered, RetryAfter: wait}, 0, 0.5, 429, "8",
			`{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Too Many Requests","status":429,"violated-policies":["free-client"],"limit":100,"window":"60s","retry_after":6}`},
		"a long wait is jittered by 10 s": {limit.Verdict{Rule: jittered, RetryAfter: 1000 * time.Second}, 0, 0.99, 429, "1010",
			`{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Too Many Requests","status":429,"violated-policies":["free-client"],"limit":100,"window":"60s","retry_after":1000}`},
		"the status that the proxy understands": {limit.Verdict{Rule: odd, RetryAfter: wait}, 403, 0, 403, "6",
			`{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Too Many Requests","status":403,"violated-policies":["odd"],"limit":1,"window":"1500ms","retry_after":6}`},
		"G50: 200 ms": {limit.Verdict{Rule: hundred, RetryAfter: 200 * time.Millisecond}, 0, 0, 429, "1",
			`{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Too Many Requests","status":429,"violated-policies":["free-client"],"limit":100,"window":"60s","retry_after":1}`},
		"A5: a cost that never fits": {limit.Verdict{Rule: day, Reason: limit.CostExceedsLimit, ResetAfter: wait}, 0, 0, 429, "",
			`{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Too Many Requests","status":429,"violated-policies":["daily"],"limit":0,"window":"day","detail":"the request costs more than this limit ever admits"}`},
		"F44: a dimension is missing": {limit.Verdict{Rule: hundred, Reason: limit.MissingDimension}, 0, 0, 429, "",
			`{"type":"about:blank","title":"Too Many Requests","status":429,"violated-policies":["free-client"],"limit":100,"window":"60s","detail":"the request lacks a value that this limit counts by"}`},
		"H55: nobody could be asked": {limit.Verdict{Rule: jittered, Reason: limit.Unavailable, RetryAfter: time.Hour}, 0, 0.99, 503, "1",
			`{"type":"https://iana.org/assignments/http-problem-types#temporary-reduced-capacity","title":"Service Unavailable","status":503,"violated-policies":["free-client"],"limit":100,"window":"60s","detail":"nobody who counts this limit could be asked, and it refuses then"}`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := httptest.NewRecorder()
			front.WriteDenial(w, &test.verdict, noon, test.status, test.random)
			if w.Code != test.want || w.Header().Get("Retry-After") != test.retry {
				t.Errorf("%d, Retry-After %q; want %d, %q", w.Code, w.Header().Get("Retry-After"), test.want, test.retry)
			}
			if got := w.Body.String(); got != test.body {
				t.Errorf("body\n%s, want\n%s", got, test.body)
			}
			for name, want := range map[string]string{"Content-Type": "application/problem+json", "Cache-Control": "no-store"} {
				if got := w.Header().Get(name); got != want {
					t.Errorf("%s: %s, want %s", name, got, want)
				}
			}
		})
	}
}

func TestProblemOf(t *testing.T) {
	tests := []struct {
		err  error
		want string
	}{
		{&limit.InputError{Field: "key", Problem: "is empty"},
			`{"type":"about:blank","title":"Bad Request","status":400,"detail":"key: is empty","field":"key"}`},
		{fmt.Errorf("asking: %w", &limit.InputError{Field: "\xff", Problem: "is odd"}),
			`{"type":"about:blank","title":"Bad Request","status":400,"detail":"` + "\uFFFD" + `: is odd","field":"` + "\uFFFD" + `"}`},
		{front.NewProblem(413, "body", "too large"),
			`{"type":"about:blank","title":"Request Entity Too Large","status":413,"detail":"too large","field":"body"}`},
		{fmt.Errorf("asking: %w", context.DeadlineExceeded),
			`{"type":"about:blank","title":"Service Unavailable","status":503,"detail":"the request ended before it was decided"}`},
		{fmt.Errorf("asking: %w", &limit.RefundError{Returned: 1, Of: 2, Err: context.DeadlineExceeded}),
			`{"type":"about:blank","title":"Failed Dependency","status":424,"detail":"the cost was given back to 1 of 2 limits, and may be lost to the others; do not send the refund again: some would get it twice"}`},
		{fmt.Errorf("asking: %w", absent(true)),
			`{"type":"about:blank","title":"Service Unavailable","status":503,"detail":"nobody could be asked to decide the request"}`},
		{absent(false),
			`{"type":"about:blank","title":"Internal Server Error","status":500,"detail":"the request could not be decided"}`},
		{errors.New("password of the database is 1234"),
			`{"type":"about:blank","title":"Internal Server Error","status":500,"detail":"the request could not be decided"}`},
	}
	for _, test := range tests {
		if got := string(front.ProblemOf(test.err).JSON()); got != test.want {
			t.Errorf("%v:\n%s, want\n%s", test.err, got, test.want)
		}
	}
}

// absent says of itself whether it is unavailable.
type absent bool

func (absent) Error() string       { return "10.0.0.7 is gone" }
func (a absent) Unavailable() bool { return bool(a) }
