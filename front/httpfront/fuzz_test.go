package httpfront

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/ringlimit/ringlimit/limit"
)

// What the decoder accepts, encoding/json reads as the same check; what it does
// not accept is bad input that names a field.
func FuzzCheck(f *testing.F) {
	for _, bad := range badChecks {
		if len(bad.body) < 1000 {
			f.Add([]byte(bad.body))
		}
	}
	f.Add([]byte(`{"key":"\u0000\r\n","route":"POST /v1/charges","cost":2,"tier":"free","ip":"2001:DB8::1","attributes":{"plan":"x"},"peek":true}`))
	f.Add([]byte(`{"key":"a","explain":true,"peek":false}`))
	d := newDecoder()
	f.Fuzz(func(t *testing.T, body []byte) {
		d.reset(body, string(body))
		req, err := d.check("body", checkFields)
		if err == nil {
			err = d.end()
		}
		if err == nil {
			sameAsLibrary(t, body, req)
			return
		}
		var input *limit.InputError
		if !errors.As(err, &input) || input.Field == "" && !bytes.Contains(body, []byte(`""`)) || input.Problem == "" {
			t.Fatalf("%q: %v", body, err)
		}
	})
}

func sameAsLibrary(t *testing.T, body []byte, got asked) {
	var want struct {
		Key, Route, Tier, IP string
		Cost                 int64
		Attributes           map[string]string
		Peek, Explain        bool
	}
	if err := json.Unmarshal(body, &want); err != nil {
		t.Fatalf("%q: %v", body, err)
	}
	if got.Key != want.Key || got.Route != want.Route || got.Tier != want.Tier || got.Cost != want.Cost || got.Peek != want.Peek || got.explain != want.Explain {
		t.Fatalf("%q: %+v, want %+v", body, got, want)
	}
	if len(got.Attributes) != len(want.Attributes) || got.IP.IsValid() != (want.IP != "") {
		t.Fatalf("%q: %+v, want %+v", body, got, want)
	}
}

// A batch never answers anything but 200 with a verdict for each check, or 400
// with nothing counted.
func FuzzChecks(f *testing.F) {
	f.Add(`{"checks":[{"key":"a"},{"key":"a","cost":2},{"kee":1},7]}`)
	f.Add(`{"checks":[{"key":"a"},{"key":NaN}]}`)
	f.Add(`{"checks":[],"checks":[]} `)
	f.Add(`{"checks":[{"key":"a","explain":true},{"key":"b","explain":false},{"key":"c","explain":1}]}`)
	c := limited(f, 1<<40)
	h := New(config(c))
	f.Fuzz(func(t *testing.T, body string) {
		c.asked = nil
		w := post(h, "/v1/checks", body)
		switch {
		case w.Code == 400 && len(c.asked) == 0:
		case w.Code == 200 && json.Valid(w.Body.Bytes()):
			var in struct{ Checks []json.RawMessage }
			if err := json.NewDecoder(strings.NewReader(body)).Decode(&in); err != nil && err != io.EOF {
				t.Fatal(err)
			}
			if a := readAnswers(t, w.Body.String()); len(a.Verdicts) != len(in.Checks) {
				t.Fatalf("%q: %s", body, w.Body)
			}
		default:
			t.Fatalf("%q: %d %s, counted %q", body, w.Code, w.Body, c.keys())
		}
	})
}
