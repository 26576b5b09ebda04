package front_test

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/dunglas/httpsfv"
	"pgregory.net/rapid"

	"github.com/ringlimit/ringlimit/front"
	"github.com/ringlimit/ringlimit/limit"
)

var noon = time.Date(2025, 2, 1, 12, 0, 0, 0, time.UTC)

func rule(t testing.TB, name string, spec limit.Spec) *limit.Rule {
	t.Helper()
	r, err := limit.NewRule(spec)
	if err != nil {
		t.Fatal(err)
	}
	r.Name, r.Tier = name, "free"
	return r
}

func perMinute(t testing.TB, name string, n int64) *limit.Rule {
	return rule(t, name, limit.Spec{Algorithm: limit.FixedWindow, Limit: n, Window: time.Minute})
}

func TestHeaders(t *testing.T) {
	hundred := perMinute(t, "free-client", 100)
	bucket := rule(t, "burst", limit.Spec{Algorithm: limit.TokenBucket, Limit: 100, Window: time.Minute, Burst: 20})
	fast := rule(t, "fast", limit.Spec{Algorithm: limit.FixedWindow, Limit: 5, Window: 500 * time.Millisecond})
	month := rule(t, "month", limit.Spec{Algorithm: limit.FixedWindow, Limit: 5, Calendar: limit.CalendarMonth})
	quoted := perMinute(t, `a "b" \c`, 3)
	tests := map[string]struct {
		verdict limit.Verdict
		now     time.Time
		want    map[string]string
	}{
		"refused": {
			limit.Verdict{Rule: hundred, Limit: 100, RetryAfter: 5200 * time.Millisecond, ResetAfter: 40 * time.Second}, noon,
			map[string]string{
				"RateLimit-Limit": "100", "RateLimit-Remaining": "0", "RateLimit-Reset": "6",
				"X-RateLimit-Limit": "100", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1738411206",
				"RateLimit-Policy": `"free-client";q=100;w=60`, "RateLimit": `"free-client";r=0;t=6`,
			},
		},
		"admitted": {
			limit.Verdict{Allowed: true, Rule: hundred, Limit: 100, Remaining: 99, ResetAfter: 40 * time.Second}, noon,
			map[string]string{
				"RateLimit-Limit": "100", "RateLimit-Remaining": "99", "RateLimit-Reset": "40",
				"X-RateLimit-Limit": "100", "X-RateLimit-Remaining": "99", "X-RateLimit-Reset": "1738411240",
				"RateLimit-Policy": `"free-client";q=100;w=60`, "RateLimit": `"free-client";r=99;t=40`,
			},
		},
		"the policy is the rule's limit, the standing that of the burst": {
			limit.Verdict{Allowed: true, Rule: bucket, Limit: 20, Remaining: 19, ResetAfter: 600 * time.Millisecond}, noon.Add(time.Millisecond),
			map[string]string{
				"RateLimit-Limit": "20", "RateLimit-Remaining": "19", "RateLimit-Reset": "1",
				"X-RateLimit-Limit": "20", "X-RateLimit-Remaining": "19", "X-RateLimit-Reset": "1738411201",
				"RateLimit-Policy": `"burst";q=100;w=60`, "RateLimit": `"burst";r=19;t=1`,
			},
		},
		"G50: a wait of 200 ms is a second, and a window under a second has no w": {
			limit.Verdict{Rule: fast, Limit: 5, RetryAfter: 200 * time.Millisecond, ResetAfter: 200 * time.Millisecond}, noon,
			map[string]string{
				"RateLimit-Limit": "5", "RateLimit-Remaining": "0", "RateLimit-Reset": "1",
				"X-RateLimit-Limit": "5", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1738411201",
				"RateLimit-Policy": `"fast";q=5`, "RateLimit": `"fast";r=0;t=1`,
			},
		},
		"a calendar month has the length of the present one": {
			limit.Verdict{Allowed: true, Rule: month, Limit: 5, Remaining: 5}, noon,
			map[string]string{
				"RateLimit-Limit": "5", "RateLimit-Remaining": "5", "RateLimit-Reset": "0",
				"X-RateLimit-Limit": "5", "X-RateLimit-Remaining": "5", "X-RateLimit-Reset": "1738411200",
				"RateLimit-Policy": `"month";q=5;w=2419200`, "RateLimit": `"month";r=5;t=0`,
			},
		},
		"a cost that never fits: no time to come back at": {
			limit.Verdict{Rule: quoted, Limit: 3, Remaining: 2, Reason: limit.CostExceedsLimit, ResetAfter: time.Minute}, noon,
			map[string]string{
				"RateLimit-Limit": "3", "RateLimit-Remaining": "2",
				"X-RateLimit-Limit": "3", "X-RateLimit-Remaining": "2",
				"RateLimit-Policy": `"a \"b\" \\c";q=3;w=60`, "RateLimit": `"a \"b\" \\c";r=2`,
			},
		},
		"the end of a window, told a few microseconds late": {
			limit.Verdict{Rule: hundred, Limit: 100, RetryAfter: 40 * time.Second, ResetAfter: 40 * time.Second}, noon.Add(37 * time.Microsecond),
			map[string]string{
				"RateLimit-Limit": "100", "RateLimit-Remaining": "0", "RateLimit-Reset": "40",
				"X-RateLimit-Limit": "100", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1738411240",
				"RateLimit-Policy": `"free-client";q=100;w=60`, "RateLimit": `"free-client";r=0;t=40`,
			},
		},
		"a refused client is never told the present": {
			limit.Verdict{Rule: hundred, Limit: 100, RetryAfter: 1}, noon,
			map[string]string{
				"RateLimit-Limit": "100", "RateLimit-Remaining": "0", "RateLimit-Reset": "1",
				"X-RateLimit-Limit": "100", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1738411201",
				"RateLimit-Policy": `"free-client";q=100;w=60`, "RateLimit": `"free-client";r=0;t=1`,
			},
		},
		"no counter behind it: nobody could be asked": {
			limit.Verdict{Rule: hundred, Limit: 100, Reason: limit.Unavailable}, noon,
			map[string]string{"RateLimit-Policy": `"free-client";q=100;w=60`},
		},
		"no counter behind it: a dimension is missing": {
			limit.Verdict{Rule: hundred, Limit: 100, Reason: limit.MissingDimension}, noon,
			map[string]string{"RateLimit-Policy": `"free-client";q=100;w=60`},
		},
		"no rule": {limit.Verdict{Allowed: true}, noon, map[string]string{}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			h := http.Header{}
			front.SetHeaders(h, &test.verdict, test.now)
			for name, want := range test.want {
				if got := h.Get(name); got != want {
					t.Errorf("%s: %s, want %s", name, got, want)
				}
			}
			if len(h) != len(test.want) {
				t.Errorf("%d fields, want %d: %v", len(h), len(test.want), slices.Sorted(maps.Keys(h)))
			}
		})
	}
}

