package rules

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ringlimit/ringlimit/limit"
)

func TestParseProblems(t *testing.T) {
	rule := func(fields string) string {
		return "tiers:\n  free:\n    - {name: a, algorithm: token_bucket, limit: 1, window: 1s}\n    - " + fields
	}
	tests := []struct {
		name string
		file string
		want []string // the start of each problem
	}{
		{"empty", "", []string{"rules.yaml:1:1: is empty"}},
		{"comment only", "# rules\n", []string{"rules.yaml:1:1: is empty"}},
		{"no tiers", "{}", []string{"rules.yaml:1:1: tiers: is missing"}},
		{"null tiers", "tiers:\n", []string{"rules.yaml:1:7: tiers: is empty; it must be a mapping"}},
		{"no tier", "tiers: {}\n", []string{"rules.yaml:1:8: tiers: is empty; give at least one tier"}},
		{"a list", "- tiers\n", []string{"rules.yaml:1:1: is a list; it must be a mapping"}},
		{"text", "tiers", []string{`rules.yaml:1:1: is "tiers"; it must be a mapping`}},
		{"unknown section", "tiers: {free: []}\nclient: {}\n", []string{"rules.yaml:2:1: client: is no field of a rule file; these are: tiers, clients"}},
		{"two documents", "tiers: {free: []}\n---\ntiers: {}\n", []string{"rules.yaml:3:6: is a second document"}},
		{"syntax", "tiers: [1, 2\nb: 3", []string{"rules.yaml:2:1: is not YAML: "}},
		{"tab as indentation", "tiers:\n\tfree: []", []string{"rules.yaml:2:1: is not YAML: "}},
		{"not UTF-8", "tiers:\n  fr\xffee: []", []string{"rules.yaml:2:5: is not UTF-8 here"}},
		{"too deep", "tiers: " + strings.Repeat("[", 100000), []string{"rules.yaml:1:39: is nested more than 32 levels deep"}},
		{"too deep in dashes", strings.Repeat("- ", 100000), []string{"rules.yaml:1:65: is nested more than 32 levels deep"}},
		{"anchor", "tiers:\n  a: &a [x]\n  b: *a\n", []string{`rules.yaml:2:6: has "&", an anchor, alias, tag, merge, complex key or directive of YAML`}},
		{"alias", "tiers:\n  b: *a\n", []string{`rules.yaml:2:6: has "*", an anchor, alias, `}},
		{"merge", rule("{<<: {limit: 1}, name: b}"), []string{`rules.yaml:4:8: has "<<", an anchor, alias, `}},
		{"tag", rule("{name: !!str b}"), []string{`rules.yaml:4:14: has "!!str", an anchor, alias, `}},
		{"complex key", "? [a]\n: b", []string{`rules.yaml:1:1: has "?", an anchor, alias, `}},
		{"directive", "%YAML 1.2\n---\ntiers: {}", []string{`rules.yaml:1:1: has "%", an anchor, alias, `}},
		{"tab inside a line", "tiers:\n  a:\t[]\n", []string{"rules.yaml:2:5: has a tab or a carriage return inside a line; use spaces"}},
		{"old line ends", "tiers:\r  a: []\r", []string{"rules.yaml:1:7: has a tab or a carriage return inside a line"}},
		{"block of text", "tiers:\n  a: |\n    x\n", []string{"rules.yaml:2:3: has a block of text (| or >)"}},
		{"folded block", "- >-2 # text\n  x\n", []string{"rules.yaml:1:1: has a block of text (| or >)"}},
		{"block behind a quoted key", "\"a #\": |  \n  x\n", []string{"rules.yaml:1:1: has a block of text (| or >)"}},
		{"too deep by indentation", deepBlocks(40), []string{"rules.yaml:33:34: is nested more than 32 levels deep"}},
		{"too many keys", strings.Repeat("a:\n", 2000), []string{"rules.yaml:1001:2: is a mapping of more than 1000 keys"}},
		{"tier of nothing", "tiers: {free: }", []string{"rules.yaml:1:14: tiers.free: is empty; it must be a list"}},
		{"tier twice", "tiers:\n  free: []\n  free: []\n", []string{"rules.yaml:3:3: tiers.free: stands twice, first in line 2"}},
		{"tier's name", "tiers: {frée: []}", []string{`rules.yaml:1:9: tiers."frée": the tier's name is "frée"; names are of printable ASCII`}},
		{"rule of text", "tiers: {free: [charges]}", []string{`rules.yaml:1:16: tiers.free[0]: is "charges"; it must be a mapping`}},
		{"rule of nothing", "tiers: {free: [{}]}", []string{
			"rules.yaml:1:16: tiers.free[0].name: is missing", "rules.yaml:1:16: tiers.free[0].algorithm: is missing",
			"rules.yaml:1:16: tiers.free[0].limit: is missing", "rules.yaml:1:16: tiers.free[0].window: is missing"}},

		{"typo", rule("{name: b, algorithm: token_bucket, limit: 1, window: 1s, brust: 2}"), []string{"rules.yaml:4:64: tiers.free[1].brust: is no field of a rule; these are: name, route_pattern, by, algorithm"}},
		{"field twice", rule("{name: b, algorithm: token_bucket, limit: 1, limit: 2, window: 1s}"), []string{"rules.yaml:4:52: tiers.free[1].limit: stands twice, first in line 4"}},
		{"name twice", rule("{name: a, algorithm: token_bucket, limit: 1, window: 1s}"), []string{`rules.yaml:4:14: tiers.free[1].name: "a" is the name of the rule in line 3 already`}},
		{"name not ASCII", rule("{name: ü, algorithm: token_bucket, limit: 1, window: 1s}"), []string{`rules.yaml:4:14: tiers.free[1].name: is "ü"; names are of printable ASCII`}},
		{"name a number", rule("{name: 5, algorithm: token_bucket, limit: 1, window: 1s}"), []string{"rules.yaml:4:14: tiers.free[1].name: is 5; it must be text"}},
		{"name too long", rule("{name: " + strings.Repeat("x", 129) + ", algorithm: token_bucket, limit: 1, window: 1s}"), []string{"rules.yaml:4:14: tiers.free[1].name: is 129 bytes long; at most 128"}},
		{"algorithm", rule("{name: b, algorithm: tokenbucket, limit: 1, window: 1s}"), []string{`rules.yaml:4:28: tiers.free[1].algorithm: "tokenbucket" is unknown; use token_bucket, `}},
		{"negative limit", rule("{name: b, algorithm: token_bucket, limit: -5, window: 1s}"), []string{"rules.yaml:4:49: tiers.free[1].limit: is -5; it must be an integer from 0"}},
		{"limit of text", rule(`{name: b, algorithm: token_bucket, limit: "5", window: 1s}`), []string{`rules.yaml:4:49: tiers.free[1].limit: is "5"; it must be a whole number`}},
		{"limit with a fraction", rule("{name: b, algorithm: token_bucket, limit: 1.5, window: 1s}"), []string{"rules.yaml:4:49: tiers.free[1].limit: is 1.5; it must be a whole number"}},
		{"limit in octal or not", rule("{name: b, algorithm: token_bucket, limit: 010, window: 1s}"), []string{"rules.yaml:4:49: tiers.free[1].limit: is 010; it must be a whole number"}},
		{"limit too large", rule("{name: b, algorithm: token_bucket, limit: 99999999999999999999, window: 1s}"), []string{`rules.yaml:4:49: tiers.free[1].limit: is "99999999999999999999"; it must be a whole number`}},
		{"window 0", rule("{name: b, algorithm: token_bucket, limit: 1, window: 0s}"), []string{`rules.yaml:4:60: tiers.free[1].window: is "0s"; it must be longer than 0`}},
		{"window without unit", rule("{name: b, algorithm: token_bucket, limit: 1, window: 60}"), []string{`rules.yaml:4:60: tiers.free[1].window: is "60"; it lacks a unit; write 60s`}},
		{"window in days", rule("{name: b, algorithm: token_bucket, limit: 1, window: 7d}"), []string{`rules.yaml:4:60: tiers.free[1].window: is "7d"; it has a unit that is not known; write days as hours`}},
		{"window negative", rule("{name: b, algorithm: token_bucket, limit: 1, window: -1s}"), []string{"rules.yaml:4:60: tiers.free[1].window: is -1s; it must be from 1ms to 100 years"}},
		{"window too short", rule("{name: b, algorithm: token_bucket, limit: 1, window: 1us}"), []string{"rules.yaml:4:60: tiers.free[1].window: is 1µs; it must be from 1ms to 100 years"}},
		{"window too long", rule("{name: b, algorithm: token_bucket, limit: 1, window: 900000h}"), []string{"rules.yaml:4:60: tiers.free[1].window: is 900000h0m0s; it must be from 1ms to 100 years"}},
		{"window of nonsense", rule("{name: b, algorithm: token_bucket, limit: 1, window: week-ish}"), []string{`rules.yaml:4:60: tiers.free[1].window: is "week-ish"; it must be a duration, like 500ms`}},
		{"calendar with another algorithm", rule("{name: b, algorithm: token_bucket, limit: 1, window: day}"), []string{`rules.yaml:4:60: tiers.free[1].window: is "day", which only fixed_window takes`}},
		{"timezone unknown", rule("{name: b, algorithm: fixed_window, limit: 1, window: day, timezone: Mars/Olympus}"), []string{`rules.yaml:4:75: tiers.free[1].timezone: "Mars/Olympus" is unknown here`}},
		{"timezone empty", rule(`{name: b, algorithm: fixed_window, limit: 1, window: day, timezone: ""}`), []string{"rules.yaml:4:75: tiers.free[1].timezone: is empty; leave it out for UTC"}},
		{"timezone of a duration", rule("{name: b, algorithm: fixed_window, limit: 1, window: 1h, timezone: Europe/Berlin}"), []string{"rules.yaml:4:74: tiers.free[1].timezone: needs a fixed_window with window: day or month"}},
		{"burst of a window", rule("{name: b, algorithm: fixed_window, limit: 1, window: 1s, burst: 0}"), []string{"rules.yaml:4:71: tiers.free[1].burst: belongs to token_bucket and leaky_bucket only"}},
		{"burst 0 of a token bucket", rule("{name: b, algorithm: token_bucket, limit: 1, window: 1s, burst: 0}"), []string{"rules.yaml:4:71: tiers.free[1].burst: is 0, so the bucket could hold nothing"}},
		{"burst negative", rule("{name: b, algorithm: leaky_bucket, limit: 1, window: 1s, burst: -1}"), []string{"rules.yaml:4:71: tiers.free[1].burst: is -1; it must be an integer from 0"}},
		{"delay of a token bucket", rule("{name: b, algorithm: token_bucket, limit: 1, window: 1s, delay: true}"), []string{"rules.yaml:4:71: tiers.free[1].delay: belongs to leaky_bucket only"}},
		{"delay of text", rule("{name: b, algorithm: leaky_bucket, limit: 1, window: 1s, delay: yes}"), []string{`rules.yaml:4:71: tiers.free[1].delay: is "yes"; it must be true or false`}},
		{"by unknown", rule("{name: b, algorithm: token_bucket, limit: 1, window: 1s, by: [cleint]}"), []string{`rules.yaml:4:69: tiers.free[1].by[0]: "cleint" is unknown; use client, ip, route or attribute NAME`}},
		{"by of text", rule("{name: b, algorithm: token_bucket, limit: 1, window: 1s, by: ip}"), []string{`rules.yaml:4:68: tiers.free[1].by: is "ip"; it must be a list, like [client]`}},
		{"by nothing", rule("{name: b, algorithm: token_bucket, limit: 1, window: 1s, by: []}"), []string{"rules.yaml:4:68: tiers.free[1].by: has 0 entries; give 1 to 8"}},
		{"by twice", rule("{name: b, algorithm: token_bucket, limit: 1, window: 1s, by: [ip, ip]}"), []string{`rules.yaml:4:73: tiers.free[1].by[1]: "ip" stands twice`}},
		{"by attribute of no name", rule("{name: b, algorithm: token_bucket, limit: 1, window: 1s, by: ['attribute ']}"), []string{`rules.yaml:4:69: tiers.free[1].by[0]: "attribute " must be attribute, one space and a name`}},
		{"pattern a number", rule("{name: b, algorithm: token_bucket, limit: 1, window: 1s, route_pattern: 5}"), []string{"rules.yaml:4:79: tiers.free[1].route_pattern: is 5; it must be text"}},
		{"window empty", rule("{name: b, algorithm: token_bucket, limit: 1, window: ''}"), []string{`rules.yaml:4:60: tiers.free[1].window: is ""; it must be a duration`}},
		{"on_failure", rule("{name: b, algorithm: token_bucket, limit: 1, window: 1s, on_failure: open}"), []string{`rules.yaml:4:76: tiers.free[1].on_failure: "open" is unknown; use local, allow or deny`}},
		{"durability", rule("{name: b, algorithm: token_bucket, limit: 1, window: 1s, durability: always}"), []string{`rules.yaml:4:76: tiers.free[1].durability: "always" is unknown; use auto, sync or none`}},
		{"durability a number", rule("{name: b, algorithm: token_bucket, limit: 1, window: 1s, durability: 1}"), []string{"rules.yaml:4:76: tiers.free[1].durability: is 1; it must be text, like auto"}},
		{"on_missing", rule("{name: b, algorithm: token_bucket, limit: 1, window: 1s, on_missing: ignore}"), []string{`rules.yaml:4:76: tiers.free[1].on_missing: is "ignore"; it must be skip or deny`}},
		{"retry_jitter", rule("{name: b, algorithm: token_bucket, limit: 1, window: 1s, retry_jitter: true}"), []string{"rules.yaml:4:78: tiers.free[1].retry_jitter: is true; it must be text, like full"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			set, err := Parse("rules.yaml", []byte(tt.file))
			var bad *Error
			if !errors.As(err, &bad) || set != nil {
				t.Fatalf("Parse = %v, %v; want an *Error", set, err)
			}
			if len(bad.Problems) != len(tt.want) {
				t.Errorf("%d problems, want %d", len(bad.Problems), len(tt.want))
			}
			for _, want := range tt.want {
				found := func(p Problem) bool { return strings.HasPrefix(p.String(), want) }
				if !slices.ContainsFunc(bad.Problems, found) {
					t.Errorf("no problem starts with\n%s\nin\n%v", want, err)
				}
			}
		})
	}
}

