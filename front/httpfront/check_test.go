package httpfront

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/ringlimit/ringlimit/front"
	"github.com/ringlimit/ringlimit/limit"
)

func TestCheck(t *testing.T) {
	c := limited(t, 3)
	h := New(config(c))
	steps := []struct{ path, body, want string }{
		{"/v1/check", `{"key":"a"}`,
			`{"allowed":true,"limit":3,"remaining":2,"retry_after_ms":0,"reset_at":"2025-02-01T12:01:00.000Z","rule":"global","source":"owner"}`},
		{"/v1/check", `{"key":"a","peek":true,"cost":3}`,
			`{"allowed":false,"limit":3,"remaining":2,"retry_after_ms":60000,"reset_at":"2025-02-01T12:01:00.000Z","rule":"global","source":"owner"}`},
		{"/v1/check", ` { "key" : "a" , "cost" : 2, "peek": false } `,
			`{"allowed":true,"limit":3,"remaining":0,"retry_after_ms":0,"reset_at":"2025-02-01T12:01:00.000Z","rule":"global","source":"owner"}`},
		{"/v1/check", `{"key":"a"}`,
			`{"allowed":false,"limit":3,"remaining":0,"retry_after_ms":60000,"reset_at":"2025-02-01T12:01:00.000Z","rule":"global","source":"owner"}`},
		{"/v1/refund", `{"key":"a","cost":2}`,
			`{"allowed":true,"limit":3,"remaining":2,"retry_after_ms":0,"reset_at":"2025-02-01T12:01:00.000Z","rule":"global","source":"owner"}`},
		{"/v1/check", `{"key":"a","cost":9007199254740991}`,
			`{"allowed":false,"limit":3,"remaining":2,"reset_at":"2025-02-01T12:01:00.000Z","rule":"global","source":"owner","reason":"cost_exceeds_limit"}`},
		{"/v1/check", `{"k\u0065y":"a","tier":"free","route":"","ip":""}`,
			`{"allowed":true,"limit":3,"remaining":2,"retry_after_ms":0,"reset_at":"2025-02-01T12:01:00.000Z","rule":"global","source":"owner"}`},
	}
	for _, step := range steps {
		w := post(h, step.path, step.body)
		if code, body := answer(w); code != 200 || body != step.want {
			t.Errorf("%s %s: %d\n%s, want\n%s", step.path, step.body, code, body, step.want)
		}
		if got := w.Header().Get("Content-Type"); got != "application/json" {
			t.Errorf("Content-Type %s", got)
		}
	}
}

func TestCheckWithoutRule(t *testing.T) {
	h := New(config(newCounters(map[string]*limit.Rule{"default": nil})))
	if code, body := answer(post(h, "/v1/check", `{"key":"a"}`)); code != 200 || body != `{"allowed":true}` {
		t.Errorf("%d %s", code, body)
	}
}

// All fields arrive, NUL and line ends are text like any other, and an address
// is cut to the network that tells clients apart (F42).
func TestCheckFields(t *testing.T) {
	c := limited(t, 3)
	h := New(config(c))
	const body = `{"key":"\u0000\r\n\u2028é","route":"POST /v1/charges","cost":2,"tier":"free","ip":"2001:DB8::ffff:1","attributes":{"plan":"x","":"y"}}`
	if code, got := answer(post(h, "/v1/check", body)); code != 200 {
		t.Fatalf("%d %s", code, got)
	}
	got := c.asked[0]
	if got.Key != "\x00\r\n\u2028é" || got.Route != "POST /v1/charges" || got.Cost != 2 || got.Tier != "free" {
		t.Errorf("%+v", got)
	}
	if got.IP.String() != "2001:db8::" || got.Attributes["plan"] != "x" || got.Attributes[""] != "y" {
		t.Errorf("%+v", got)
	}
	if code, _ := answer(post(h, "/v1/check", `{"key":"a","ip":"::ffff:192.0.2.1"}`)); code != 200 || c.asked[1].IP.String() != "192.0.2.1" {
		t.Errorf("%d %v", code, c.asked[1].IP)
	}
}