// What we write, an RFC 9651 parser reads back, for any figures and any name.
func TestStructuredFieldsParse(t *testing.T) {
	const most = 999_999_999_999_999
	rapid.Check(t, func(t *rapid.T) {
		r, err := limit.NewRule(limit.Spec{
			Algorithm: limit.FixedWindow,
			Limit:     rapid.Int64Range(0, limit.MaxCost).Draw(t, "limit"),
			Window:    time.Duration(rapid.Int64Range(1e6, 3e18).Draw(t, "window")),
		})
		if err != nil {
			t.Skip(err)
		}
		r.Name, r.Jitter = rapid.String().Draw(t, "name"), rapid.Bool().Draw(t, "jitter")
		v := limit.Verdict{
			Allowed: rapid.Bool().Draw(t, "allowed"), Rule: r, Limit: r.Capacity(),
			Remaining:  rapid.Int64Range(0, r.Capacity()).Draw(t, "remaining"),
			RetryAfter: time.Duration(rapid.Int64Range(0, 3e18).Draw(t, "retry")),
			ResetAfter: time.Duration(rapid.Int64Range(0, 3e18).Draw(t, "reset")),
		}
		h := http.Header{}
		front.SetHeaders(h, &v, noon)

		policy, standing := parse(t, h["Ratelimit-Policy"]), parse(t, h["Ratelimit"])
		if policy.Value != standing.Value {
			t.Fatalf("names differ: %v, %v", policy.Value, standing.Value)
		}
		if q := param(t, policy, "q"); q != min(r.Limit, most) {
			t.Errorf("q is %d, limit %d", q, r.Limit)
		}
		if got := param(t, standing, "r"); got != min(v.Remaining, most) {
			t.Errorf("r is %d, remaining %d", got, v.Remaining)
		}
		if w, ok := policy.Params.Get("w"); ok && w.(int64) < 1 {
			t.Errorf("w is %v", w)
		}
		checkWait(t, h, &v, param(t, standing, "t"))
	})
}