// deepBlocks is a mapping in a mapping in a mapping.
func deepBlocks(levels int) string {
	var b strings.Builder
	for i := range levels {
		b.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	return b.String()
}

func TestPatternProblems(t *testing.T) {
	const first = `route_pattern: "GET /a/{id}"`
	tests := []struct{ pattern, want string }{
		{``, "is empty; leave it out, or write METHOD /path"},
		{`GET v1/charges`, `"GET v1/charges" has no path that starts with a slash`},
		{`example.com/v1/`, `"example.com/v1/" has no path that starts with a slash`},
		{`GET example.com/v1/`, `has no path that starts with a slash`},
		{`GET`, ""}, // a name, if an odd one
		{`GET /a/{b`, `"GET /a/{b" is no pattern: at offset 7: bad wildcard segment`},
		{`GET /a/b{c}`, `is no pattern: at offset 7: bad wildcard segment`},
		{`GET /{rest...}/a`, `is no pattern: at offset 5: {...} wildcard not at end`},
		{`G(T /a`, `is no pattern: at offset 0: invalid method "G(T"`},
		{`/a//b`, `"/a//b" matches no request, because paths are cleaned first; write /a/b`},
		{`CONNECT /a/../b`, `matches no request, because paths are cleaned first; write /b`},
		{`GET /a/{name}`, `conflicts with the pattern in line 3: GET /a/{name} matches the same requests as GET /a/{id}`},
		{`GET /{x}/b`, `conflicts with the pattern in line 3: GET /{x}/b and GET /a/{id} both match some paths, like "/a/b"`},
		{`/a/b`, `conflicts with the pattern in line 3: /a/b matches more methods than GET /a/{id}, but has a more specific path pattern`},
		{`GET /a/{id}`, ""}, // again: two rules of one pattern
		{`a{b}`, `has no path that starts with a slash`},
		{"a\nb", `has a control character`},
		{"/" + strings.Repeat("x", 1024), `is 1025 bytes long; at most 1024`},
	}
	for _, tt := range tests {
		_, err := Parse("rules.yaml", []byte(tierOf(first, fmt.Sprintf("route_pattern: %q", tt.pattern))))
		if tt.want == "" {
			if err != nil {
				t.Errorf("pattern %q: %v", tt.pattern, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), "rules.yaml:4:82: tiers.default[1].route_pattern: ") || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("pattern %q: error %v\nwant %s", tt.pattern, err, tt.want)
		}
	}
}

// TestConflictsAreOfOneTier: tiers are levels, so their patterns never compete.
func TestConflictsAreOfOneTier(t *testing.T) {
	parse(t, `
tiers:
  a: [{name: x, route_pattern: "/a/{id}", algorithm: token_bucket, limit: 1, window: 1s}]
  b: [{name: x, route_pattern: "/{id}/a", algorithm: token_bucket, limit: 1, window: 1s}]`)
}

func TestProblemsComeTogetherAndInOrder(t *testing.T) {
	rules := slices.Repeat([]string{"limt: 5"}, 30)
	_, err := Parse("rules.yaml", []byte(tierOf(rules...)))
	var bad *Error
	if !errors.As(err, &bad) {
		t.Fatal(err)
	}
	if len(bad.Problems) != 20 || bad.More != 10 {
		t.Errorf("%d listed and %d more, want 20 and 10", len(bad.Problems), bad.More)
	}
	for i, p := range bad.Problems {
		if p.Line != i+3 || p.Field != fmt.Sprintf("tiers.default[%d].limt", i) {
			t.Errorf("problem %d is %v", i, p)
		}
	}
	if text := err.Error(); !strings.HasSuffix(text, "\n… and 10 more") {
		t.Errorf("error does not end with the rest:\n%s", text)
	}
}

// TestProblemsAreSorted: what is missing is only known after what is there.
func TestProblemsAreSorted(t *testing.T) {
	_, err := Parse("rules.yaml", []byte("tiers:\n  free:\n    - name: a\n      limit: x\n    - limit: y\n"))
	var bad *Error
	if !errors.As(err, &bad) {
		t.Fatal(err)
	}
	var lines []int
	for _, p := range bad.Problems {
		lines = append(lines, p.Line)
	}
	if !slices.Equal(lines, []int{3, 3, 4, 5, 5, 5, 5}) {
		t.Errorf("problems are in lines %v:\n%v", lines, err)
	}
}

func TestProblemShowsItsLine(t *testing.T) {
	_, err := Parse("rules.yaml", []byte("tiers:\n  ünï: [{name: x, algorithm: token_bucket, limit: 1, window: 0s}]"))
	want := `rules.yaml:2:62: tiers."ünï"[0].window: is "0s"; it must be longer than 0, like 60s; for "never" write limit: 0
     2 |   ünï: [{name: x, algorithm: token_bucket, limit: 1, window: 0s}]
       |                                                              ^`
	if err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("error is\n%v\nwant\n%s", err, want)
	}
}

