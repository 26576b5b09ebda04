package httpfront

import (
	"bufio"
	"context"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ringlimit/ringlimit/limit"
)

// golden is a response as curl -i shows it, headers sorted.
func golden(w *httptest.ResponseRecorder) string {
	var b strings.Builder
	b.WriteString(strconv.Itoa(w.Code) + "\n")
	for _, name := range slices.Sorted(maps.Keys(w.Header())) {
		for _, value := range w.Header()[name] {
			b.WriteString(name + ": " + value + "\n")
		}
	}
	return b.String() + w.Body.String()
}

const admitted = `200
Ratelimit: "global";r=1;t=60
Ratelimit-Limit: 2
Ratelimit-Policy: "global";q=2;w=60
Ratelimit-Remaining: 1
Ratelimit-Reset: 60
X-Ratelimit-Limit: 2
X-Ratelimit-Remaining: 1
X-Ratelimit-Reset: 1738411260
`

const refused = `429
Cache-Control: no-store
Content-Type: application/problem+json
Ratelimit: "global";r=0;t=60
Ratelimit-Limit: 2
Ratelimit-Policy: "global";q=2;w=60
Ratelimit-Remaining: 0
Ratelimit-Reset: 60
Retry-After: 60
X-Ratelimit-Limit: 2
X-Ratelimit-Remaining: 0
X-Ratelimit-Reset: 1738411260
{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Too Many Requests","status":429,"violated-policies":["global"],"limit":2,"window":"60s","retry_after":60}`

// Both doors say the same, with every method.
func TestGoldenResponses(t *testing.T) {
	served := 0
	doors := map[string]func(Config) http.Handler{
		"/v1/authorize": New,
		"/anything": func(cfg Config) http.Handler {
			return Middleware(cfg)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { served++ }))
		},
	}
	for path, door := range doors {
		for _, method := range []string{"GET", "POST", "HEAD", "OPTIONS", "PROPFIND"} {
			h := door(config(limited(t, 2)))
			r := from("192.0.2.1:1", method, path)
			if got := golden(do(h, r)); got != admitted {
				t.Errorf("%s %s:\n%s, want\n%s", method, path, got, admitted)
			}
			do(h, r)
			if got := golden(do(h, r)); got != refused {
				t.Errorf("%s %s:\n%s, want\n%s", method, path, got, refused)
			}
		}
	}
	if served != 10 {
		t.Errorf("%d requests were served", served)
	}
}

// G53: limit 3, five requests.
func TestRemainingCountsDown(t *testing.T) {
	h := New(config(limited(t, 3)))
	for i, want := range []string{"2", "1", "0", "0", "0"} {
		w := do(h, from("192.0.2.1:1", "GET", "/v1/authorize"))
		if got := w.Header().Get("RateLimit-Remaining"); got != want || (w.Code == 200) != (i < 3) {
			t.Errorf("%d: %d, %s left; want %s", i, w.Code, got, want)
		}
		if w.Header().Get("RateLimit-Reset") != "60" || w.Header().Get("X-RateLimit-Reset") != "1738411260" {
			t.Errorf("%d: %s, %s", i, w.Header().Get("RateLimit-Reset"), w.Header().Get("X-RateLimit-Reset"))
		}
	}
}

// H57: nginx understands 401 and 403 alone.
func TestDenyStatus(t *testing.T) {
	for query, want := range map[string]int{
		"": 429, "?deny_status=403": 403, "?deny_status=429": 429, "?deny_status=": 429, "?page=2&x=%zz": 429,
		"?deny_status=200": 400, "?deny_status=500": 400, "?deny_status=401": 400, "?deny_status=0403": 400,
		"/?deny_status=403": 429, "/v1/charges?deny_status=200": 429,
	} {
		h := New(config(limited(t, 0)))
		w := do(h, from("192.0.2.1:1", "GET", "/v1/authorize"+query))
		if w.Code != want || !strings.Contains(w.Body.String(), `"status":`+strconv.Itoa(want)) {
			t.Errorf("%s: %d %s", query, w.Code, w.Body)
		}
		if want != 400 && w.Header().Get("RateLimit") == "" {
			t.Errorf("%s: no RateLimit", query)
		}
	}
}

