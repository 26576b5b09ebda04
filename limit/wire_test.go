package limit

import (
	"bytes"
	"math"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// What a counter ships arrives as it was sent, one behind the other.
func TestShippedRoundTrip(t *testing.T) {
	everyShipped(t, func(t *rapid.T, x *subject) {
		var wire []byte
		var sent []Shipped
		for range rapid.IntRange(1, 4).Draw(t, "counters") {
			x.pass(t)
			x.use(t)
			w := x.rule.Ship(x.state, x.now)
			sent, wire = append(sent, w), AppendShipped(wire, &w)
		}
		for i := range sent {
			var got Shipped
			var err error
			if wire, err = CutShipped(wire, &got); err != nil || !reflect.DeepEqual(got, sent[i]) {
				t.Fatalf("%+v arrived as %+v, %v", sent[i], got, err)
			}
		}
		if len(wire) != 0 {
			t.Fatalf("%d bytes are left over", len(wire))
		}
	})
}

// How many bytes a usual counter takes on the wire.
func TestShippedIsSmall(t *testing.T) {
	for _, c := range []struct {
		spec Spec
		most int
	}{
		{Spec{Algorithm: TokenBucket, Limit: 100, Window: time.Minute}, 7},
		{Spec{Algorithm: FixedWindow, Limit: 100, Window: time.Minute}, 14},
		{Spec{Algorithm: SlidingWindowCounter, Limit: 100, Window: time.Minute}, 9},
	} {
		r := mustRule(t, c.spec)
		s, _ := r.Take(State{}, start+int64(7*time.Second), 10)
		w := r.Ship(s, start+int64(8*time.Second))
		if b := AppendShipped(nil, &w); len(b) > c.most {
			t.Errorf("%v: %d bytes; want at most %d", c.spec.Algorithm, len(b), c.most)
		}
	}
	if b := AppendShipped(nil, &Shipped{}); !bytes.Equal(b, []byte{0}) {
		t.Errorf("a fresh counter is % x", b)
	}
}

func TestCutShippedRefuses(t *testing.T) {
	log := Shipped{Log: []Stamp{{5, 1}, {3, 2}}}
	whole := AppendShipped(nil, &log)
	bad := map[string][]byte{
		"a later version":         {1 << 4},
		"nothing":                 {},
		"no A":                    {wireA},
		"B above int64":           append([]byte{wireB}, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1),
		"an empty log":            {wireLog, 0},
		"more stamps than fit":    {wireLog, 255, 255, 3, 1, 1},
		"a stamp from the future": {wireLog, 2, 1, 1, 2, 1},
	}
	for i := range whole {
		bad["cut short"+string(rune('0'+i))] = whole[:i]
	}
	for what, b := range bad {
		w := log
		if _, err := CutShipped(b, &w); err == nil || !reflect.DeepEqual(w, Shipped{}) {
			t.Errorf("%s: %+v, %v", what, w, err)
		}
	}
}

// Whatever claims to be a log, what is allocated is in proportion to what came.
func TestCutShippedAllocatesLittle(t *testing.T) {
	b := append([]byte{wireLog, 0xff, 0xff, 0x3c}, make([]byte, 100)...) // 999,935 stamps
	var w Shipped
	if n := testing.AllocsPerRun(100, func() { CutShipped(b, &w) }); n != 0 {
		t.Errorf("%v allocations for a log that is not there", n)
	}
}

// FuzzCutShipped: whatever comes off the wire is refused or can be sent on as it
// is, and no rule is harmed by it.
func FuzzCutShipped(f *testing.F) {
	for _, w := range []Shipped{
		{}, {A: -5, B: 7, C: 9}, {A: math.MinInt64, B: math.MaxInt64, C: math.MaxInt64},
		{Log: []Stamp{{math.MaxInt64, math.MaxInt64}, {5, 1}, {5, 0}, {0, 3}}},
	} {
		f.Add(AppendShipped(nil, &w))
	}
	var rules []*Rule
	for _, a := range algorithms() {
		rules = append(rules, mustRule(f, Spec{Algorithm: a, Limit: 7, Window: time.Second}), mustRule(f, Spec{Algorithm: a, Limit: 0, Window: MaxWindow}))
	}
	rules = append(rules, mustRule(f, Spec{Algorithm: FixedWindow, Limit: 7, Calendar: CalendarMonth, Timezone: "Africa/Cairo"}))
	f.Fuzz(func(t *testing.T, b []byte) {
		var w, again Shipped
		rest, err := CutShipped(b, &w)
		if err != nil {
			return
		}
		if len(w.Log) > len(b)/2 {
			t.Fatalf("%d stamps of %d bytes", len(w.Log), len(b))
		}
		if _, err := CutShipped(AppendShipped(nil, &w), &again); err != nil || !reflect.DeepEqual(w, again) || len(rest) >= len(b) {
			t.Fatalf("%+v became %+v, %v", w, again, err)
		}
		for _, r := range rules {
			own, _ := r.Take(State{}, start, 3)
			checkReceived(t, r, w, own, start+int64(time.Second/3))
		}
	})
}
