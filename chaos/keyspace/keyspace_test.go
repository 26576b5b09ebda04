package keyspace

import (
	"testing"
	"time"

	"github.com/ringlimit/ringlimit/chaos/scenario"
	"github.com/ringlimit/ringlimit/limit"
	"github.com/ringlimit/ringlimit/rules"
)

func space() *Space {
	return New([]scenario.Class{
		{Name: "log", Algorithm: "sliding_window_log", Limit: 100, Window: 10 * time.Minute, OnFailure: "local", Durability: "auto", Keys: 3},
		{Name: "bucket", Algorithm: "token_bucket", Limit: 50, Window: time.Hour, Burst: 7, OnFailure: "deny", Durability: "sync", Keys: 2},
	})
}

func TestKeys(t *testing.T) {
	s := space()
	names := map[string]bool{}
	for generation := range 3 {
		keys := s.Current()
		if len(keys) != 5 || s.Size() != 5 {
			t.Fatalf("generation %d has the keys %v", generation, keys)
		}
		for i, k := range keys {
			want := "log"
			if i >= 3 {
				want = "bucket"
			}
			if got := s.Class(k).Name; got != want || s.Route(k) != "GET /"+want || s.Key(i) != k {
				t.Errorf("key %d is of %s, want %s", k, got, want)
			}
			names[s.Name(k)] = true
		}
		s.Fresh()
	}
	if len(names) != 15 {
		t.Errorf("15 keys have %d names", len(names))
	}
}

// Every key meets the rule of its class, and no other.
func TestRules(t *testing.T) {
	s := space()
	set, err := rules.Parse("rules.yaml", s.Rules())
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range s.Current() {
		var m rules.Matches
		req := limit.Request{Key: s.Name(k), Route: s.Route(k)}
		if err := set.Match(&req, &m); err != nil || len(m.Winners) != 1 {
			t.Fatalf("%s has the limits %+v: %v", req.Key, m.Winners, err)
		}
		c := s.Class(k)
		if r := m.Winners[0].Rule; r.Name != c.Name || r.Algorithm.String() != c.Algorithm || r.Limit != c.Limit || r.Window != c.Window || r.Burst != c.Burst {
			t.Errorf("%s meets %+v, want %+v", req.Key, r, c)
		}
	}
}
