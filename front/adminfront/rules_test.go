package adminfront

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/ringlimit/ringlimit/front"
)

// store keeps bodies as they come. What is done to it is in done.
type store struct {
	now   map[Entity]Document
	done  []Write
	body  string
	wrong error
}

func (s *store) All() (Document, error) { return Document{[]byte(`{"tiers":{}}`), `"3-ab"`}, s.wrong }

func (s *store) Get(e Entity) (Document, error) {
	d, ok := s.now[e]
	if !ok {
		return d, front.NewProblem(http.StatusNotFound, string(e.Kind), "there is no such "+string(e.Kind))
	}
	return d, nil
}

func (s *store) Put(w Write, body []byte) (Document, bool, error) {
	s.done, s.body = append(s.done, w), string(body)
	if s.wrong != nil {
		return Document{}, false, s.wrong
	}
	_, was := s.now[w.Entity]
	if s.now == nil {
		s.now = map[Entity]Document{}
	}
	s.now[w.Entity] = Document{body, fmt.Sprintf(`"%d-n1"`, len(s.done))}
	return s.now[w.Entity], !was, nil
}

func (s *store) Delete(w Write) error {
	s.done = append(s.done, w)
	delete(s.now, w.Entity)
	return s.wrong
}

// call asks a door as somebody on the same machine does. headers are "Name: value".
func call(h http.Handler, method, target, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "http://127.0.0.1:7704"+target, strings.NewReader(body))
	r.RemoteAddr = "127.0.0.1:5555"
	if method == "PUT" {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, line := range headers {
		name, value, _ := strings.Cut(line, ": ")
		if name == "Host" {
			r.Host = value
			continue
		}
		if r.Header.Del(name); value != "" || strings.HasPrefix(name, "If-") {
			r.Header.Add(name, value)
		}
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func rulesDoor(s *store) http.Handler {
	return New(Config{Cluster: &cluster{}, Rules: s, Metrics: metrics})
}

func TestPutGetDelete(t *testing.T) {
	s := &store{}
	h := rulesDoor(s)
	for _, path := range []string{"/v1/limits/free", "/v1/clients/cust_42"} {
		s.done = nil
		w := call(h, "PUT", path, `{"rules":[]}`)
		if w.Code != 201 || w.Body.String() != `{"rules":[]}` || w.Header().Get("ETag") != `"1-n1"` || w.Header().Get("Content-Location") != path {
			t.Errorf("%s: %d %s %v", path, w.Code, w.Body, w.Header())
		}
		if w = call(h, "PUT", path, `{"rules":[1]}`, `If-Match: "1-n1"`); w.Code != 200 || w.Header().Get("ETag") != `"2-n1"` {
			t.Errorf("%s again: %d %v", path, w.Code, w.Header())
		}
		if got := s.done[1]; got.IfMatch != `"1-n1"` || got.IfNoneMatch != "" || got.Author != (Author{Address: "127.0.0.1:5555"}) {
			t.Errorf("%+v", got)
		}
		w = call(h, "GET", path, "")
		if w.Code != 200 || w.Body.String() != `{"rules":[1]}` || w.Header().Get("ETag") != `"2-n1"` || w.Header().Get("Content-Type") != "application/json" {
			t.Errorf("%s: %d %s %v", path, w.Code, w.Body, w.Header())
		}
		if w = call(h, "HEAD", path, ""); w.Code != 200 || w.Body.Len() != 0 || w.Header().Get("Content-Length") != "13" {
			t.Errorf("HEAD %s: %d %q %v", path, w.Code, w.Body, w.Header())
		}
		if w = call(h, "DELETE", path, "", `If-Match: "2-n1"`); w.Code != 204 || w.Body.Len() != 0 || s.done[2].IfMatch != `"2-n1"` {
			t.Errorf("DELETE %s: %d %s", path, w.Code, w.Body)
		}
		if w = call(h, "GET", path, ""); w.Code != 404 || !strings.Contains(w.Body.String(), "there is no such") {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}

// What has not changed is not sent again.
func TestConditionalGet(t *testing.T) {
	s := &store{now: map[Entity]Document{{Tier, "free"}: {[]byte(`{}`), `"2-n1"`}}}
	for target, tag := range map[string]string{"/v1/limits": `"3-ab"`, "/v1/limits/free": `"2-n1"`} {
		for header, want := range map[string]int{
			"If-None-Match: " + tag: 304, "If-None-Match: W/" + tag: 304, `If-None-Match: "x", ` + tag: 304, "If-None-Match: *": 304,
			`If-None-Match: "x"`: 200, "If-Match: " + tag: 200, `If-Match: "x"`: 412,
		} {
			w := call(rulesDoor(s), "GET", target, "", header)
			if w.Code != want || w.Code != 200 && w.Body.Len() != 0 || w.Code != 412 && w.Header().Get("ETag") != tag {
				t.Errorf("%s, %s: %d %s %v", target, header, w.Code, w.Body, w.Header())
			}
		}
	}
}

// Every tier and client can be named, whatever it is made of.
func TestEntitiesOfAllKinds(t *testing.T) {
	for _, name := range []string{"a/b", "a//b", "..", ".", "../limits", "a/", "/", "a%2Fb", "a b?c#d", "é\x00\r\n", "%", ""} {
		for kind, path := range map[Kind]string{Tier: "/v1/limits/", Client: "/v1/clients/"} {
			s := &store{}
			w := call(rulesDoor(s), "PUT", path+url.PathEscape(name), "{}")
			if w.Code != 201 || len(s.done) != 1 || s.done[0].Entity != (Entity{kind, name}) {
				t.Errorf("%s%q: %d, %+v", path, name, w.Code, s.done)
			}
			if got := w.Header().Get("Content-Location"); got != path+url.PathEscape(name) && !strings.ContainsAny(name, "%") {
				t.Errorf("%s%q: at %s", path, name, got)
			}
		}
	}
}

// Nothing of what is refused at the door reaches the rules.
func TestRefusedWrites(t *testing.T) {
	for _, test := range []struct {
		name, method, path, body string
		headers                  []string
		status                   int
		want                     string
	}{
		{"too large", "PUT", "/v1/limits/a", strings.Repeat(" ", maxBody+1), nil, 413, `"field":"body"`},
		{"no type", "PUT", "/v1/limits/a", "{}", []string{"Content-Type: "}, 415, `"field":"Content-Type"`},
		{"a form's type", "PUT", "/v1/limits/a", "{}", []string{"Content-Type: text/plain"}, 415, `"field":"Content-Type"`},
		{"another charset", "PUT", "/v1/limits/a", "{}", []string{"Content-Type: application/json; charset=latin1"}, 415, `"field":"Content-Type"`},
		{"packed", "PUT", "/v1/limits/a", "{}", []string{"Content-Encoding: gzip"}, 415, `"field":"Content-Encoding"`},
		{"a part", "PUT", "/v1/limits/a", "{}", []string{"Content-Range: bytes 0-1/2"}, 400, `"field":"Content-Range"`},
		{"an unset variable", "PUT", "/v1/limits/a", "{}", []string{"If-Match: "}, 400, `"field":"If-Match"`},
		{"an unset variable", "DELETE", "/v1/limits/a", "", []string{"If-None-Match: ,"}, 400, `"field":"If-None-Match"`},
		{"a tag without its quotes", "PUT", "/v1/limits/a", "{}", []string{"If-None-Match: 1-n1"}, 400, `quotes included`},
		{"a tag that does not end", "PUT", "/v1/limits/a", "{}", []string{`If-Match: "1-n1", "2`}, 400, `"field":"If-Match"`},
		{"tags without a comma", "PUT", "/v1/limits/a", "{}", []string{`If-Match: "1-n1" "2-n1"`}, 400, `"field":"If-Match"`},
		{"a star among tags", "PUT", "/v1/limits/a", "{}", []string{`If-None-Match: "1-n1", *`}, 400, `"field":"If-None-Match"`},
		{"a space in a tag", "DELETE", "/v1/limits/a", "", []string{`If-Match: "1 n1"`}, 400, `"field":"If-Match"`},
		{"another site", "PUT", "/v1/limits/a", "{}", []string{"Sec-Fetch-Site: cross-site"}, 403, `"field":"Origin"`},
		{"another port", "DELETE", "/v1/clients/a", "", []string{"Sec-Fetch-Site: same-site"}, 403, `"field":"Origin"`},
		{"an old browser", "PUT", "/v1/clients/a", "{}", []string{"Origin: http://evil.example"}, 403, `"field":"Origin"`},
		{"no origin", "PUT", "/v1/clients/a", "{}", []string{"Origin: null"}, 403, `"field":"Origin"`},
		{"a rebound name", "PUT", "/v1/limits/a", "{}", []string{"Host: evil.example:7704", "Origin: http://evil.example:7704", "Sec-Fetch-Site: same-origin"}, 403, `"field":"Host"`},
		{"a rebound name", "DELETE", "/v1/limits/a", "", []string{"Host: evil.example"}, 403, `"field":"Host"`},
		{"a method", "POST", "/v1/limits/a", "{}", nil, 405, "GET, HEAD, PUT, DELETE"},
		{"preflight", "OPTIONS", "/v1/clients/a", "", []string{"Origin: http://evil.example", "Access-Control-Request-Method: PUT"}, 405, ""},
		{"all at once", "PUT", "/v1/limits", "{}", nil, 405, "GET, HEAD"},
	} {
		s := &store{}
		w := call(rulesDoor(s), test.method, test.path, test.body, test.headers...)
		if w.Code != test.status || !strings.Contains(w.Body.String(), test.want) || w.Header().Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s: %d %s", test.name, w.Code, w.Body)
		}
		if len(s.done) != 0 {
			t.Errorf("%s: done: %+v", test.name, s.done)
		}
		for name := range w.Header() {
			if strings.HasPrefix(name, "Access-Control-") {
				t.Errorf("%s: %s", test.name, name)
			}
		}
	}
}

// A body that does not say how long it is is bounded too.
func TestEndlessBody(t *testing.T) {
	s := &store{}
	server := httptest.NewServer(rulesDoor(s))
	defer server.Close()
	req, err := http.NewRequest("PUT", server.URL+"/v1/limits/a", io.LimitReader(spaces{}, 2*maxBody))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := server.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != 413 || len(s.done) != 0 {
		t.Errorf("%s, %+v", resp.Status, s.done)
	}
}

type spaces struct{}

func (spaces) Read(p []byte) (int, error) { return copy(p, strings.Repeat(" ", len(p))), nil }

func TestRefusalOfTheRules(t *testing.T) {
	s := &store{wrong: &Refusal{
		Problem: front.NewProblem(400, "rules[0].limit", "rules[0].limit: is -1"),
		Errors:  []FieldError{{"rules[0].limit", "is -1", 1, 20}, {"", "is wrong", 2, 1}},
	}}
	w := call(rulesDoor(s), "PUT", "/v1/limits/a", "{}")
	const want = `{"type":"about:blank","title":"Bad Request","status":400,"detail":"rules[0].limit: is -1","field":"rules[0].limit",` +
		`"errors":[{"field":"rules[0].limit","detail":"is -1","line":1,"column":20},{"field":"","detail":"is wrong","line":2,"column":1}]}`
	if w.Code != 400 || w.Body.String() != want {
		t.Errorf("%d %s, want %s", w.Code, w.Body, want)
	}
	s.wrong = &Refusal{Problem: front.NewProblem(409, "tier", "clients are in it"), Clients: []string{"a"}}
	if w = call(rulesDoor(s), "DELETE", "/v1/limits/a", ""); w.Code != 409 || !strings.HasSuffix(w.Body.String(), `"clients":["a"]}`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	s.wrong = errors.New("secret")
	for _, ask := range [][2]string{{"PUT", "/v1/limits/a"}, {"DELETE", "/v1/clients/a"}, {"GET", "/v1/limits"}} {
		if w = call(rulesDoor(s), ask[0], ask[1], "{}"); w.Code != 500 || strings.Contains(w.Body.String(), "secret") {
			t.Errorf("%v: %d %s", ask, w.Code, w.Body)
		}
	}
}

const token = "0123456789abcdef"

func TestToken(t *testing.T) {
	for _, test := range []struct {
		headers []string
		may     bool
	}{
		{[]string{"Authorization: Bearer " + token}, true},
		{[]string{"Authorization: bearer  " + token}, true},
		{[]string{"Authorization: Bearer " + token, "Host: admin.example"}, true},
		{nil, false},
		{[]string{"Authorization: Bearer"}, false},
		{[]string{"Authorization: Bearer " + token + "0"}, false},
		{[]string{"Authorization: Bearer " + token[1:]}, false},
		{[]string{"Authorization: Basic " + token}, false},
		{[]string{"Authorization: " + token}, false},
		{[]string{"Authorization: Bearer " + token, "Origin: http://evil.example"}, false},
		{[]string{"Host: admin.example"}, false},
	} {
		for _, private := range []bool{false, true} {
			s := &store{now: map[Entity]Document{{Tier, "a"}: {[]byte(`{}`), `"1-a"`}}}
			var log strings.Builder
			h := New(Config{Cluster: &cluster{}, Rules: s, Metrics: metrics, Token: []byte(token), Private: private, Logger: slog.New(slog.NewTextHandler(&log, nil))})
			for _, method := range []string{"PUT", "DELETE"} {
				s.done = nil
				w := call(h, method, "/v1/limits/a", "{}", test.headers...)
				if (w.Code < 300) != test.may || (len(s.done) == 1) != test.may {
					t.Errorf("%s %v: %d, %+v", method, test.headers, w.Code, s.done)
				}
				if w.Code == 401 && !strings.HasPrefix(w.Header().Get("WWW-Authenticate"), `Bearer realm="`) {
					t.Errorf("%v: %v", test.headers, w.Header())
				}
				if test.may && !s.done[0].Author.Token {
					t.Errorf("%+v", s.done)
				}
				if strings.Contains(log.String()+w.Body.String(), token[1:]) {
					t.Errorf("the token is told: %s%s", &log, w.Body)
				}
			}
			if lines := strings.Count(log.String(), "address=127.0.0.1:5555"); !test.may && lines != 2 || test.may && lines != 0 {
				t.Errorf("%v, private %v: %d lines in the log:\n%s", test.headers, private, lines, &log)
			}
		}
	}
}

// Who may not write has no say in how long the lines are that the log gets of it.
func TestRefusedWritesAreLoggedBriefly(t *testing.T) {
	var log strings.Builder
	h := New(Config{Cluster: &cluster{}, Rules: &store{}, Metrics: metrics, Private: true, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	long := strings.Repeat("X", 30_000)
	call(h, long, "/v1/clients/"+long, "")
	if got := log.String(); len(got) > 2000 || !strings.Contains(got, "a change of rules was refused") {
		t.Errorf("%d bytes: %.500s", len(got), got)
	}
}

// Off loopback all but the metrics needs the token, on it only writes do.
func TestPrivate(t *testing.T) {
	for _, test := range []struct {
		cfg           Config
		path, token   string
		status        int
		authenticates bool
	}{
		{Config{}, "/v1/members", "", 200, false},
		{Config{Token: []byte(token)}, "/v1/members", "", 200, false},
		{Config{Token: []byte(token)}, "/v1/members", "another token", 200, false}, // none is needed
		{Config{Token: []byte(token), Private: true}, "/v1/members", "", 401, true},
		{Config{Token: []byte(token), Private: true}, "/v1/limits", "", 401, true},
		{Config{Token: []byte(token), Private: true}, "/debug/pprof/", "", 401, true},
		{Config{Token: []byte(token), Private: true}, "/v1/keys/a", "", 401, true},
		{Config{Token: []byte(token), Private: true}, "/metrics/", "", 401, true},
		{Config{Token: []byte(token), Private: true}, "/metrics", "", 200, false},
		{Config{Token: []byte(token), Private: true}, "/v1/members", token, 200, false},
		{Config{Private: true}, "/v1/members", "", 401, true}, // no token is no open door
		{Config{Private: true}, "/v1/members", token, 401, true},
	} {
		test.cfg.Cluster, test.cfg.Rules, test.cfg.Metrics = &cluster{}, &store{}, metrics
		header := "X: y"
		if test.token != "" {
			header = "Authorization: Bearer " + test.token
		}
		w := call(New(test.cfg), "GET", test.path, "", header)
		if w.Code != test.status || (w.Header().Get("WWW-Authenticate") != "") != test.authenticates {
			t.Errorf("%+v: %d %v", test, w.Code, w.Header())
		}
	}
	s := &store{}
	if w := call(New(Config{Rules: s, Metrics: metrics, Private: true}), "PUT", "/v1/limits/a", "{}"); w.Code != 401 || len(s.done) > 0 {
		t.Errorf("%d %+v", w.Code, s.done)
	}
}

// DNS rebinding: without a token only who asks by an address of this machine is
// answered, whatever the path.
func TestHostsWithoutAToken(t *testing.T) {
	h := rulesDoor(&store{})
	for host, want := range map[string]int{
		"127.0.0.1:7704": 200, "127.0.0.1": 200, "127.9.9.9:1": 200, "[::1]:7704": 200, "[::1]": 200, "[::ffff:127.0.0.1]:7704": 200,
		"localhost:7704": 200, "LOCALHOST": 200, "10.0.0.1:7704": 403, "0.0.0.0:7704": 403, "[fe80::1]:7704": 403,
		"":             200, // HTTP/1.0: no browser
		"evil.example": 403, "evil.example:7704": 403, "localhost.evil.example:7704": 403, "127.0.0.1.evil.example": 403, "2130706433": 403,
	} {
		for _, path := range []string{"/v1/members", "/v1/limits", "/v1/ring", "/v1/keys/a", "/debug/pprof/", "/metrics"} {
			w := call(h, "GET", path, "", "Host: "+host)
			if w.Code != want || want == 403 && (!strings.Contains(w.Body.String(), `"field":"Host"`) || w.Header().Get("Content-Type") != "application/problem+json") {
				t.Errorf("%s at %q: %d %s", path, host, w.Code, w.Body)
			}
		}
	}
}

// A scraper comes by the address that the door listens at, loopback or not.
func TestTheListenersOwnAddress(t *testing.T) {
	for _, test := range []struct {
		at, host string
		status   int
	}{
		{"10.0.0.1", "10.0.0.1:7704", 200},
		{"::ffff:10.0.0.1", "10.0.0.1", 200},
		{"10.0.0.1", "10.0.0.2:7704", 403},
		{"10.0.0.1", "node-1:7704", 403},
		{"2001:db8::1", "[2001:db8:0::1]:7704", 200},
		{"fe80::1%eth0", "[fe80::1]:7704", 200}, // a zone is not sent
		{"fe80::1%eth0", "[fe80::2]:7704", 403},
	} {
		r := httptest.NewRequest("GET", "http://"+test.host+"/metrics", nil)
		at := net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(test.at), 7704))
		w := httptest.NewRecorder()
		rulesDoor(&store{}).ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, at)))
		if w.Code != test.status {
			t.Errorf("%+v: %d %s", test, w.Code, w.Body)
		}
	}
}

// Who shows the token may come by any name. Where other machines reach the door, the
// metrics may be scraped by any too.
func TestHostsWithAToken(t *testing.T) {
	for _, test := range []struct {
		private       bool
		path, headers string
		status        int
	}{
		{false, "/v1/members", "", 403},
		{false, "/metrics", "", 403},
		{false, "/v1/members", "Authorization: Bearer " + token, 200},
		{false, "/v1/members", "Authorization: Bearer wrong", 401},
		{true, "/v1/members", "Authorization: Bearer " + token, 200},
		{true, "/v1/members", "", 401},
		{true, "/metrics", "", 200},
	} {
		h := New(Config{Cluster: &cluster{}, Rules: &store{}, Metrics: metrics, Token: []byte(token), Private: test.private})
		headers := []string{"Host: admin.example:7704"}
		if test.headers != "" {
			headers = append(headers, test.headers)
		}
		if w := call(h, "GET", test.path, "", headers...); w.Code != test.status {
			t.Errorf("%+v: %d %s", test, w.Code, w.Body)
		}
	}
}