func TestBounds(t *testing.T) {
	if _, err := Parse("rules.yaml", make([]byte, MaxFileBytes+1)); err == nil || !strings.Contains(err.Error(), "is 4194305 bytes long; at most 4194304 are allowed") {
		t.Errorf("a large file: %v", err)
	}
	var file strings.Builder
	file.WriteString("tiers:\n  default: []\n  free:\n")
	for i := range MaxRules + 1 {
		fmt.Fprintf(&file, "    - {name: r%d, algorithm: token_bucket, limit: 1, window: 1s}\n", i)
	}
	_, err := Parse("rules.yaml", []byte(file.String()))
	if err == nil || !strings.Contains(err.Error(), "tiers.free[1000]: is one rule too many; a tier or client has at most 1000") {
		t.Errorf("too many rules: %.300v", err)
	}
}

// D33: windows of 30 s, 5 min and 2 h; and the shortest and the longest.
func TestD33Windows(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"30s": 30 * time.Second, "5m": 5 * time.Minute, "2h": 2 * time.Hour,
		"1ms": time.Millisecond, "1h30m": 90 * time.Minute, "168h": 168 * time.Hour, "876600h": limit.MaxWindow,
	} {
		s := parse(t, "tiers: {default: [{name: w, algorithm: sliding_window_counter, limit: 100, window: "+text+"}]}")
		if got := match(t, s, limit.Request{}).Rule.Window; got != want {
			t.Errorf("window %s is %v", text, got)
		}
		if !strings.Contains(string(s.LimitsJSON()), `"window":"`+text+`"`) {
			t.Errorf("window %s is shown in %s", text, s.LimitsJSON())
		}
	}
}