// badChecks is what no check may be: the body, the field that the problem names
// and a word of what would be right.
var badChecks = map[string]struct{ body, field, right string }{
	"A2: cost 0":          {`{"key":"a","cost":0}`, "cost", "is 0; it must be a plain integer from 1 to 9007199254740991"},
	"A2: cost -1":         {`{"key":"a","cost":-1}`, "cost", "is -1; it must be a plain integer"},
	"A2: cost NaN":        {`{"key":"a","cost":NaN}`, "cost", "it must be a plain integer"},
	"A2: cost Infinity":   {`{"key":"a","cost":Infinity}`, "cost", "it must be a plain integer"},
	"A2: cost -Infinity":  {`{"key":"a","cost":-Infinity}`, "cost", "it must be a plain integer"},
	"cost 1e30":           {`{"key":"a","cost":1e30}`, "cost", "is 1e30; it must be a plain integer"},
	"cost 1e2":            {`{"key":"a","cost":1e2}`, "cost", "it must be a plain integer"},
	"cost 1.0":            {`{"key":"a","cost":1.0}`, "cost", "it must be a plain integer"},
	"cost 1.5":            {`{"key":"a","cost":1.5}`, "cost", "it must be a plain integer"},
	"cost text":           {`{"key":"a","cost":"1"}`, "cost", `is "1"; it must be a plain integer`},
	"cost null":           {`{"key":"a","cost":null}`, "cost", "is null; it must be a plain integer"},
	"cost 2^53":           {`{"key":"a","cost":9007199254740992}`, "cost", "it must be a plain integer"},
	"cost of 400 digits":  {`{"key":"a","cost":` + strings.Repeat("9", 400) + `}`, "cost", "it must be a plain integer"},
	"cost list":           {`{"key":"a","cost":[1]}`, "cost", "is a list; it must be a plain integer"},
	"key missing":         {`{"route":"x"}`, "key", "is missing; it must name who is limited"},
	"key empty":           {`{"key":""}`, "key", "is empty"},
	"key too long":        {`{"key":"` + strings.Repeat("a", 513) + `"}`, "key", "is 513 bytes long; at most 512"},
	"key not UTF-8":       {"{\"key\":\"a\xff\"}", "key", "must be a string"},
	"key lone surrogate":  {`{"key":"\ud800"}`, "key", "must be a string"},
	"key number":          {`{"key":5}`, "key", "is 5; it must be a string"},
	"key null":            {`{"key":null}`, "key", "is null; it must be a string"},
	"route too long":      {`{"key":"a","route":"` + strings.Repeat("a", 8193) + `"}`, "route", "at most 8192"},
	"tier unknown":        {`{"key":"a","tier":"gold"}`, "tier", "is unknown; there are"},
	"tier object":         {`{"key":"a","tier":{}}`, "tier", "is an object; it must be a string"},
	"ip":                  {`{"key":"a","ip":"localhost"}`, "ip", "write it like 192.0.2.1"},
	"explain text":        {`{"key":"a","explain":"true"}`, "explain", "must be true or false"},
	"explain twice":       {`{"key":"a","explain":true,"explain":true}`, "explain", "once would be right"},
	"explain a bad check": {`{"key":"","explain":true}`, "key", "is empty"},
	"peek text":           {`{"key":"a","peek":"true"}`, "peek", "must be true or false"},
	"attributes list":     {`{"key":"a","attributes":[]}`, "attributes", "must be a JSON object"},
	"attribute number":    {`{"key":"a","attributes":{"n":1}}`, "attributes.n", "must be a string"},
	"attribute twice":     {`{"key":"a","attributes":{"n":"1","n":"2"}}`, "attributes.n", "once would be right"},
	"attribute too long":  {`{"key":"a","attributes":{"n":"` + strings.Repeat("a", 513) + `"}}`, "attributes.n", "at most 512"},
	"field unknown":       {`{"key":"a","kost":1}`, "kost", "there are key, route, cost, tier, ip, attributes, peek"},
	"field in other case": {`{"Key":"a"}`, "Key", "there are key"},
	"field twice":         {`{"key":"a","key":"b"}`, "key", "once would be right"},
	"trailing text":       {`{"key":"a"} x`, "body", "nothing may follow"},
	"trailing object":     {`{"key":"a"}{"key":"b"}`, "body", "nothing may follow"},
	"cut short":           {`{"key":"a"`, "body", "is not JSON at byte 10"},
	"cut in a value":      {`{"key":"a`, "key", "it must be a string"},
	"empty":               {``, "body", "one JSON object"},
	"list":                {`[{"key":"a"}]`, "body", "is a list; it must be a JSON object"},
	"text":                {`"key"`, "body", "must be a JSON object"},
	"not JSON":            {`key=a&cost=1`, "body", "is not JSON at byte 0"},
	"comma":               {`{"key":"a",}`, "body", "is not JSON at byte 10"},
	"deep":                {`{"key":` + strings.Repeat("[", 20000), "key[0][0]", "is not JSON at byte"},
	"long name":           {`{"` + strings.Repeat("n", 20000) + `":1}`, strings.Repeat("n", 60), "is not a field here"},
	"long attribute":      {`{"key":"a","attributes":{"` + strings.Repeat("n", 20000) + `":1}}`, "attributes." + strings.Repeat("n", 89), "attributes.nnn"},
}

