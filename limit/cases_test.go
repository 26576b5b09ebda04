package limit

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// transcript plays "at op cost" lines against a fresh counter and returns the
// verdicts, one each. Times are after start.
func transcript(t *testing.T, r *Rule, script string) []string {
	t.Helper()
	var s State
	var got []string
	for line := range strings.Lines(strings.TrimSpace(script)) {
		at, op, cost := parseLine(t, line)
		now := start + int64(at)
		var v Verdict
		switch op {
		case "take":
			s, v = r.Take(s, now, cost)
		case "peek":
			v = r.Peek(s, now, cost)
		case "refund":
			s, v = r.Refund(s, now, cost)
		default:
			t.Fatalf("no operation in %q", line)
		}
		got = append(got, brief(v))
	}
	return got
}

func parseLine(t *testing.T, line string) (at time.Duration, op string, cost int64) {
	t.Helper()
	f := strings.Fields(line)
	if len(f) < 3 {
		t.Fatalf("%q is not \"at op cost\"", line)
	}
	at, err := time.ParseDuration(f[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, digit := range strings.TrimPrefix(f[2], "-") {
		cost = 10*cost + int64(digit-'0')
	}
	if strings.HasPrefix(f[2], "-") {
		cost = -cost
	}
	return at, f[1], cost
}

// expected are the parts of the lines behind "->".
func expected(script string) []string {
	var want []string
	for line := range strings.Lines(strings.TrimSpace(script)) {
		_, after, _ := strings.Cut(line, "->")
		want = append(want, strings.TrimSpace(after))
	}
	return want
}

func play(t *testing.T, s Spec, script string) {
	t.Helper()
	got, want := transcript(t, mustRule(t, s), script), expected(script)
	for i := range got {
		if got[i] != want[i] {
			line := slices.Collect(strings.Lines(strings.TrimSpace(script)))[i]
			t.Errorf("%v: %s\n  got %q", s.Algorithm, strings.TrimSpace(line), got[i])
		}
	}
}

// per is the rule that all algorithms have in common.
func per(a Algorithm, limit int64, window time.Duration) Spec {
	s := Spec{Algorithm: a, Limit: limit, Window: window}
	if a == LeakyBucket && limit > 0 {
		s.Burst, s.Police = limit-1, true
	}
	return s
}

// Faults that users of other limiters reported. Each holds for every algorithm.
func TestCasesOfAllAlgorithms(t *testing.T) {
	cases := []struct {
		name   string
		limit  int64
		window time.Duration
		script string
	}{
		{"A1 a peek takes nothing", 5, time.Hour, `
			0s peek 1 -> yes 5
			0s take 1 -> yes 4
			` + strings.Repeat("0s peek 1 -> yes 4\n", 100)},
		{"A2 a cost under one takes and mints nothing", 5, time.Hour, `
			0s take 2 -> yes 3
			0s take 0 -> never 3
			0s take -1 -> never 3
			0s peek -9223372036854775807 -> never 3
			0s refund -2 -> yes 3
			0s refund 0 -> yes 3
			0s take 3 -> yes 0`},
		{"A3 a refund gives back", 5, time.Hour, `
			0s take 5 -> yes 0
			0s refund 1 -> yes 1
			0s take 1 -> yes 0`},
		{"A3 but never above the limit", 5, time.Hour, `
			0s take 2 -> yes 3
			0s refund 10 -> yes 5
			0s take 5 -> yes 0
			0s refund 9007199254740991 -> yes 5
			0s refund 1 -> yes 5`},
		{"A4 a cost above the limit", 10, time.Minute, `
			0s take 5 -> yes 5
			0s take 100 -> never 5
			0s take 5 -> yes 0`},
		{"A5 is never admitted", 10, time.Minute, `
			0s take 11 -> never 10
			0s peek 11 -> never 10
			0s take 10 -> yes 0
			0s take 11 -> never 0`},
		{"A8 however small the bucket", 1, time.Minute, `
			0s take 2 -> never 1
			0s take 1 -> yes 0`},
		{"B10 a limit of 0 denies all", 0, time.Minute, `
			0s take 1 -> never 0
			0s peek 1 -> never 0
			0s refund 1 -> yes 0
			1h take 1 -> never 0`},
		{"G53 what remains counts down to 0", 3, time.Hour, `
			0s take 1 -> yes 2
			0s take 1 -> yes 1
			0s take 1 -> yes 0
			0s peek 1 -> no 0 in WAIT
			0s peek 1 -> no 0 in WAIT`},
		{"D31 the same moment is no reason to count once", 30, time.Minute, `
			0s take 1 -> yes 29
			` + countdown(28, 10)},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			for _, a := range algorithms() {
				play(t, per(a, c.limit, c.window), strings.ReplaceAll(c.script, "WAIT", firstWait(a)))
			}
		})
	}
}

// firstWait is after 3 of 3 an hour were taken at the start of a window.
func firstWait(a Algorithm) string {
	switch a {
	case TokenBucket, LeakyBucket:
		return "20m0s"
	case SlidingWindowCounter:
		return "1h20m0s"
	}
	return "1h0m0s"
}

