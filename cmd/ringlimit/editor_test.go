package main

import (
	"context"
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
	door := aloneDoor(f)
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

// aloneDoor is the admin door of a node that runs until the test ends.
func aloneDoor(f *testing.F) http.Handler {
	ctx, cancel := context.WithCancel(context.Background())
	r, err := alone().open()
	if err != nil {
		f.Fatal(err)
	}
	up, ended := make(chan struct{}), make(chan error, 1)
	for _, s := range r.servers {
		go s.serve()
	}
	go func() { ended <- r.live(ctx, func(*ringlimit.Node, *doors) { close(up) }) }()
	<-up
	f.Cleanup(func() { cancel(); <-ended })
	return r.adminHandler()
}

func ask127(h http.Handler, method, path string, body []byte) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "http://127.0.0.1"+path, strings.NewReader(string(body)))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}
