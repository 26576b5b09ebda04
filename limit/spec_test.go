package limit

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestNewRuleRefuses(t *testing.T) {
	minute := time.Minute
	cases := []struct {
		spec         Spec
		field, right string // which field, and a part of what would be right
	}{
		{Spec{Limit: 1, Window: minute}, "algorithm", "token_bucket"},
		{Spec{Algorithm: 9, Limit: 1, Window: minute}, "algorithm", "token_bucket"},
		{Spec{Algorithm: TokenBucket, Limit: -1, Window: minute}, "limit", "from 0"},
		{Spec{Algorithm: FixedWindow, Limit: MaxLimit + 1, Window: minute}, "limit", "9007199254740991"},
		{Spec{Algorithm: FixedWindow, Limit: math.MaxInt64, Window: minute}, "limit", "9007199254740991"},
		{Spec{Algorithm: FixedWindow, Limit: math.MinInt64, Window: minute}, "limit", "from 0"},
		{Spec{Algorithm: SlidingWindowLog, Limit: 1_000_001, Window: minute}, "limit", "sliding_window_counter"},
		{Spec{Algorithm: TokenBucket, Limit: 1}, "window", "from 1ms"},
		{Spec{Algorithm: TokenBucket, Limit: 1, Window: MinWindow - 1}, "window", "from 1ms"},
		{Spec{Algorithm: TokenBucket, Limit: 1, Window: MaxWindow + 1}, "window", "100 years"},
		{Spec{Algorithm: TokenBucket, Limit: 1, Window: -minute}, "window", "from 1ms"},
		{Spec{Algorithm: TokenBucket, Limit: 0, Window: 0}, "window", "from 1ms"},
		{Spec{Algorithm: FixedWindow, Limit: 1, Window: minute, Calendar: CalendarDay}, "window", "one of them"},
		{Spec{Algorithm: FixedWindow, Limit: 1, Calendar: 3}, "window", "day, month"},
		{Spec{Algorithm: TokenBucket, Limit: 1, Calendar: CalendarDay}, "window", "24h"},
		{Spec{Algorithm: SlidingWindowCounter, Limit: 1, Calendar: CalendarMonth}, "window", "duration"},
		{Spec{Algorithm: FixedWindow, Limit: 1, Window: minute, Timezone: "Europe/Berlin"}, "timezone", "day or month"},
		{Spec{Algorithm: FixedWindow, Limit: 1, Calendar: CalendarDay, Timezone: "Europe/Atlantis"}, "timezone", "Europe/Berlin"},
		{Spec{Algorithm: FixedWindow, Limit: 1, Calendar: CalendarDay, Timezone: "Local"}, "timezone", "IANA"},
		{Spec{Algorithm: FixedWindow, Limit: 1, Calendar: CalendarDay, Timezone: "../../etc/passwd"}, "timezone", "IANA"},
		{Spec{Algorithm: FixedWindow, Limit: 1, Calendar: CalendarDay, Timezone: strings.Repeat("x", 1000)}, "timezone", "IANA"},
		{Spec{Algorithm: TokenBucket, Limit: 1, Window: minute, Burst: -1}, "burst", "from 0"},
		{Spec{Algorithm: LeakyBucket, Limit: 1, Window: minute, Burst: MaxLimit}, "burst", "9007199254740990"},
		{Spec{Algorithm: TokenBucket, Limit: 1, Window: minute, Burst: math.MaxInt64}, "burst", "from 0"},
		{Spec{Algorithm: FixedWindow, Limit: 1, Window: minute, Burst: 1}, "burst", "token_bucket"},
		{Spec{Algorithm: SlidingWindowLog, Limit: 1, Window: minute, Burst: 1}, "burst", "token_bucket"},
		{Spec{Algorithm: TokenBucket, Limit: 1, Window: MaxWindow, Burst: 2}, "burst", "smaller"},
		{Spec{Algorithm: LeakyBucket, Limit: 1, Window: MaxWindow, Burst: 1}, "burst", "smaller"},
		{Spec{Algorithm: TokenBucket, Limit: 1, Window: time.Hour, Burst: MaxLimit - 1}, "burst", "smaller"},
		{Spec{Algorithm: TokenBucket, Limit: 1, Window: minute, Police: true}, "delay", "leaky_bucket"},
		{Spec{Algorithm: TokenBucket, Limit: 1, Window: minute, Durability: 3}, "durability", "auto, sync or none"},
	}
	for _, c := range cases {
		_, err := NewRule(c.spec)
		var bad *SpecError
		if !errors.As(err, &bad) {
			t.Errorf("%+v: error %v, want a *SpecError", c.spec, err)
			continue
		}
		if bad.Field != c.field || !strings.Contains(bad.Problem, c.right) || len(bad.Problem) > 300 {
			t.Errorf("%+v: %q, want field %q and %q", c.spec, err, c.field, c.right)
		}
	}
}