func TestBadChecksCountNothing(t *testing.T) {
	c := limited(t, 3)
	h := New(config(c))
	for name, bad := range badChecks {
		t.Run(name, func(t *testing.T) {
			w := post(h, "/v1/check", bad.body)
			wantProblem(t, w, http.StatusBadRequest, bad.field, bad.right)
		})
	}
	if len(c.asked) != 0 {
		t.Errorf("%d of them were counted: %q", len(c.asked), c.keys())
	}
}

func wantProblem(t *testing.T, w *httptest.ResponseRecorder, status int, field, right string) {
	t.Helper()
	code, body := answer(w)
	if code != status || w.Header().Get("Content-Type") != "application/problem+json" {
		t.Errorf("%d %s", code, w.Header().Get("Content-Type"))
	}
	var p front.Problem
	if err := json.Unmarshal([]byte(body), &p, json.RejectUnknownMembers(true)); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	if p.Status != status || p.Type == "" || p.Title == "" || p.Field != field || !strings.Contains(p.Detail, right) {
		t.Errorf("%s, want field %s and %q", body, field, right)
	}
	if len(p.Detail) > 300 {
		t.Errorf("a detail of %d bytes", len(p.Detail))
	}
}

func TestPeekedRefundIsRefused(t *testing.T) {
	c := limited(t, 3)
	wantProblem(t, post(New(config(c)), "/v1/refund", `{"key":"a","peek":true}`), 400, "peek", "there are key, route, cost, tier, ip, attributes")
	if len(c.asked) != 0 {
		t.Error("counted")
	}
}

func TestContentType(t *testing.T) {
	c := limited(t, 1000)
	h := New(config(c))
	for contentType, want := range map[string]int{
		"application/json": 200, "application/json; charset=utf-8": 200, "Application/JSON;charset=UTF-8": 200,
		"application/vnd.acme.check+json": 200,
		"":                                400, "text/plain": 400, "text/json": 400, "application/x-www-form-urlencoded": 400,
		"application/json; charset=iso-8859-1": 400, "application/json; charset=utf-16": 400,
		"application/jsonp": 400, "image/svg+json": 400, "application/json; charset": 400, "application/json, text/plain": 400,
	} {
		r := httptest.NewRequest("POST", "/v1/check", strings.NewReader(`{"key":"a"}`))
		r.Header.Set("Content-Type", contentType)
		w := do(h, r)
		if w.Code != want {
			t.Errorf("%q: %d, want %d", contentType, w.Code, want)
		}
		if want == 400 {
			wantProblem(t, w, 400, "Content-Type", "must be application/json")
		}
	}
	r := httptest.NewRequest("POST", "/v1/check", strings.NewReader(`{"key":"a"}`))
	r.Header["Content-Type"] = []string{"application/json", "application/json"}
	wantProblem(t, do(h, r), 400, "Content-Type", "is there more than once; it must be application/json")
}

// A body that says how much too large it will be is not waited for.
func TestAnnouncedLargeBodyIsRefusedAtOnce(t *testing.T) {
	server := httptest.NewServer(New(config(limited(t, 3))))
	defer server.Close()
	for path, length := range map[string]int64{"/v1/check": maxCheckBytes + 1, "/v1/refund": 1 << 40, "/v1/checks": maxChecksBytes + 1} {
		conn, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		conn.SetReadDeadline(time.Now().Add(20 * time.Second)) // for a server that waits
		fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", path, length)
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusRequestEntityTooLarge || !resp.Close {
			t.Errorf("%s: %d, closed: %v", path, resp.StatusCode, resp.Close)
		}
	}
}

// A body of 10 MB is refused over a real connection, with and without a length
// that says so beforehand.
func TestLargeBody(t *testing.T) {
	c := limited(t, 3)
	server := httptest.NewServer(New(config(c)))
	t.Cleanup(func() {
		server.Close()
		if len(c.asked) != 0 {
			t.Error("counted")
		}
	})
	body := `{"key":"` + strings.Repeat("a", 10<<20) + `"}`
	for path, bound := range map[string]string{"/v1/check": "65536", "/v1/refund": "65536", "/v1/checks": "4194304"} {
		for name, reader := range map[string]io.Reader{"known": strings.NewReader(body), "chunked": io.MultiReader(strings.NewReader(body))} {
			t.Run(path+" "+name, func(t *testing.T) {
				t.Parallel() // the server keeps a refused connection open for a while
				resp, err := server.Client().Post(server.URL+path, "application/json", reader)
				if err != nil {
					t.Fatal(err)
				}
				defer resp.Body.Close()
				got, _ := io.ReadAll(resp.Body)
				if resp.StatusCode != 413 || !strings.Contains(string(got), bound) || resp.Header.Get("Content-Type") != "application/problem+json" {
					t.Errorf("%d %s", resp.StatusCode, got)
				}
			})
		}
	}
}

