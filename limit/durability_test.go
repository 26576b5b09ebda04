package limit

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestDurabilityNames(t *testing.T) {
	for name, d := range map[string]Durability{"auto": DurabilityAuto, "sync": DurabilitySync, "none": DurabilityNone} {
		if got, err := ParseDurability(name); got != d || err != nil || d.String() != name {
			t.Errorf("%q became %d, %v and %q", name, got, err, d)
		}
	}
	for _, name := range []string{"", "Sync", "always", "auto "} {
		_, err := ParseDurability(name)
		var bad *SpecError
		if !errors.As(err, &bad) || bad.Field != "durability" || !strings.Contains(bad.Problem, "auto, sync or none") {
			t.Errorf("%q: error %v", name, err)
		}
	}
}

func TestSlack(t *testing.T) {
	for d, want := range map[Durability]map[int64]int64{
		DurabilityAuto: {0: 0, 1: 0, 99: 0, 100: 1, 199: 1, 200: 2, 1_000_000: 10_000, MaxLimit: MaxLimit / 100},
		DurabilitySync: {0: 0, 99: 0, 100: 0, 1_000_000: 0, MaxLimit: 0},
		DurabilityNone: {0: -1, 99: -1, 100: -1, 1_000_000: -1, MaxLimit: -1},
	} {
		for limit, slack := range want {
			if got := (Spec{Limit: limit, Durability: d}).Slack(); got != slack {
				t.Errorf("%v, limit %d: %d; want %d", d, limit, got, slack)
			}
		}
	}
}

// A rule that leaves durability at its default has the id that it had before
// there was one.
func TestDurabilityIsEncodedUnlessAuto(t *testing.T) {
	for d, want := range map[Durability]string{
		DurabilityAuto: `{"algorithm":"token_bucket","limit":100,"window":60000000000}`,
		DurabilitySync: `{"algorithm":"token_bucket","limit":100,"window":60000000000,"durability":"sync"}`,
		DurabilityNone: `{"algorithm":"token_bucket","limit":100,"window":60000000000,"durability":"none"}`,
	} {
		sent := Spec{Algorithm: TokenBucket, Limit: 100, Window: time.Minute, Durability: d}
		if got := string(sent.Encode()); got != want {
			t.Errorf("%v: got  %s\nwant %s", d, got, want)
		}
		if got, err := ParseSpec([]byte(want)); err != nil || got != sent {
			t.Errorf("%s: got %+v, %v", want, got, err)
		}
	}
}

// No rule is longer on the wire than what its reader takes.
func TestTheLongestSpecFits(t *testing.T) {
	longest := Spec{
		Algorithm: SlidingWindowCounter, Limit: MaxLimit, Window: MaxWindow, Calendar: CalendarMonth,
		Timezone: strings.Repeat("x", maxTimezoneLen), Burst: MaxLimit - 1, Police: true, Durability: DurabilityNone,
	}
	if n := len(longest.Encode()); n > MaxSpecBytes {
		t.Errorf("%d bytes; %d fit", n, MaxSpecBytes)
	}
	if got, err := ParseSpec(longest.Encode()); err != nil || got != longest {
		t.Errorf("got %+v, %v", got, err)
	}
}