// A failing owner and a missing dimension are denials too.
func TestDenyStatusOfOtherDenials(t *testing.T) {
	for reason, want := range map[limit.Reason]int{limit.Unavailable: 503, limit.MissingDimension: 429} {
		cfg := config(limited(t, 3))
		cfg.Checker = says{limit.Verdict{Rule: perMinute(t, 3), Reason: reason}}
		for query, want := range map[string]int{"": want, "?deny_status=403": 403} {
			if w := do(New(cfg), from("192.0.2.1:1", "GET", "/v1/authorize"+query)); w.Code != want {
				t.Errorf("%v%s: %d %s", reason, query, w.Code, w.Body)
			}
		}
	}
}

type says struct{ verdict limit.Verdict }

func (s says) Check(context.Context, limit.Request) (limit.Verdict, error)  { return s.verdict, nil }
func (s says) Refund(context.Context, limit.Request) (limit.Verdict, error) { return s.verdict, nil }

// F44: nobody shares a counter because a header is absent.
func TestMissingKey(t *testing.T) {
	for missing, want := range map[string]int{"deny": 429, "allow": 200} {
		c := limited(t, 3)
		cfg := config(c)
		cfg.Identity = identity(t, IdentityConfig{Key: []string{"header:X-API-Key"}, Missing: missing})
		w := do(New(cfg), from("192.0.2.1:1", "GET", "/v1/authorize"))
		if w.Code != want || w.Header().Get("RateLimit") != "" || w.Header().Get("Retry-After") != "" {
			t.Errorf("%s: %d %v", missing, w.Code, w.Header())
		}
		if want == 429 && !strings.Contains(w.Body.String(), "it needs the header X-Api-Key") {
			t.Errorf("%s", w.Body)
		}
		if w := do(New(cfg), from("192.0.2.1:1", "GET", "/v1/authorize?deny_status=403")); missing == "deny" && w.Code != 403 {
			t.Errorf("%d", w.Code)
		}
		if len(c.asked) != 0 {
			t.Errorf("asked for %q", c.keys())
		}
	}
}

func TestWithoutRule(t *testing.T) {
	h := New(config(newCounters(map[string]*limit.Rule{"default": nil})))
	if got := golden(do(h, from("192.0.2.1:1", "GET", "/v1/authorize"))); got != "200\n" {
		t.Errorf("%s", got)
	}
}

func TestUnknownTierIsTheDefault(t *testing.T) {
	c := limited(t, 3)
	cfg := config(c)
	cfg.Identity = identity(t, IdentityConfig{Tier: "X-Tier"})
	h := New(cfg)
	for tier, want := range map[string]string{"gold": "", "free": "free"} {
		c.asked = nil
		w := do(h, from("192.0.2.1:1", "GET", "/v1/authorize", "X-Tier: "+tier))
		if w.Code != 200 || len(c.asked) != 1 || c.asked[0].Tier != want {
			t.Errorf("%s: %d, %+v", tier, w.Code, c.asked)
		}
	}
}

// The route is what the proxy says; Envoy appends it to the path.
func TestAuthorizeRoute(t *testing.T) {
	for target, want := range map[string]string{
		"/v1/authorize":                    "POST /v1/authorize",
		"/v1/authorize/v1/a%2Fb?x=1":       "POST /v1/a%2Fb",
		"/v1/authorize/":                   "POST /",
		"/v1/authorize//v1/../charges?x=1": "POST //v1/../charges",
	} {
		c := limited(t, 3)
		do(New(config(c)), from("192.0.2.1:1", "POST", target))
		if len(c.asked) != 1 || c.asked[0].Route != want {
			t.Errorf("%s: %+v", target, c.asked)
		}
	}
}

func queue(t *testing.T) *counters {
	rule := newRule(t, "queue", limit.Spec{Algorithm: limit.LeakyBucket, Limit: 1, Window: time.Second, Burst: 2})
	c := newCounters(map[string]*limit.Rule{"default": rule})
	c.now = time.Now
	return c
}

