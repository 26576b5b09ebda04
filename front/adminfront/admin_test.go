package adminfront

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime/pprof"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ringlimit/ringlimit/limit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type cluster struct {
	members []Member
	ring    Ring
	at      Location
	err     error
	asked   limit.Request
}

func (c *cluster) Members() []Member { return c.members }

func (c *cluster) Ring() (Ring, error) { return c.ring, c.err }

func (c *cluster) Locate(_ context.Context, req limit.Request) (Location, error) {
	c.asked = req
	if err := req.Validate(); err != nil {
		return Location{}, err
	}
	return c.at, c.err
}

var metrics = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "metrics") })

func newDoor(c *cluster) http.Handler {
	return New(Config{Cluster: c, Metrics: metrics, Rules: &store{}})
}

func get200(t *testing.T, h http.Handler, target string) string {
	t.Helper()
	w := call(h, "GET", target, "")
	if w.Code != 200 {
		t.Errorf("%s: %d %s", target, w.Code, w.Body)
	}
	return w.Body.String()
}

func TestMembers(t *testing.T) {
	c := &cluster{}
	h := newDoor(c)
	if got := get200(t, h, "/v1/members"); got != `{"members":[]}` {
		t.Error(got)
	}
	c.members = []Member{{ID: "n1", State: "serving", Addr: "10.0.0.1:7700", Peer: "10.0.0.1:7702", Gossip: "10.0.0.1:7703", Owner: true, Boot: "18a", RulesVersion: 7, RulesDigest: "9f"}, {ID: "n2"}}
	const want = `{"members":[{"id":"n1","state":"serving","addr":"10.0.0.1:7700","peer":"10.0.0.1:7702","gossip":"10.0.0.1:7703","owner":true,"boot":"18a","rules_version":7,"rules_digest":"9f"},` +
		`{"id":"n2","state":"","addr":"","peer":"","gossip":"","owner":false,"boot":"","rules_version":0,"rules_digest":""}]}`
	if got := get200(t, h, "/v1/members"); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got := get200(t, h, "/metrics"); got != "metrics" {
		t.Error(got)
	}
}

