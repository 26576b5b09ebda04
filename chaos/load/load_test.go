package load

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ringlimit/ringlimit/chaos/history"
	"github.com/ringlimit/ringlimit/chaos/keyspace"
	"github.com/ringlimit/ringlimit/chaos/scenario"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// limiter is a node that counts each key up to a limit. Every third denial is
// said to be a deny cache's, and every fallback-th check a fallback's.
type limiter struct {
	mu       sync.Mutex
	limit    int64
	fallback int
	asked    int
	used     map[string]int64
}

func (l *limiter) decide(a ask) answer {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked++
	v := answer{Source: "owner", Rule: "c", ResetAt: time.Unix(1_800_000_000, 0)}
	switch {
	case l.fallback > 0 && l.asked%l.fallback == 0:
		v.Source, v.Allowed = "fallback", true
		return v
	case l.used[a.Key] < l.limit:
		v.Allowed = true
		if !a.Peek {
			l.used[a.Key]++
		}
	case l.asked%3 == 0:
		v.Source = "deny_cache"
	}
	v.Remaining = l.limit - l.used[a.Key]
	return v
}

func (l *limiter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/v1/check" {
		var a ask
		_ = json.NewDecoder(r.Body).Decode(&a)
		_ = json.NewEncoder(w).Encode(l.decide(a))
		return
	}
	var body struct{ Checks []ask }
	_ = json.NewDecoder(r.Body).Decode(&body)
	var verdicts []answer
	for _, a := range body.Checks {
		verdicts = append(verdicts, l.decide(a))
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"verdicts": verdicts})
}

func serve(t *testing.T, h http.Handler) Door {
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(client.CloseIdleConnections)
	return Door{Node: 0, Host: strings.TrimPrefix(s.URL, "http://"), Client: client}
}

func clients(doors ...Door) *Clients {
	return New(&Clients{
		Keys:     keyspace.New([]scenario.Class{{Name: "c", Keys: 7}}),
		History:  history.New(),
		Doors:    func() []Door { return doors },
		Patience: 2 * time.Second,
	}, 1)
}

func records(c *Clients) (all []history.Record) {
	for r := range c.History.Records() {
		all = append(all, *r)
	}
	return all
}

// Every key is used up, exactly, whatever answers in between.
func TestFill(t *testing.T) {
	l := &limiter{limit: 230, fallback: 50, used: map[string]int64{}}
	c := clients(serve(t, l))
	if err := c.Fill(t.Context(), c.Keys.Current()); err != nil {
		t.Fatal(err)
	}
	admitted, refused := map[uint32]int64{}, map[uint32]bool{}
	for _, r := range records(c) {
		if r.Source == history.Owner && r.Allowed {
			admitted[r.Key]++
		}
		refused[r.Key] = refused[r.Key] || r.Source == history.Owner && !r.Allowed
	}
	for _, k := range c.Keys.Current() {
		if admitted[k] != 230 || !refused[k] || l.used[c.Keys.Name(k)] != 230 {
			t.Errorf("key %d: admitted %d, refused by its owner: %v; want 230, true", k, admitted[k], refused[k])
		}
	}
}

func TestFillGivesUp(t *testing.T) {
	l := &limiter{limit: 1, fallback: 1, used: map[string]int64{}} // nothing but fallbacks
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	c := clients(serve(t, l))
	if err := c.Fill(ctx, c.Keys.Current()); err == nil || !strings.Contains(err.Error(), "7 of 7 keys were not refused") {
		t.Errorf("error is %v", err)
	}
}

// dead is the address of a node that is gone.
func dead(t *testing.T, node int) Door {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	return Door{Node: node, Host: l.Addr().String(), Client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
}

// A refused connection sends the client on; the check is one check.
func TestRefusedGoesOn(t *testing.T) {
	c := clients(dead(t, 1), dead(t, 2), serve(t, &limiter{limit: 5, used: map[string]int64{}}))
	for range 20 {
		c.Check(t.Context(), 0)
	}
	got := records(c)
	if len(got) != 20 {
		t.Fatalf("%d records of 20 checks", len(got))
	}
	for _, r := range got {
		if !r.ByOwner() || r.Node != 0 {
			t.Errorf("record is %+v", r)
		}
	}
}

func TestFaults(t *testing.T) {
	cut := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	wrong := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusBadRequest) })
	unlimited := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte(`{"allowed":true}`)) })
	for _, tt := range []struct {
		name string
		door Door
		want history.Fault
	}{
		{"nobody there", dead(t, 0), history.Refused},
		{"cut off", serve(t, cut), history.Broken},
		{"bad request", serve(t, wrong), history.Wrong},
		{"no rule matched", serve(t, unlimited), history.Wrong},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := clients(tt.door)
			c.Check(t.Context(), 0)
			got := records(c)
			if len(got) != 1 || got[0].Fault != tt.want || got[0].Source != history.None || got[0].Allowed {
				t.Errorf("records are %+v, want one %v", got, tt.want)
			}
		})
	}
}

func TestNoAnswerInTime(t *testing.T) {
	let := make(chan struct{})
	door := serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-let }))
	c := clients(door)
	c.Patience = 20 * time.Millisecond
	c.Check(t.Context(), 0)
	close(let)
	if got := records(c); len(got) != 1 || got[0].Fault != history.TimedOut {
		t.Errorf("records are %+v", got)
	}
}

func TestNobodyReady(t *testing.T) {
	c := clients()
	c.Check(t.Context(), 0)
	if got := records(c); len(got) != 0 {
		t.Errorf("records are %+v: without a door nothing is asked", got)
	}
	if n := c.Homeless(); n != 1 {
		t.Errorf("%d checks found nobody ready, want 1", n)
	}
}

func TestResetsTakeNothing(t *testing.T) {
	l := &limiter{limit: 5, used: map[string]int64{}}
	c := clients(serve(t, l))
	at, err := c.Resets(t.Context(), c.Keys.Current())
	if err != nil || len(at) != 7 || !at[0].Equal(time.Unix(1_800_000_000, 0)) {
		t.Errorf("resets are %v, %v", at, err)
	}
	if len(l.used) != 0 || len(records(c)) != 0 {
		t.Error("a look took something")
	}
}

// The generator ends with its last check, and the hot key is hot.
func TestGenerator(t *testing.T) {
	c := clients(serve(t, &limiter{limit: 1e9, used: map[string]int64{}}))
	g := NewGenerator(c, 90)
	g.Set(300, 300)
	ctx, stop := context.WithTimeout(t.Context(), 1200*time.Millisecond)
	defer stop()
	g.Run(ctx, t.Context())
	hot, all := 0, records(c)
	for _, r := range all {
		if r.Key == 0 {
			hot++
		}
	}
	if len(all) < 300 || hot*100 < len(all)*80 {
		t.Errorf("%d checks, %d of them for the hot key", len(all), hot)
	}
}