func TestNewRuleAccepts(t *testing.T) {
	cases := []struct {
		spec     Spec
		capacity int64
		seconds  int64
	}{
		{Spec{Algorithm: TokenBucket, Limit: 100, Window: time.Minute}, 100, 60},
		{Spec{Algorithm: TokenBucket, Limit: 100, Window: time.Minute, Burst: 20}, 20, 60},
		{Spec{Algorithm: TokenBucket, Limit: 0, Window: time.Minute, Burst: 20}, 0, 60},
		{Spec{Algorithm: TokenBucket, Limit: MaxLimit, Window: MaxWindow}, MaxLimit, 3155760000},
		{Spec{Algorithm: TokenBucket, Limit: 1, Window: MaxWindow}, 1, 3155760000},
		{Spec{Algorithm: LeakyBucket, Limit: 10, Window: time.Second}, 1, 1},
		{Spec{Algorithm: LeakyBucket, Limit: 10, Window: time.Second, Burst: 5, Police: true}, 6, 1},
		{Spec{Algorithm: LeakyBucket, Limit: 0, Window: time.Second, Burst: 5}, 0, 1},
		{Spec{Algorithm: SlidingWindowLog, Limit: MaxLogLimit, Window: MinWindow}, MaxLogLimit, 0},
		{Spec{Algorithm: SlidingWindowCounter, Limit: MaxLimit, Window: 1500 * time.Millisecond}, MaxLimit, 1},
		{Spec{Algorithm: FixedWindow, Limit: 7, Calendar: CalendarDay}, 7, 86400},
		{Spec{Algorithm: FixedWindow, Limit: 7, Calendar: CalendarMonth, Timezone: "Europe/Berlin"}, 7, 30 * 86400},
		{Spec{Algorithm: FixedWindow, Limit: 7, Calendar: CalendarMonth, Timezone: "UTC"}, 7, 30 * 86400},
	}
	for _, c := range cases {
		r, err := NewRule(c.spec)
		if err != nil {
			t.Errorf("%+v: %v", c.spec, err)
			continue
		}
		if r.Capacity() != c.capacity || r.WindowSeconds(start) != c.seconds {
			t.Errorf("%+v: capacity %d, window %d s", c.spec, r.Capacity(), r.WindowSeconds(start))
		}
	}
}