func TestKey(t *testing.T) {
	rule, err := limit.NewRule(limit.Spec{Algorithm: limit.FixedWindow, Limit: 5, Window: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	rule.Name, rule.Tier = "global", "default"
	c := &cluster{at: Location{Partition: 7, Owner: "n2", Verdict: limit.Verdict{Allowed: true, Rule: rule, Limit: 5, Remaining: 3, Source: limit.SourceForwarded}}}
	got := get200(t, newDoor(c), "/v1/keys/cust_42?route=GET+/x&tier=free&ip=::ffff:192.0.2.1")
	const start = `{"key":"cust_42","partition":7,"owner":"n2","tier":"default","allowed":true,"limit":5,"remaining":3,"retry_after_ms":0,"reset_at":"`
	if !strings.HasPrefix(got, start) || !strings.HasSuffix(got, `","rule":"global","source":"owner"}`) {
		t.Error(got)
	}
	if a := c.asked; a.Route != "GET /x" || a.Tier != "free" || a.IP.String() != "192.0.2.1" || !a.Peek {
		t.Errorf("%+v", a)
	}
	rule.Tier = "" // a client's own
	if got := get200(t, newDoor(c), "/v1/keys/cust_42"); !strings.HasPrefix(got, `{"key":"cust_42","partition":7,"owner":"n2","allowed":true,`) {
		t.Error(got)
	}
	c.at = Location{Verdict: limit.Verdict{Allowed: true}}
	if got := get200(t, newDoor(c), "/v1/keys/a"); got != `{"key":"a","allowed":true}` {
		t.Error(got)
	}
}

// Every key can be asked for, whatever it is made of.
func TestKeysOfAllKinds(t *testing.T) {
	c := &cluster{}
	h := newDoor(c)
	for _, key := range []string{"a/b", "a//b", "..", ".", "../members", "a/", "/", "a%2Fb", "a b?c#d&e=f;g", "ip:2001:db8::", "é\x00\r\n", "%"} {
		get200(t, h, "/v1/keys/"+url.PathEscape(key))
		if c.asked.Key != key {
			t.Errorf("%q for %q", c.asked.Key, key)
		}
	}
	get200(t, h, "/v1/keys/a//b/../c")
	if c.asked.Key != "a//b/../c" {
		t.Errorf("%q", c.asked.Key)
	}
}

// F40: a key over the bound is refused by name; it is not "not limited".
func TestF40KeyOverTheBound(t *testing.T) {
	c := &cluster{at: Location{Verdict: limit.Verdict{Allowed: true}}}
	w := call(newDoor(c), "GET", "/v1/keys/"+strings.Repeat("k", 513), "")
	if w.Code != 400 || !strings.Contains(w.Body.String(), `"field":"key"`) || !strings.Contains(w.Body.String(), "is 513 bytes long; at most 512") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	get200(t, newDoor(c), "/v1/keys/"+strings.Repeat("k", 512))
}

func TestErrors(t *testing.T) {
	c := &cluster{}
	h := newDoor(c)
	for _, test := range []struct {
		method, target string
		status         int
		want           string
	}{
		{"GET", "/v1/keys/", 400, `"field":"key"`},
		{"GET", "/v1/keys/a?ip=x", 400, `"field":"ip"`},
		{"GET", "/v1/keys/a?teir=free", 400, `"field":"teir"`},
		{"GET", "/v1/keys/a?tier=a&tier=b", 400, `"field":"tier"`},
		{"GET", "/v1/keys/a?tier=%zz", 400, `"field":"query"`},
		{"DELETE", "/v1/keys/a", 405, `takes GET, HEAD`},
		{"POST", "/v1/members", 405, `takes GET, HEAD`},
		{"GET", "/", 404, `nothing at this path`},
		{"POST", "/v1/ring", 405, `takes GET, HEAD`},
		{"GET", "/v1/ring/7", 404, `nothing at this path`},
		{"GET", "/v1/keys", 404, `nothing at this path`},
		{"GET", "/debug/pprof/none", 404, `no such profile`},
		{"GET", "/debug/pprof/heap?debug=x", 400, `"field":"debug"`},
		{"GET", "/debug/pprof/profile?seconds=0", 400, `"field":"seconds"`},
		{"GET", "/debug/pprof/profile?seconds=301", 400, `must be from 1 to 300`},
	} {
		w := call(h, test.method, test.target, "")
		if w.Code != test.status || !strings.Contains(w.Body.String(), test.want) || w.Header().Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s %s: %d %s", test.method, test.target, w.Code, w.Body)
		}
	}
	c.err = errors.New("secret")
	for _, target := range []string{"/v1/keys/a", "/v1/ring"} {
		w := call(h, "GET", target, "")
		if w.Code != 500 || strings.Contains(w.Body.String(), "secret") {
			t.Errorf("%s: %d %s", target, w.Code, w.Body)
		}
	}
}

func TestProfiles(t *testing.T) {
	h := newDoor(&cluster{})
	if got := get200(t, h, "/debug/pprof/"); !strings.Contains(got, "heap?debug=1") {
		t.Error(got)
	}
	if got := get200(t, h, "/debug/pprof/goroutine?debug=1"); !strings.HasPrefix(got, "goroutine profile:") {
		t.Error(got)
	}
	if got := get200(t, h, "/debug/pprof/heap"); !bytes.HasPrefix([]byte(got), []byte{0x1f, 0x8b}) {
		t.Error("no gzip")
	}
	// The profile ends with its client; two at once there are not.
	soon, stop := context.WithTimeout(t.Context(), time.Millisecond)
	defer stop()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(soon, "GET", "http://localhost/debug/pprof/profile?seconds=300", nil))
	if w.Code != 200 || !bytes.HasPrefix(w.Body.Bytes(), []byte{0x1f, 0x8b}) {
		t.Errorf("%d", w.Code)
	}
	if err := pprof.StartCPUProfile(io.Discard); err != nil {
		t.Fatal(err)
	}
	defer pprof.StopCPUProfile()
	w = call(h, "GET", "/debug/pprof/profile", "")
	if w.Code != http.StatusConflict || w.Header().Get("Content-Type") != "application/problem+json" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
	// No import of ours may have opened profiles to the world.
	if _, pattern := http.DefaultServeMux.Handler(httptest.NewRequest("GET", "/debug/pprof/", nil)); pattern != "" {
		t.Errorf("DefaultServeMux serves %s", pattern)
	}
}