func checkWait(t *rapid.T, h http.Header, v *limit.Verdict, seconds int64) {
	if h.Get("RateLimit-Reset") != strconv.FormatInt(seconds, 10) {
		t.Errorf("RateLimit-Reset is %s, t is %d", h.Get("RateLimit-Reset"), seconds)
	}
	unix, _ := strconv.ParseInt(h.Get("X-RateLimit-Reset"), 10, 64)
	if early := noon.Unix() + seconds - unix; early < 0 || early > 1 {
		t.Errorf("X-RateLimit-Reset is %d, want %d s from noon, or a second less for half a millisecond", unix, seconds)
	}
	random := rapid.Float64Range(0, 0.9999999).Draw(t, "random")
	retry := front.RetryAfter(v, random)
	switch base := max(seconds, 1); {
	case v.Allowed && retry != 0:
		t.Errorf("admitted, and told to wait %d s", retry)
	case !v.Allowed && (retry < base || retry > base+min(base, 10)):
		t.Errorf("Retry-After %d for a wait of %d s", retry, base)
	case !v.Allowed && !v.Rule.Jitter && retry != base:
		t.Errorf("Retry-After %d without jitter for a wait of %d s", retry, base)
	}
}

func parse(t *rapid.T, lines []string) httpsfv.Item {
	list, err := httpsfv.UnmarshalList(lines)
	if err != nil || len(list) != 1 {
		t.Fatalf("%q: %d members, %v", lines, len(list), err)
	}
	item, ok := list[0].(httpsfv.Item)
	if !ok {
		t.Fatalf("%q is no item", lines)
	}
	if _, ok := item.Value.(string); !ok {
		t.Fatalf("%q does not begin with a String", lines)
	}
	return item
}

func param(t *rapid.T, item httpsfv.Item, name string) int64 {
	value, _ := item.Params.Get(name)
	n, ok := value.(int64)
	if !ok {
		t.Fatalf("%s is %v", name, value)
	}
	return n
}

func BenchmarkHeaders(b *testing.B) {
	v := limit.Verdict{Rule: perMinute(b, "free-client", 100), Limit: 100, RetryAfter: 5 * time.Second}
	h := http.Header{}
	b.ReportAllocs()
	for b.Loop() {
		front.SetHeaders(h, &v, noon)
	}
	ours, start := b.Elapsed(), time.Now()
	for range b.N {
		withLibrary(h)
	}
	b.ReportMetric(float64(ours)/float64(time.Since(start)), "httpsfv/ratio")
}

// withLibrary writes two of the eight fields.
func withLibrary(h http.Header) {
	policy, standing := httpsfv.NewItem("free-client"), httpsfv.NewItem("free-client")
	policy.Params.Add("q", 100)
	policy.Params.Add("w", 60)
	standing.Params.Add("r", 0)
	standing.Params.Add("t", 5)
	one, _ := httpsfv.Marshal(httpsfv.List{policy})
	two, _ := httpsfv.Marshal(httpsfv.List{standing})
	h["Ratelimit-Policy"], h["Ratelimit"] = []string{one}, []string{two}
}
