package rules

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ringlimit/ringlimit/limit"
)

// The model of matching is a real http.ServeMux. Rule i has pattern i; all have
// one dimension, so that only the most specific one applies.

func drawPattern(t *rapid.T) string {
	method := rapid.SampledFrom([]string{"", "GET ", "HEAD ", "POST "}).Draw(t, "method")
	segment := rapid.SampledFrom([]string{"a", "b", "{x}", "{y}", "a%2Fb", "%61", "ü", "a+b", "%2F"})
	path := strings.Join(rapid.SliceOfN(segment, 0, 3).Draw(t, "segments"), "/")
	end := rapid.SampledFrom([]string{"", "/", "/{$}", "/{rest...}"}).Draw(t, "end")
	if path == "" && end == "" {
		end = "/"
	}
	if path != "" {
		path = "/" + path
	}
	return method + path + end
}

func drawPath(t *rapid.T) string {
	segment := rapid.SampledFrom([]string{"a", "b", "c", "a", "b", "", ".", "..", "a%2fb", "%61", "%2e%2e", "%2F", "ü", "%C3%BC", `a"`, "a+b", "a b", "a;b", "%25", ".a", "%"})
	path := "/" + strings.Join(rapid.SliceOfN(segment, 0, 4).Draw(t, "path"), "/")
	return path + rapid.SampledFrom([]string{"", "", "/", "?q=/a/b", "?", "#/.."}).Draw(t, "rest")
}

func newMux(patterns []string) *http.ServeMux {
	mux := http.NewServeMux()
	for _, p := range patterns {
		mux.Handle(p, http.NotFoundHandler())
	}
	return mux
}

func TestMatchFollowsServeMux(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		// The patterns that ServeMux takes one after the other, without conflict.
		checked := http.NewServeMux()
		var patterns []string
		for range rapid.IntRange(1, 12).Draw(t, "patterns") {
			p := drawPattern(t)
			if handle(checked, p) == "" {
				patterns = append(patterns, p)
			}
		}
		if len(patterns) == 0 {
			t.Skip("no pattern is valid")
		}
		var fields []string
		for _, p := range patterns {
			fields = append(fields, fmt.Sprintf("route_pattern: %q", p))
		}
		s, err := Parse("rules.yaml", []byte(tierOf(fields...)))
		if err != nil {
			t.Fatalf("ServeMux takes %q, Parse does not: %v", patterns, err)
		}
		mux := newMux(patterns)
		for range 8 {
			checkRequest(t, s, mux, patterns)
		}
	})
}

func checkRequest(t *rapid.T, s *Set, mux *http.ServeMux, patterns []string) {
	method := rapid.SampledFrom([]string{"GET", "HEAD", "POST", "PUT"}).Draw(t, "request")
	path := drawPath(t)
	u, err := url.ParseRequestURI(path)
	if err != nil {
		return // no request that a server would see
	}
	_, want := mux.Handler(&http.Request{Method: method, Host: "example.com", URL: u})
	m := match(t, s, limit.Request{Key: "k", Route: method + " " + path})
	got := ""
	if m.Rule != nil {
		var i int
		fmt.Sscanf(m.Rule.Name, "r%d", &i)
		got = patterns[i]
	}
	if got != want {
		t.Fatalf("%s %s matches %q, in a ServeMux of %q it is %q", method, path, got, patterns, want)
	}
}

// TestConflictsFollowServeMux: Parse refuses what a ServeMux does, but for the
// same pattern twice.
func TestConflictsFollowServeMux(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		patterns := []string{drawPattern(t), drawPattern(t)}
		mux := http.NewServeMux()
		refused := slices.ContainsFunc(slices.Compact(slices.Clone(patterns)), func(p string) bool { return handle(mux, p) != "" })
		_, err := Parse("rules.yaml", []byte(tierOf(fmt.Sprintf("route_pattern: %q", patterns[0]), fmt.Sprintf("route_pattern: %q", patterns[1]))))
		if (err != nil) != refused {
			t.Fatalf("ServeMux refuses %q: %t; Parse: %v", patterns, refused, err)
		}
	})
}

// TestOneSpellingOneCounter: paths that ServeMux cleans to the same, and whose
// segments decode to the same, share a counter of `by: [route]`; others do not.
func TestOneSpellingOneCounter(t *testing.T) {
	s := parse(t, tierOf("by: [route]"))
	meaning := func(path string) (string, bool) {
		u, err := url.ParseRequestURI(path)
		if err != nil {
			return "", false
		}
		var segments []string
		for seg := range strings.SplitSeq(cleanPath(u.EscapedPath()), "/") {
			segments = append(segments, fmt.Sprintf("%q", unescape(seg)))
		}
		return strings.Join(segments, "/"), true
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawPath(t), drawPath(t)
		ma, ok1 := meaning(a)
		mb, ok2 := meaning(b)
		if !ok1 || !ok2 {
			t.Skip("not the path of a request")
		}
		ca := match(t, s, limit.Request{Route: "GET " + a}).Counter
		cb := match(t, s, limit.Request{Route: "GET " + b}).Counter
		if (ma == mb) != (string(ca) == string(cb)) {
			t.Fatalf("%s and %s mean %s and %s; their counters are %q and %q", a, b, ma, mb, ca, cb)
		}
	})
}