// The doors wait for a queued request's turn; a check tells its delay at once.
func TestDelayIsWaitedOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := New(config(queue(t)))
		start := time.Now()
		for i := range 3 {
			w := do(h, from("192.0.2.1:1", "GET", "/v1/authorize"))
			if took := time.Since(start); w.Code != 200 || took != time.Duration(i)*time.Second {
				t.Errorf("%d: %d after %v", i, w.Code, took)
			}
		}
		_, body := answer(post(h, "/v1/check", `{"key":"ip:192.0.2.1"}`))
		if !strings.Contains(body, `"delay_ms":1000`) || time.Since(start) != 2*time.Second {
			t.Errorf("%s after %v", body, time.Since(start))
		}
	})
}

// The headers are those of the moment at which the client reads them: whose turn
// it is has only its own second left.
func TestHeadersAfterTheDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := New(config(queue(t)))
		start := time.Now().Unix()
		for i := range int64(3) {
			w := do(h, from("192.0.2.1:1", "GET", "/v1/authorize"))
			reset := strconv.FormatInt(start+i+1, 10)
			if got := w.Header(); got.Get("RateLimit-Reset") != "1" || got.Get("X-RateLimit-Reset") != reset || !strings.HasSuffix(got.Get("RateLimit"), ";t=1") {
				t.Errorf("%d: %v, want 1 and %s", i, got, reset)
			}
		}
	})
}

// A wait that is longer than the server lets an answer take is answered all the
// same, and the handler behind the middleware has its whole time afterwards.
func TestDelayOutlastsTheWriteTimeout(t *testing.T) {
	const timeout = 500 * time.Millisecond
	verdict := limit.Verdict{Allowed: true, Rule: perMinute(t, 3), Delay: timeout + timeout/2}
	cfg := config(limited(t, 3))
	cfg.Checker = says{verdict}
	next := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "served") })
	for path, h := range map[string]http.Handler{"/v1/authorize": New(cfg), "/": Middleware(cfg)(next)} {
		server := httptest.NewUnstartedServer(h)
		server.Config.WriteTimeout = timeout
		server.Start()
		defer server.Close()
		resp, err := server.Client().Get(server.URL + path)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK || resp.Header.Get("RateLimit-Limit") == "" {
			t.Errorf("%s: %d %v", path, resp.StatusCode, resp.Header)
		}
	}
}

// A client that leaves while it waits is not served.
func TestDelayEndsWithTheRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		served := 0
		h := Middleware(config(queue(t)))(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { served++ }))
		do(h, from("192.0.2.1:1", "GET", "/"))
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		start := time.Now()
		w := do(h, from("192.0.2.1:1", "GET", "/").WithContext(ctx))
		if w.Code != http.StatusServiceUnavailable || served != 1 || time.Since(start) != 300*time.Millisecond {
			t.Errorf("%d, %d served, after %v", w.Code, served, time.Since(start))
		}
	})
}

// The handler behind the middleware can flush and hijack.
func TestMiddlewareLeavesTheWriterAlone(t *testing.T) {
	h := Middleware(config(limited(t, 3)))(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		conn, buf, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		buf.WriteString("hijacked")
		buf.Flush()
	}))
	server := httptest.NewServer(h)
	defer server.Close()
	resp, err := server.Client().Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.Header.Get("RateLimit-Remaining") != "2" {
		t.Errorf("%v", resp.Header)
	}
	if _, err := bufio.NewReader(resp.Body).ReadString(0); err == nil || err == io.EOF {
		t.Errorf("the body ended well: %v", err) // what follows is no chunk
	}
}

// A client that faces the middleware cannot choose its route, tier or address.
func TestMiddlewareIgnoresForgedHeaders(t *testing.T) {
	c := limited(t, 3)
	cfg := config(c)
	cfg.Identity = identity(t, IdentityConfig{Tier: "X-Tier", TrustedProxies: []string{"10.0.0.0/8"}})
	h := Middleware(cfg)(http.NotFoundHandler())
	do(h, from("203.0.113.9:1", "POST", "/dear", "X-Forwarded-Method: GET", "X-Forwarded-Uri: /cheap", "X-Tier: free", "X-Forwarded-For: 1.1.1.1"))
	got := c.asked[0]
	if got.Key != "ip:203.0.113.9" || got.Route != "POST /dear" || got.Tier != "" {
		t.Errorf("%+v", got)
	}
}
