package front_test

import (
	"testing"
	"time"

	"github.com/ringlimit/ringlimit/front"
	"github.com/ringlimit/ringlimit/limit"
)

func TestVerdictJSON(t *testing.T) {
	r := perMinute(t, `free "x"`, 100)
	at := noon.Add(250 * time.Microsecond).In(time.FixedZone("CET", 3600))
	tests := map[string]struct {
		verdict limit.Verdict
		want    string
	}{
		"admitted": {
			limit.Verdict{Allowed: true, Source: limit.SourceForwarded, Rule: r, Limit: 100, Remaining: 99, ResetAfter: time.Minute},
			`{"allowed":true,"limit":100,"remaining":99,"retry_after_ms":0,"reset_at":"2025-02-01T12:01:00.000Z","rule":"free \"x\"","source":"owner"}`},
		"refused, rounded up": {
			limit.Verdict{Source: limit.SourceDenyCache, Rule: r, Limit: 100, RetryAfter: 5667*time.Millisecond + 1},
			`{"allowed":false,"limit":100,"remaining":0,"retry_after_ms":5668,"reset_at":"2025-02-01T12:00:00.000Z","rule":"free \"x\"","source":"deny_cache"}`},
		"B15: never told to come back at once": {
			limit.Verdict{Source: limit.SourceOwner, Rule: r, Limit: 100, RetryAfter: 1},
			`{"allowed":false,"limit":100,"remaining":0,"retry_after_ms":1,"reset_at":"2025-02-01T12:00:00.000Z","rule":"free \"x\"","source":"owner"}`},
		"delayed": {
			limit.Verdict{Allowed: true, Source: limit.SourceFallback, Rule: r, Limit: 3, Delay: 1500 * time.Microsecond, ResetAfter: 1500 * time.Microsecond},
			`{"allowed":true,"limit":3,"remaining":0,"retry_after_ms":0,"reset_at":"2025-02-01T12:00:00.002Z","rule":"free \"x\"","source":"fallback","delay_ms":2}`},
		"never": {
			limit.Verdict{Source: limit.SourceOwner, Rule: r, Limit: 3, Remaining: 3, Reason: limit.CostExceedsLimit},
			`{"allowed":false,"limit":3,"remaining":3,"reset_at":"2025-02-01T12:00:00.000Z","rule":"free \"x\"","source":"owner","reason":"cost_exceeds_limit"}`},
		"nobody could be asked": {
			limit.Verdict{Source: limit.SourceFallback, Rule: r, Limit: 3, Reason: limit.Unavailable},
			`{"allowed":false,"limit":3,"remaining":0,"reset_at":"2025-02-01T12:00:00.000Z","rule":"free \"x\"","source":"fallback","reason":"unavailable"}`},
		"a dimension is missing": {
			limit.Verdict{Rule: r, Limit: 3, Reason: limit.MissingDimension},
			`{"allowed":false,"rule":"free \"x\"","reason":"missing_dimension"}`},
		"no rule": {limit.Verdict{Allowed: true}, `{"allowed":true}`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := string(front.AppendVerdict(nil, &test.verdict, at)); got != test.want {
				t.Errorf("\n%s, want\n%s", got, test.want)
			}
		})
	}
}

// Whoever asks for the end of a window, and however late after the decision the
// answer is written, is told that very instant.
func TestResetIsTheNearestMillisecond(t *testing.T) {
	v := limit.Verdict{Allowed: true, Rule: perMinute(t, "r", 1), ResetAfter: 1500 * time.Millisecond}
	const want = `{"allowed":true,"limit":0,"remaining":0,"retry_after_ms":0,"reset_at":"2025-02-01T12:00:01.500Z","rule":"r"}`
	for _, late := range []time.Duration{0, 1, 40 * time.Microsecond, 499 * time.Microsecond, -40 * time.Microsecond} {
		if got := string(front.AppendVerdict(nil, &v, noon.Add(late))); got != want {
			t.Errorf("%v late: %s, want %s", late, got, want)
		}
	}
}

func TestParseIP(t *testing.T) {
	for text, want := range map[string]string{
		"192.0.2.1": "192.0.2.1", "::ffff:192.0.2.1": "192.0.2.1", "2001:DB8:0::1": "2001:db8::1", "fe80::1%eth0": "fe80::1", "": "invalid IP",
	} {
		if addr, err := front.ParseIP("ip", text); err != nil || addr.String() != want {
			t.Errorf("%q: %v, %v; want %s", text, addr, err, want)
		}
	}
	for _, text := range []string{"192.0.2", "192.0.2.1:80", "localhost", " ::1"} {
		if addr, err := front.ParseIP("ip", text); err == nil {
			t.Errorf("%q is %v", text, addr)
		}
	}
}

func BenchmarkAppendVerdict(b *testing.B) {
	v := limit.Verdict{Allowed: true, Source: limit.SourceOwner, Rule: perMinute(b, "free-client", 100), Limit: 100, Remaining: 9}
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		buf = front.AppendVerdict(buf[:0], &v, noon)
	}
}