func countdown(from, to int) string {
	var b strings.Builder
	for ; from >= to; from-- {
		b.WriteString("0s take 1 -> yes " + string(rune('0'+from/10)) + string(rune('0'+from%10)) + "\n")
	}
	return strings.ReplaceAll(b.String(), "yes 0", "yes ")
}

// Faults that users of other limiters reported, one algorithm each.
func TestCases(t *testing.T) {
	cases := []struct {
		name   string
		spec   Spec
		script string
	}{
		{"B12 golang/go#34861: 10 in 13 s, exactly 1.3 s later", Spec{Algorithm: TokenBucket, Limit: 10, Window: 13 * time.Second, Burst: 1}, `
			0s           take 1 -> yes 0
			1.299999999s take 1 -> no 0 in 1ns
			1.3s         take 1 -> yes 0
			2.6s         take 1 -> yes 0`},
		{"B13 golang/go#46579: 1 an hour", Spec{Algorithm: TokenBucket, Limit: 1, Window: time.Hour}, `
			0s take 1 -> yes 0
			1m take 1 -> no 0 in 59m0s
			1h take 1 -> yes 0`},
		{"B15 seastar#1722: half a token short", Spec{Algorithm: TokenBucket, Limit: 1000, Window: time.Second, Burst: 1}, `
			0s    take 1 -> yes 0
			500us take 1 -> no 0 in 500µs`},
		{"B17 go-limiter#29: 65,535 a second, one each 100 ms", Spec{Algorithm: FixedWindow, Limit: 65_535, Window: time.Second}, `
			0ms    take 1 -> yes 65534
			100ms  take 1 -> yes 65533
			200ms  take 1 -> yes 65532
			300ms  take 1 -> yes 65531
			900ms  take 1 -> yes 65530
			1000ms take 1 -> yes 65534`},
		{"B17 a bucket has it all again at once", Spec{Algorithm: TokenBucket, Limit: 65_535, Window: time.Second}, `
			0ms   take 1 -> yes 65534
			100ms take 1 -> yes 65534
			200ms take 1 -> yes 65534`},
		{"B18 uber-go/ratelimit#119: idle for 30 s", Spec{Algorithm: TokenBucket, Limit: 1, Window: time.Second}, `
			0s    take 1 -> yes 0
			30s   take 1 -> yes 0
			30s   take 1 -> no 0 in 1s
			31s   take 1 -> yes 0
			31.5s take 1 -> no 0 in 500ms`},
		{"D25 a boundary lets a fixed window admit twice", Spec{Algorithm: FixedWindow, Limit: 5, Window: time.Minute}, `
			59s take 5 -> yes 0
			59s take 1 -> no 0 in 1s
			60s take 5 -> yes 0
			60s take 1 -> no 0 in 1m0s`},
		{"D25 but not a log", Spec{Algorithm: SlidingWindowLog, Limit: 5, Window: time.Minute}, `
			59s take 5 -> yes 0
			60s take 5 -> no 0 in 59s
			1m58.999999999s take 1 -> no 0 in 1ns
			1m59s take 5 -> yes 0`},
		{"D25 nor a sliding counter", Spec{Algorithm: SlidingWindowCounter, Limit: 5, Window: time.Minute}, `
			59s take 5 -> yes 0
			60s take 5 -> no 0 in 1m0s
			60s take 1 -> no 0 in 12s
			72s take 1 -> yes 0`},
		{"D27 axonhub#1567: the window before still counts", Spec{Algorithm: SlidingWindowCounter, Limit: 100, Window: time.Minute}, `
			30s take 100 -> yes 0
			60s peek 1 -> no 0 in 600ms
			75s peek 1 -> yes 25
			90s peek 1 -> yes 50`},
		{"D29 two windows later nothing does", Spec{Algorithm: SlidingWindowCounter, Limit: 100, Window: time.Minute}, `
			30s  take 100 -> yes 0
			120s peek 1 -> yes 100
			10h  take 100 -> yes 0`},
		{"D33 envoyproxy#439: 30 s", Spec{Algorithm: FixedWindow, Limit: 1, Window: 30 * time.Second}, `
			10s take 1 -> yes 0
			20s take 1 -> no 0 in 10s
			30s take 1 -> yes 0`},
		{"D33 5 min", Spec{Algorithm: FixedWindow, Limit: 1, Window: 5 * time.Minute}, `
			4m take 1 -> yes 0
			4m take 1 -> no 0 in 1m0s`},
		{"D33 2 h", Spec{Algorithm: FixedWindow, Limit: 1, Window: 2 * time.Hour}, `
			30m take 1 -> yes 0
			30m take 1 -> no 0 in 1h30m0s`},
		{"H62 gubernator#118: a leaky bucket leaks though hits never pause", Spec{Algorithm: LeakyBucket, Limit: 10, Window: 10 * time.Second, Burst: 9, Police: true}, `
			0s take 10 -> yes 0
			0.5s take 1 -> no 0 in 500ms
			1s take 1 -> yes 0
			1.5s take 1 -> no 0 in 500ms
			2s take 1 -> yes 0
			9s take 1 -> yes 6
			10s take 1 -> yes 6
			11s take 1 -> yes 6`},
		{"H64 all come back at once: the bucket admits what it has", Spec{Algorithm: TokenBucket, Limit: 2, Window: time.Second}, `
			0s take 2 -> yes 0
			0s take 1 -> no 0 in 500ms
			0s take 1 -> no 0 in 500ms
			500ms take 1 -> yes 0
			500ms take 1 -> no 0 in 500ms
			500ms take 1 -> no 0 in 500ms`},
		{"a leaky bucket queues", Spec{Algorithm: LeakyBucket, Limit: 10, Window: time.Second, Burst: 2}, `
			0ms   take 1 -> yes 2
			0ms   take 1 -> yes 1 delay 100ms
			0ms   peek 1 -> yes 1 delay 200ms
			0ms   take 1 -> yes 0 delay 200ms
			0ms   take 1 -> no 0 in 100ms
			50ms  take 1 -> no 0 in 50ms
			100ms take 1 -> yes 0 delay 200ms
			1s    take 3 -> yes 0`},
		{"and without a queue it only paces", Spec{Algorithm: LeakyBucket, Limit: 10, Window: time.Second}, `
			0ms   take 1 -> yes 0
			99ms  take 1 -> no 0 in 1ms
			100ms take 1 -> yes 0`},
		{"a third of a unit is kept exactly", Spec{Algorithm: TokenBucket, Limit: 3, Window: time.Second, Burst: 1}, `
			0s           take 1 -> yes 0
			0.333333333s take 1 -> no 0 in 1ns
			0.333333334s take 1 -> yes 0
			0.666666667s take 1 -> no 0 in 1ns
			0.666666668s take 1 -> yes 0`},
		{"a refund shows the time as a take does", Spec{Algorithm: TokenBucket, Limit: 10, Window: 10 * time.Second}, `
			0s take 5 -> yes 5
			3s refund 10 -> yes 10
			0s take 10 -> yes 0
			3s take 1 -> no 0 in 1s`},
		{"a log gives back the newest first", Spec{Algorithm: SlidingWindowLog, Limit: 3, Window: time.Minute}, `
			0s  take 1 -> yes 2
			20s take 1 -> yes 1
			40s take 1 -> yes 0
			40s refund 2 -> yes 2
			40s take 2 -> yes 0
			40s take 1 -> no 0 in 20s
			60s take 1 -> yes 0`},
		{"a refund is for the window that is open", Spec{Algorithm: FixedWindow, Limit: 3, Window: time.Minute}, `
			0s  take 3 -> yes 0
			60s refund 3 -> yes 3
			59s take 1 -> no 0 in 1s
			60s take 3 -> yes 0`},
		{"a counter's past window keeps what it was charged", Spec{Algorithm: SlidingWindowCounter, Limit: 4, Window: time.Minute}, `
			0s  take 4 -> yes 0
			90s refund 4 -> yes 2
			90s take 2 -> yes 0
			90s refund 4 -> yes 2`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { play(t, c.spec, c.script) })
	}
}