// Specs that count alike are one rule; others are not.
func TestRuleID(t *testing.T) {
	same := [][2]Spec{
		{{Algorithm: TokenBucket, Limit: 100, Window: time.Minute}, {Algorithm: TokenBucket, Limit: 100, Window: time.Minute, Burst: 100}},
		{{Algorithm: TokenBucket, Limit: 0, Window: time.Minute}, {Algorithm: TokenBucket, Limit: 0, Window: time.Minute, Burst: 5}},
		{{Algorithm: FixedWindow, Limit: 1, Calendar: CalendarDay}, {Algorithm: FixedWindow, Limit: 1, Calendar: CalendarDay, Timezone: "UTC"}},
	}
	for _, p := range same {
		if a, b := mustRule(t, p[0]), mustRule(t, p[1]); a.ID() != b.ID() || a.Spec != b.Spec {
			t.Errorf("%+v and %+v are two rules", p[0], p[1])
		}
	}
	seen := map[RuleID]Spec{}
	for _, s := range []Spec{
		{Algorithm: TokenBucket, Limit: 100, Window: time.Minute},
		{Algorithm: TokenBucket, Limit: 101, Window: time.Minute},
		{Algorithm: TokenBucket, Limit: 100, Window: time.Hour},
		{Algorithm: TokenBucket, Limit: 100, Window: time.Minute, Burst: 1},
		{Algorithm: LeakyBucket, Limit: 100, Window: time.Minute},
		{Algorithm: LeakyBucket, Limit: 100, Window: time.Minute, Burst: 100},
		{Algorithm: LeakyBucket, Limit: 100, Window: time.Minute, Police: true},
		{Algorithm: FixedWindow, Limit: 100, Window: time.Minute},
		{Algorithm: FixedWindow, Limit: 100, Calendar: CalendarDay},
		{Algorithm: FixedWindow, Limit: 100, Calendar: CalendarMonth},
		{Algorithm: FixedWindow, Limit: 100, Calendar: CalendarMonth, Timezone: "Asia/Tokyo"},
		{Algorithm: TokenBucket, Limit: 100, Window: time.Minute, Durability: DurabilitySync},
		{Algorithm: TokenBucket, Limit: 100, Window: time.Minute, Durability: DurabilityNone},
	} {
		id := mustRule(t, s).ID()
		if other, ok := seen[id]; ok {
			t.Errorf("%+v and %+v have one id", s, other)
		}
		seen[id] = s
	}
	// Nodes of different versions must agree on it for ever.
	if id := mustRule(t, Spec{Algorithm: TokenBucket, Limit: 100, Window: time.Minute, Burst: 20}).ID(); id != 0xb333612763cba066 {
		t.Errorf("id is %#x", uint64(id))
	}
}

