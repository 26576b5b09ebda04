package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ringlimit/ringlimit"
)

// FuzzPutLimits: whatever body is put, it is either refused and changes nothing, or
// in force as the answer says, which put again says the same.
func FuzzPutLimits(f *testing.F) {
	for _, seed := range []string{
		`{"rules":[]}`, `{"rules":[{"name":"a","algorithm":"token_bucket","limit":1,"window":"1s"}]}`,
		`{"route_pattern":"GET /","algorithm":"fixed_window","limit":5,"window_s":60}`, `{"tier":"t","rules":[]}`,
		`{"rules":[{"name":"a","unlimited":true}]}`, `{"rules":[],"rules":[]}`, `{"rules":[]}{}`, `[]`, `null`, ``, `{"rules":[{"limit":1e9}]}`, "\xff",
	} {
		f.Add([]byte(seed), false)
		f.Add([]byte(seed), true)
	}
	door := live(f, alone()).adminHandler()
	f.Fuzz(func(t *testing.T, body []byte, client bool) {
		path := "/v1/limits/t"
		if client {
			path = "/v1/clients/c%2F1"
		}
		before := ask127(door, "GET", path, nil)
		put := ask127(door, "PUT", path, body)
		after := ask127(door, "GET", path, nil)
		switch put.Code {
		case 200, 201:
			if after.Body.String() != put.Body.String() || after.Header().Get("ETag") != put.Header().Get("ETag") || (put.Code == 201) != (before.Code == 404) {
				t.Errorf("PUT %q: %d %s, GET %s", body, put.Code, put.Body, after.Body)
			}
			if again := ask127(door, "PUT", path, put.Body.Bytes()); again.Code != 200 || again.Body.String() != put.Body.String() {
				t.Errorf("%s again: %d %s", put.Body, again.Code, again.Body)
			}
		case 400, 413:
			if after.Body.String() != before.Body.String() || put.Header().Get("Content-Type") != "application/problem+json" {
				t.Errorf("PUT %q: %d %s; GET %s, then %s", body, put.Code, put.Body, before.Body, after.Body)
			}
		default:
			t.Errorf("PUT %q: %d %s", body, put.Code, put.Body)
		}
	})
}

// live is an instance whose node runs until the test ends.
func live(t testing.TB, i *instance) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r, err := i.open()
	if err != nil {
		t.Fatal(err)
	}
	up, ended := make(chan struct{}), make(chan error, 1)
	for _, s := range r.servers {
		go s.serve()
	}
	go func() { ended <- r.live(ctx, func(*ringlimit.Node, *doors) { close(up) }) }()
	<-up
	t.Cleanup(func() { cancel(); <-ended })
	return r
}

func ask127(h http.Handler, method, path string, body []byte) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "http://127.0.0.1"+path, strings.NewReader(string(body)))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// oneLimit is the body of a tier whose only rule has this limit.
func oneLimit(n int) string {
	return fmt.Sprintf(`{"rules":[{"name":"all","algorithm":"fixed_window","limit":%d,"window":"60s"}]}`, n)
}

// Over the admin port itself: an old tag gives 412, a bad rule 400 with field and
// reason, and what was in force stays so.
func TestOldTagsAndBadRulesAreRefused(t *testing.T) {
	r := live(t, alone())
	call := func(method, body, ifMatch string) (int, string, string) {
		return askAdmin(t, r, method, "/v1/limits/free", body, func(req *http.Request) {
			if ifMatch != "" {
				req.Header.Set("If-Match", ifMatch)
			}
		})
	}
	status, _, old := call("PUT", oneLimit(1), "")
	if status != 201 || old == "" {
		t.Fatalf("%d, tag %q", status, old)
	}
	status, _, tag := call("PUT", oneLimit(2), old)
	if status != 200 || tag == old {
		t.Fatalf("%d, tag %q after %q", status, tag, old)
	}
	for _, method := range []string{"PUT", "DELETE"} {
		for _, wrong := range []string{old, "W/" + tag, `"1-alone"`} {
			if status, body, _ := call(method, oneLimit(3), wrong); status != 412 || !strings.Contains(body, "the precondition does not hold") {
				t.Errorf("%s with If-Match %s: %d %s", method, wrong, status, body)
			}
		}
	}
	for field, bad := range map[string]string{
		"rules[0].limit":     oneLimit(-1),
		"rules[0].algorithm": `{"rules":[{"name":"all","algorithm":"magic","limit":1,"window":"60s"}]}`,
		"limt":               `{"name":"all","algorithm":"fixed_window","limit":1,"limt":1,"window":"60s"}`,
	} {
		status, body, _ := call("PUT", bad, tag)
		if status != 400 || !strings.Contains(body, `"field":"`+field+`"`) || !strings.Contains(body, `"detail":"`+field+`: `) {
			t.Errorf("PUT %s: %d %s", bad, status, body)
		}
	}
	if status, body, now := call("GET", "", ""); status != 200 || !strings.Contains(body, `"limit":2,`) || now != tag {
		t.Errorf("in force: %d %s %s, want tag %s", status, body, now, tag)
	}
	if status, _, _ := call("PUT", oneLimit(3), `"x,y", `+tag); status != 200 {
		t.Errorf("with the right tag: %d", status)
	}
}

// DNS rebinding: a page whose name leads to the admin port reads nothing there, and a
// scraper that asks by the address does.
func TestTheAdminPortAnswersToNoOtherName(t *testing.T) {
	r := live(t, alone())
	_, port, _ := net.SplitHostPort(r.doors.admin.Addr().String())
	for host, want := range map[string]int{"": 200, "localhost:" + port: 200, "evil.example:" + port: 403} {
		for _, path := range []string{"/metrics", "/v1/limits", "/v1/members", "/debug/pprof/goroutine?debug=2"} {
			if status, body, _ := askAdmin(t, r, "GET", path, "", func(req *http.Request) { req.Host = host }); status != want {
				t.Errorf("%s by %q: %d %s", path, host, status, body)
			}
		}
	}
}

// askAdmin asks the open admin port of a node.
func askAdmin(t *testing.T, r *running, method, path, body string, change func(*http.Request)) (status int, answer, tag string) {
	t.Helper()
	req, err := http.NewRequest(method, "http://"+r.doors.admin.Addr().String()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Close = true
	req.Header.Set("Content-Type", "application/json")
	change(req)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	all, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(all), resp.Header.Get("ETag")
}