// B19: golang/go#45245. 10 a second, capacity 1: of 5,000 that ask within a
// second at most 11 get in.
func TestB19ManyAskers(t *testing.T) {
	r := mustRule(t, Spec{Algorithm: TokenBucket, Limit: 10, Window: time.Second, Burst: 1})
	var s State
	admitted := 0
	for i := range int64(5001) {
		var v Verdict
		if s, v = r.Take(s, start+i*int64(time.Second)/5000, 1); v.Allowed {
			admitted++
		}
	}
	if admitted != 11 {
		t.Errorf("%d admitted, want 11", admitted)
	}
}

// F45: ulule/limiter#230. One key under two rules with other windows: two
// counters, and neither rule keeps anything of its own.
func TestF45RulesShareNothing(t *testing.T) {
	for _, a := range algorithms() {
		minute, hour := mustRule(t, per(a, 2, time.Minute)), mustRule(t, per(a, 3, time.Hour))
		one, _ := minute.Take(State{}, start, 2)
		two, v := hour.Take(State{}, start, 1)
		if brief(v) != "yes 2" {
			t.Errorf("%v: %s, want 2 of 3", a, brief(v))
		}
		if v := minute.Peek(one, start, 1); v.Allowed {
			t.Errorf("%v: %s, want all used", a, brief(v))
		}
		if v := hour.Peek(two, start, 1); brief(v) != "yes 2" {
			t.Errorf("%v: %s, want 2 of 3 still", a, brief(v))
		}
	}
}

// A2: what no rule could judge does not get as far as a rule.
func TestA2RequestCost(t *testing.T) {
	for cost, ok := range map[int64]bool{0: true, 1: true, MaxCost: true, -1: false, MaxCost + 1: false} {
		req := Request{Key: "k", Cost: cost}
		if err := req.Validate(); (err == nil) != ok {
			t.Errorf("cost %d: %v", cost, err)
		}
	}
}