// B10: a limit of 0 denies all, and is accepted for every algorithm.
func TestB10LimitZero(t *testing.T) {
	for a := limit.TokenBucket; a <= limit.SlidingWindowCounter; a++ {
		s := parse(t, "tiers: {default: [{name: none, algorithm: "+a.String()+", limit: 0, window: 60s}]}")
		if r := match(t, s, limit.Request{}).Rule; r == nil || r.Limit != 0 || r.Algorithm != a {
			t.Errorf("%v: rule %+v", a, r)
		}
		if len(s.Warnings()) != 0 {
			t.Errorf("%v: warnings %q", a, s.Warnings())
		}
	}
}

func TestRuleFields(t *testing.T) {
	s := parse(t, `
tiers:
  default:
    - {name: plain, algorithm: leaky_bucket, limit: 5, window: 1s}
    - {name: full, algorithm: leaky_bucket, limit: 5, window: 1s, burst: 7, delay: false, on_failure: deny, durability: sync, retry_jitter: none}
    - {name: month, algorithm: fixed_window, limit: 9, window: month, timezone: America/New_York, on_failure: allow, durability: none}
`)
	var got []string
	for r := range s.Rules() {
		got = append(got, fmt.Sprintf("%s/%s %s burst %d police %t calendar %s in %s, on failure %s, durability %s, jitter %t",
			r.Tier, r.Name, r.Algorithm, r.Burst, r.Police, r.Calendar, r.Timezone, r.OnFailure, r.Durability, r.Jitter))
	}
	want := []string{
		"default/plain leaky_bucket burst 0 police false calendar  in , on failure local, durability auto, jitter true",
		"default/full leaky_bucket burst 7 police true calendar  in , on failure deny, durability sync, jitter false",
		"default/month fixed_window burst 0 police false calendar month in America/New_York, on failure allow, durability none, jitter true",
	}
	if !slices.Equal(got, want) {
		t.Errorf("rules are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for range s.Rules() {
		break // an iterator can be left early
	}
}

func TestWarnings(t *testing.T) {
	s := parse(t, `
tiers:
  default:
    - {name: small, algorithm: sliding_window_counter, limit: 19, window: 60s}
    - {name: fine, algorithm: sliding_window_counter, limit: 20, window: 60s}
    - {name: exact, algorithm: sliding_window_log, limit: 5, window: 60s}
`)
	w := s.Warnings()
	if len(w) != 1 || !strings.HasPrefix(w[0], "rules.yaml:4:63: tiers.default[0].limit: 19 is small for sliding_window_counter") || strings.Contains(w[0], "\n") {
		t.Errorf("warnings are %q", w)
	}
}

func TestFileForms(t *testing.T) {
	for name, file := range map[string]string{
		"byte order mark": "\ufefftiers: {default: []}",
		"bars":            "# one | two |\ntiers: {default: []} # a > b |x\n",
		"tabs before":     "{\n\t\"tiers\": {\n\t\t\"default\": []\n\t}\n}\n",
		"CRLF":            "tiers:\r\n  default:\r\n    - name: a\r\n      algorithm: token_bucket\r\n      limit: 1\r\n      window: 1s\r\n",
		"document marks":  "---\ntiers: {default: []}\n...\n",
		"JSON":            `{"tiers":{"default":[{"name":"a","algorithm":"token_bucket","limit":1,"window":"1s"}]}}`,
		"quoted keys":     `"tiers": {'default': []}`,
		"number as tier":  "tiers: {404: []}",
	} {
		if _, err := Parse("rules.yaml", []byte(file)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestExampleFile(t *testing.T) {
	data, err := os.ReadFile("../examples/rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	s := parse(t, string(data))
	if w := s.Warnings(); len(w) != 0 {
		t.Errorf("warnings %q", w)
	}
	algorithms := map[limit.Algorithm]bool{}
	for _, tier := range []string{"", "log", "counter", "window", "bucket", "queue"} {
		r := match(t, s, limit.Request{Tier: tier}).Rule
		if r.Capacity() != 100 {
			t.Errorf("tier %q admits %d at first, not 100", tier, r.Capacity())
		}
		algorithms[r.Algorithm] = true
	}
	if len(algorithms) != 5 {
		t.Errorf("the example shows %d algorithms", len(algorithms))
	}
	if got := ruleName(match(t, s, limit.Request{Tier: "free", Route: "POST /v1/charges"})); got != "free/charges" {
		t.Errorf("POST /v1/charges is limited by %q", got)
	}
	for id, want := range map[string]string{"big-shop": "/more-charges", "status-page": ""} {
		if got := ruleName(match(t, s, limit.Request{Key: id, Route: "POST /v1/charges"})); got != want {
			t.Errorf("%s is limited by %q, not %q", id, got, want)
		}
	}
}