// The largest check that is allowed fits.
func TestLargestCheckFits(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"key":"` + strings.Repeat("a", limit.MaxKeyBytes) + `","route":"` + strings.Repeat("r", limit.MaxRouteBytes) + `","attributes":{`)
	for i := range limit.MaxAttributes {
		if i > 0 {
			b.WriteString(",")
		}
		b.WriteString(`"` + strings.Repeat(string(rune('A'+i)), 100) + `":"` + strings.Repeat("v", limit.MaxKeyBytes) + `"`)
	}
	b.WriteString(`}}`)
	if code, body := answer(post(New(config(limited(t, 3))), "/v1/check", b.String())); code != 200 {
		t.Errorf("%d %s", code, body)
	}
}

// fails is a checker that has an error for everybody.
type fails struct{ err error }

func (f fails) Check(context.Context, limit.Request) (limit.Verdict, error) {
	return limit.Verdict{}, f.err
}
func (f fails) Refund(context.Context, limit.Request) (limit.Verdict, error) {
	return limit.Verdict{}, f.err
}

func TestFailingChecker(t *testing.T) {
	for err, want := range map[error]int{errors.New("secret"): 500, context.Canceled: 503, context.DeadlineExceeded: 503} {
		cfg := config(limited(t, 3))
		cfg.Checker = fails{err}
		h := New(cfg)
		for _, w := range []*httptest.ResponseRecorder{
			post(h, "/v1/check", `{"key":"a"}`),
			do(h, from("192.0.2.1:1", "GET", "/v1/authorize")),
			do(h, from("192.0.2.1:1", "GET", "/v1/authorize?deny_status=403")),
		} {
			if code, body := answer(w); code != want || strings.Contains(body, "secret") {
				t.Errorf("%v: %d %s", err, code, body)
			}
		}
		if code, body := answer(post(h, "/v1/refund", `{"key":"a"}`)); code != 503 || strings.Contains(body, "secret") {
			t.Errorf("%v: refund: %d %s", err, code, body)
		}
		cfg.Checker = fails{&limit.RefundError{Of: 1, Err: err}}
		if code, body := answer(post(New(cfg), "/v1/refund", `{"key":"a"}`)); code != 424 || strings.Contains(body, "secret") {
			t.Errorf("%v: a lost refund: %d %s", err, code, body)
		}
	}
}

func TestPaths(t *testing.T) {
	h := New(config(limited(t, 3)))
	for _, test := range []struct {
		method, path string
		status       int
		allow        string
	}{
		{"GET", "/", 404, ""}, {"GET", "/v1", 404, ""}, {"POST", "/v1/check/", 404, ""}, {"POST", "/v1//check", 404, ""},
		{"POST", "/v1/../v1/check", 404, ""}, {"GET", "/v1/authorized", 404, ""}, {"GET", "/metrics", 404, ""}, {"GET", "/v1/members", 404, ""},
		{"GET", "/v1/limits/gold", 404, ""}, {"GET", "/v1/limits/", 404, ""}, {"GET", "/v1/limitsx", 404, ""},
		{"GET", "/v1/check", 405, "POST"}, {"PUT", "/v1/checks", 405, "POST"}, {"DELETE", "/v1/refund", 405, "POST"},
		{"PUT", "/v1/limits/free", 405, "GET, HEAD"}, {"DELETE", "/v1/limits/free", 405, "GET, HEAD"}, {"POST", "/livez", 405, "GET, HEAD"},
		{"OPTIONS", "/readyz", 405, "GET, HEAD"},
	} {
		w := do(h, httptest.NewRequest(test.method, test.path, nil))
		if w.Code != test.status || w.Header().Get("Allow") != test.allow || w.Header().Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s %s: %d, Allow %q, %s", test.method, test.path, w.Code, w.Header().Get("Allow"), w.Body)
		}
	}
}

func TestStatus(t *testing.T) {
	cfg := config(limited(t, 3))
	var reason error
	cfg.Ready = func() error { return reason }
	h := New(cfg)
	for _, test := range []struct {
		path   string
		reason error
		status int
		body   string
	}{
		{"/livez", errors.New("joining"), 200, `{"status":"ok"}`},
		{"/readyz", nil, 200, `{"status":"ok"}`},
		{"/readyz", errors.New(`waits for "n2"`), 503, `{"status":"unavailable","reason":"waits for \"n2\""}`},
		{"/v1/limits", nil, 200, `{"tiers":{}}`},
		{"/v1/limits/free", nil, 200, `{"rules":["free"]}`},
	} {
		reason = test.reason
		w := do(h, httptest.NewRequest("GET", test.path, nil))
		if code, body := answer(w); code != test.status || body != test.body || w.Header().Get("Content-Type") != "application/json" {
			t.Errorf("%s: %d %s", test.path, code, body)
		}
	}
}