func TestEncode(t *testing.T) {
	s := Spec{Algorithm: FixedWindow, Limit: 5, Calendar: CalendarMonth, Timezone: "Etc/GMT+5"}
	want := `{"algorithm":"fixed_window","limit":5,"calendar":"month","timezone":"Etc/GMT+5"}`
	if got := string(s.Encode()); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// Every rule goes over the wire and comes back the same.
func TestSpecRoundTrip(t *testing.T) {
	everyAlgorithm(t, func(t *rapid.T, x *subject) {
		sent := x.rule.Encode()
		got, err := ParseSpec(sent)
		if err != nil || got != x.rule.Spec {
			t.Fatalf("sent %s, got %+v, %v", sent, got, err)
		}
		r, err := NewRule(got)
		if err != nil || r.ID() != x.rule.ID() {
			t.Fatalf("sent rule %x, got %x, %v", x.rule.ID(), r.ID(), err)
		}
	})
}

func TestParseSpecRefuses(t *testing.T) {
	for _, data := range []string{
		``, `{}`, `null`, `[]`, `0`, `"token_bucket"`,
		`{"algorithm":"token_bucket","limit":1,"window":1000000000} `,
		`{"algorithm":"token_bucket","limit":1,"window":1000000000}{}`,
		`{"algorithm":"token_bucket","limit":1,"limit":2,"window":1000000000}`,
		`{"algorithm":"token_bucket","Limit":1,"window":1000000000}`,
		`{"limit":1,"algorithm":"token_bucket","window":1000000000}`,
		`{"algorithm":"token_bucket","limit":1,"window":1000000000,"burst":0}`,
		`{"algorithm":"token_bucket","limit":1,"window":1000000000,"shadow":true}`,
		`{"algorithm":"token_bucket","limit":1e2,"window":1000000000}`,
		`{"algorithm":"token_bucket","limit":1.5,"window":1000000000}`,
		`{"algorithm":"token_bucket","limit":99999999999999999999,"window":1000000000}`,
		`{"algorithm":"token_bucket","limit":"1","window":1000000000}`,
		`{"algorithm":"bucket","limit":1,"window":1000000000}`,
		`{"algorithm":"","limit":1,"window":1000000000}`,
		`{"algorithm":1,"limit":1,"window":1000000000}`,
		`{"algorithm":"fixed_window","limit":1,"calendar":"year"}`,
		`{"algorithm":"token_bucket","limit":1,"window":1000000000,"durability":"auto"}`,
		`{"algorithm":"token_bucket","limit":1,"window":1000000000,"durability":"always"}`,
		`{"algorithm":"token_bucket","limit":1,"window":1000000000,"durability":""}`,
		`{"algorithm":"token_bucket","limit":1,"window":1000000000,"durability":1}`,
		`{"algorithm":"token_bucket","limit":1,"durability":"sync","window":1000000000}`,
		`{"algorithm":"fixed_window","limit":1,"calendar":"day","timezone":"` + strings.Repeat("x", MaxSpecBytes) + `"}`,
	} {
		if s, err := ParseSpec([]byte(data)); err == nil {
			t.Errorf("%s: accepted as %+v", data, s)
		}
	}
}

func TestNamesRoundTrip(t *testing.T) {
	for _, a := range algorithms() {
		if got, err := ParseAlgorithm(a.String()); got != a || err != nil {
			t.Errorf("%v became %v, %v", a, got, err)
		}
	}
	for _, c := range []Calendar{CalendarDay, CalendarMonth} {
		if got, err := ParseCalendar(c.String()); got != c || err != nil {
			t.Errorf("%v became %v, %v", c, got, err)
		}
	}
	for _, f := range []OnFailure{FailLocal, FailAllow, FailDeny} {
		if got, err := ParseOnFailure(f.String()); got != f || err != nil {
			t.Errorf("%v became %v, %v", f, got, err)
		}
	}
	for _, err := range []error{second(ParseAlgorithm("gcra")), second(ParseCalendar("")), second(ParseOnFailure("open"))} {
		var bad *SpecError
		if !errors.As(err, &bad) || !strings.Contains(bad.Problem, "use ") {
			t.Errorf("%v does not say what to use", err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// Whatever a peer sends, what is accepted is canonical, and the rule that it
// makes can count.
func FuzzParseSpec(f *testing.F) {
	f.Add([]byte(`{"algorithm":"token_bucket","limit":100,"window":60000000000,"burst":20}`))
	f.Add([]byte(`{"algorithm":"leaky_bucket","limit":9007199254740991,"window":1000000,"burst":3,"police":true}`))
	f.Add([]byte(`{"algorithm":"fixed_window","limit":5,"calendar":"day","timezone":"Europe/Berlin"}`))
	f.Add([]byte(`{"algorithm":"sliding_window_log","limit":1000000,"window":3155760000000000000}`))
	f.Add([]byte(`{"algorithm":"sliding_window_counter","limit":0,"window":-1}`))
	f.Add([]byte(`{"algorithm":"token_bucket","limit":100,"window":60000000000,"durability":"sync"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := ParseSpec(data)
		if err != nil {
			return
		}
		if string(s.Encode()) != string(data) {
			t.Fatalf("%q became %q", data, s.Encode())
		}
		r, err := NewRule(s)
		if err != nil {
			return
		}
		state, v := r.Take(State{}, start, max(1, r.Capacity()))
		if v.Allowed != (r.Capacity() > 0) || v.Remaining != 0 || v.ResetAfter < 0 {
			t.Fatalf("%q: all of %d: %s", data, r.Capacity(), brief(v))
		}
		if _, v = r.Take(state, start, 1); v.Allowed || r.Capacity() > 0 && v.RetryAfter <= 0 {
			t.Fatalf("%q: one more: %s", data, brief(v))
		}
	})
}
