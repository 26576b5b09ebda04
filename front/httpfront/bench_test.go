package httpfront

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/ringlimit/ringlimit/limit"
)

const benchBody = `{"key":"cust_42","route":"POST /v1/charges","cost":1,"tier":"free"}`

// BenchmarkCheck is the door alone: the checker answers at once. The ratio is to
// a handler of the same shape written with encoding/json and no strictness.
func BenchmarkCheck(b *testing.B) {
	rule := perMinute(b, 100)
	cfg := Config{Checker: says{limit.Verdict{Allowed: true, Rule: rule, Source: limit.SourceOwner, Limit: 100, Remaining: 99}}}
	ask := asker(New(cfg), "/v1/check", benchBody)
	b.ReportAllocs()
	for b.Loop() {
		ask()
	}
	b.ReportMetric(ratio(b, asker(http.HandlerFunc(plain), "/v1/check", benchBody)), "encoding_json/ratio")
}

// BenchmarkChecks100 is a batch; the ratio is to as many single checks.
func BenchmarkChecks100(b *testing.B) {
	rule := perMinute(b, 100)
	cfg := Config{Checker: says{limit.Verdict{Allowed: true, Rule: rule, Source: limit.SourceOwner, Limit: 100, Remaining: 99}}}
	ask, single := asker(New(cfg), "/v1/checks", distinct(100)), asker(New(cfg), "/v1/check", benchBody)
	b.ReportAllocs()
	for b.Loop() {
		ask()
	}
	b.ReportMetric(ratio(b, func() {
		for range 100 {
			single()
		}
	}), "checks/ratio")
}

// BenchmarkAuthorize is a request of a proxy; the ratio is to BenchmarkCheck's.
func BenchmarkAuthorize(b *testing.B) {
	h := allowing(b)
	ask := authorizer(h)
	b.ReportAllocs()
	for b.Loop() {
		ask()
	}
	b.ReportMetric(ratio(b, asker(h, "/v1/check", benchBody)), "check/ratio")
}

// allowing is a door whose checker admits at once.
func allowing(tb testing.TB) http.Handler {
	return New(Config{Checker: says{limit.Verdict{Allowed: true, Rule: perMinute(tb, 100), Limit: 100, Remaining: 99}}})
}

// authorizer asks h as a proxy does, again and again, and allocates nothing itself.
func authorizer(h http.Handler) func() {
	r := from("10.0.0.1:1", "GET", "/v1/authorize", "X-API-Key: cust_42", "X-Forwarded-Method: POST", "X-Forwarded-Uri: /v1/charges?x=1")
	w := &nowhere{header: http.Header{}}
	return func() {
		clear(w.header)
		h.ServeHTTP(w, r)
	}
}

// ratio is the time of the benchmark so far to that of as many runs of peer.
func ratio(b *testing.B, peer func()) float64 {
	ours, start := b.Elapsed(), time.Now()
	for range b.N {
		peer()
	}
	return float64(ours) / float64(time.Since(start))
}

// asker asks h again and again, and allocates nothing itself.
func asker(h http.Handler, path, body string) func() {
	r := httptest.NewRequest("POST", path, nil)
	r.Header.Set("Content-Type", "application/json")
	w, text := &nowhere{header: http.Header{}}, strings.NewReader(body)
	r.Body = io.NopCloser(text)
	return func() {
		text.Reset(body)
		clear(w.header)
		h.ServeHTTP(w, r)
	}
}

// nowhere is a ResponseWriter that keeps nothing.
type nowhere struct{ header http.Header }

func (n *nowhere) Header() http.Header         { return n.header }
func (n *nowhere) Write(b []byte) (int, error) { return len(b), nil }
func (n *nowhere) WriteHeader(int)             {}

func plain(w http.ResponseWriter, r *http.Request) {
	var req struct {
		Key, Route, Tier string
		Cost             int64
	}
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(map[string]any{
		"allowed": true, "limit": 100, "remaining": 99, "retry_after_ms": 0,
		"reset_at": "2025-02-01T12:01:00.000Z", "rule": "global", "source": "owner",
	})
}
