package judge

import (
	"strings"
	"testing"
	"time"

	"github.com/ringlimit/ringlimit/chaos/history"
	"github.com/ringlimit/ringlimit/chaos/keyspace"
	"github.com/ringlimit/ringlimit/chaos/scenario"
)

const ms = int64(time.Millisecond)

// class is ten keys of a rule whose window never ends in a test.
func class(algorithm string, limit int64) scenario.Class {
	return scenario.Class{Name: "c", Algorithm: algorithm, Limit: limit, Window: 100 * 365 * 24 * time.Hour, OnFailure: "deny", Durability: "auto", Keys: 10}
}

func newCase(c scenario.Class) *Case {
	return &Case{Keys: keyspace.New([]scenario.Class{c}), History: history.New()}
}

func verdict(key uint32, at int64, allowed bool, source history.Source) history.Record {
	return history.Record{Call: at, Return: at + ms, Key: key, Cost: 1, Allowed: allowed, Source: source}
}

func (c *Case) admit(key uint32, n int) {
	for i := range n {
		c.History.Add(verdict(key, int64(i)*ms, true, history.Owner))
	}
}

// find returns the one line whose name has all the parts.
func find(t *testing.T, lines []Line, parts ...string) *Line {
	t.Helper()
	for i := range lines {
		ok := true
		for _, p := range parts {
			ok = ok && strings.Contains(lines[i].Name, p)
		}
		if ok {
			return &lines[i]
		}
	}
	t.Fatalf("no line says %q in %+v", parts, lines)
	return nil
}

func expect(t *testing.T, l *Line, measured float64, broken bool) {
	t.Helper()
	if l.Measured != measured || l.Broken() != broken {
		t.Errorf("%s: measured %v, broken %v; want %v, %v", l.Name, l.Measured, l.Broken(), measured, broken)
	}
}

func TestExtraAdmissions(t *testing.T) {
	for _, tt := range []struct {
		name     string
		admitted int
		bounds   scenario.Bounds
		extra    float64
		broken   bool
	}{
		{"at the limit", 100, scenario.Bounds{}, 0, false},
		{"one more", 101, scenario.Bounds{}, 1, true},
		{"one more after a crash", 101, scenario.Bounds{Slack: 1}, 1, false},
		{"two more after a crash", 102, scenario.Bounds{Slack: 1}, 2, true},
		{"twice the limit, promised so", 200, scenario.Bounds{Extra: scenario.Share{Percent: 100}}, 100, false},
		{"and one more", 201, scenario.Bounds{Extra: scenario.Share{Percent: 100}}, 101, true},
		{"no bound", 999, scenario.Bounds{Extra: scenario.Share{Unbounded: true}}, 899, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newCase(class("sliding_window_log", 100))
			c.Bounds = tt.bounds
			c.admit(3, 7) // another key, far below
			c.admit(4, tt.admitted)
			expect(t, find(t, Judge(c), "extra admissions"), tt.extra, tt.broken)
		})
	}
}

// What on_failure admits is not an owner's verdict, and the reverse.
func TestFallbackApart(t *testing.T) {
	c := newCase(class("fixed_window", 2))
	c.admit(0, 2)
	c.History.Add(verdict(0, 0, true, history.Fallback))
	lines := Judge(c)
	expect(t, find(t, lines, "extra admissions"), 0, false)
	expect(t, find(t, lines, "on_failure: deny"), 1, true)
	expect(t, find(t, lines, "without an owner's verdict"), 1, true)

	local := class("fixed_window", 2)
	local.OnFailure = "local"
	c = newCase(local)
	for range 3 {
		c.History.Add(verdict(0, 0, true, history.Fallback))
	}
	expect(t, find(t, Judge(c), "on_failure: local"), 3, true)
}

func TestRefusedBelowTheLimit(t *testing.T) {
	for _, tt := range []struct {
		name      string
		algorithm string
		admitted  int
		unknown   int
		short     float64
	}{
		{"at the limit", "fixed_window", 10, 0, 0},
		{"one early", "fixed_window", 9, 0, 1},
		{"one that may have been charged", "fixed_window", 9, 1, 0},
		{"a bucket, one early", "token_bucket", 9, 0, 0},
		{"a bucket, two early", "token_bucket", 8, 0, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newCase(class(tt.algorithm, 10))
			c.admit(0, tt.admitted)
			for range tt.unknown {
				c.History.Add(history.Record{Key: 0, Cost: 1, Fault: history.Broken})
			}
			c.History.Add(verdict(0, 5*ms, false, history.Owner))
			expect(t, find(t, Judge(c), "refused below"), tt.short, tt.short > 0)
		})
	}
}

// A check that asked a node while it was killed or stopped excuses the others.
func TestExcused(t *testing.T) {
	c := newCase(class("fixed_window", 10))
	lost := func(node uint16, from, to int64) {
		c.History.Add(history.Record{Node: node, Call: from, Return: to, Cost: 1, Fault: history.Broken})
	}
	c.History.Mark(history.Event{At: 100, Kind: history.Killed, Node: 1})
	c.History.Mark(history.Event{At: 200, Kind: history.Ready, Node: 1})
	c.History.Mark(history.Event{At: 100, Kind: history.Terminate, Node: 2})
	lost(1, 50, 150)  // killed on it
	lost(1, 210, 220) // it was back
	lost(0, 50, 150)  // another node
	lost(2, 110, 120) // it was only told to go
	lines := Judge(c)
	expect(t, find(t, lines, "without an owner's verdict"), 3, true)
	expect(t, find(t, lines, "which was killed or stopped"), 1, false)
}

func TestNothingChecked(t *testing.T) {
	if !Broken(Judge(newCase(class("fixed_window", 10)))) {
		t.Error("a run without a check passed")
	}
}

func TestThawed(t *testing.T) {
	for _, tt := range []struct {
		name     string
		admitted int
		underWay int
		resumed  int64 // ms; it is stopped at 1000
		charged  float64
	}{
		{"all told", 10, 0, 8000, 0},
		{"one under way when it stopped", 9, 1, 8000, 0},
		{"one too many, though one was under way", 8, 1, 8000, 1},
		{"one that was charged on waking", 9, 0, 8000, 1},
		{"one that was charged late", 9, 0, 2000, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newCase(class("fixed_window", 10))
			c.Bounds.Thawed = true
			c.Bounds.Unanswered.Unbounded = true
			c.admit(0, tt.admitted)
			c.History.Mark(history.Event{At: 1000 * ms, Kind: history.Paused, Node: 1})
			c.History.Mark(history.Event{At: tt.resumed * ms, Kind: history.Resumed, Node: 1})
			for range tt.underWay {
				c.History.Add(history.Record{Key: 0, Cost: 1, Call: 999 * ms, Return: 1001 * ms, Source: history.Fallback})
			}
			c.History.Add( // asked while it was stopped: charged or not
				history.Record{Key: 0, Cost: 1, Call: 1500 * ms, Return: 1550 * ms, Source: history.Fallback},
				verdict(0, 9000*ms, false, history.Owner))
			expect(t, find(t, Judge(c), "process that woke"), tt.charged, tt.charged > 0)
		})
	}
}

func TestDark(t *testing.T) {
	type check struct {
		key      uint32
		node     uint16
		from, to int64 // ms; the kill is at 1000
		source   history.Source
	}
	for _, tt := range []struct {
		name   string
		checks []check
		want   float64
	}{
		{"light at once", []check{{4, 0, 1001, 1002, history.Owner}}, 0},
		{"a fallback", []check{{4, 0, 1010, 1060, history.Fallback}, {4, 0, 1070, 1075, history.Owner}}, 60},
		{"under way, and answered late", []check{{4, 0, 990, 1101, history.Owner}}, 101},
		{"waited for in the dark", []check{{4, 0, 1010, 1060, history.Fallback}, {4, 0, 1050, 1090, history.Owner}}, 90},
		{"one after the other", []check{{4, 0, 1010, 1060, history.Fallback}, {4, 0, 1900, 1950, history.Fallback}}, 950},
		{"much later, for another reason", []check{{4, 0, 1010, 1060, history.Fallback}, {4, 0, 2500, 2550, history.Fallback}}, 60},
		{"another's key", []check{{5, 0, 1010, 1060, history.Fallback}}, 0},
		{"asked the dead", []check{{4, 1, 1010, 1060, history.None}}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newCase(class("fixed_window", 10))
			c.Bounds.Dark = 100 * time.Millisecond
			c.History.Mark(history.Event{At: 1000 * ms, Kind: history.Killed, Node: 1, Keys: []uint32{4}})
			for _, x := range tt.checks {
				c.History.Add(history.Record{Key: x.key, Node: x.node, Call: x.from * ms, Return: x.to * ms, Cost: 1, Source: x.source})
			}
			expect(t, find(t, Judge(c), "SIGKILL, longest"), tt.want, tt.want > 100)
		})
	}
}

func TestLives(t *testing.T) {
	c := newCase(class("fixed_window", 10))
	c.Bounds.Exit, c.Bounds.Ready = time.Second, time.Second
	mark := func(at int64, k history.Kind, node, code int) {
		c.History.Mark(history.Event{At: at * ms, Kind: k, Node: node, Code: code})
	}
	mark(1, history.Started, 0, 0)
	mark(501, history.Ready, 0, 0)
	mark(600, history.Terminate, 0, 0)
	mark(1700, history.Exited, 0, 3)
	mark(600, history.Killed, 1, 0)
	mark(601, history.Exited, 1, -1)
	mark(700, history.Exited, 2, 2)
	c.History.Mark(history.Event{At: 800 * ms, Kind: history.Started, Node: 3, Refused: true})
	mark(5000, history.Exited, 3, 2) // as it should: it counts for nothing here
	lines := Judge(c)
	expect(t, find(t, lines, "to readiness"), 500, false)
	expect(t, find(t, lines, "SIGTERM to exit"), 1100, true)
	expect(t, find(t, lines, "exit codes"), 1, true)
	expect(t, find(t, lines, "by themselves"), 1, true)
}

func TestResets(t *testing.T) {
	c := newCase(class("fixed_window", 10))
	c.Bounds.Resets, c.Moved = time.Second, 1001*time.Millisecond
	expect(t, find(t, Judge(c), "another time"), 1001, true)
}

// Batches are slow because they are large.
func TestLatencyOfSingleChecksOnly(t *testing.T) {
	c := newCase(class("fixed_window", 10))
	c.History.Add(
		history.Record{Call: 0, Return: 2 * ms, Cost: 1, Source: history.Owner},
		history.Record{Call: 0, Return: 900 * ms, Cost: 1, Source: history.Owner, Batched: true})
	if got := find(t, Judge(c), "latency, longest").Measured; got < 1.9 || got > 2.1 {
		t.Errorf("the longest latency is %v ms, want 2", got)
	}
}

func TestGrowth(t *testing.T) {
	c := newCase(class("fixed_window", 10))
	c.Bounds.Growth = scenario.Share{Percent: 20}
	for at := int64(0); at <= 100; at++ {
		c.History.Sample(history.Sample{At: at, Memory: 1000 + 5*at, Goroutines: 50, Files: 10})
	}
	lines := Judge(c)
	if l := find(t, lines, "growth of memory"); l.Measured < 20 || !l.Broken() {
		t.Errorf("memory grows by %v %%, broken: %v", l.Measured, l.Broken())
	}
	expect(t, find(t, lines, "growth of goroutines"), 0, false)
	expect(t, find(t, lines, "growth of file"), 0, false)
}

// A key is excused by what happened in its own life, and by nothing else.
func TestExtraByEvents(t *testing.T) {
	const life = 1000 * ms // is a time in the life of a key that is admitted 1,000 times and 12 beyond
	for _, tt := range []struct {
		name   string
		limit  int64
		events []history.Event
		want   float64
	}{
		{"nothing", 1000, nil, 12},
		{"a kill before, a pause after", 1000, []history.Event{
			{At: 1, Kind: history.Killed}, {At: 2 * life, Kind: history.Paused}, {At: 3 * life, Kind: history.Resumed}}, 12},
		{"a kill", 1000, []history.Event{{At: life, Kind: history.Killed}}, 2},
		{"a kill, and a pause that began before", 1000, []history.Event{
			{At: 1, Kind: history.Paused}, {At: life, Kind: history.Killed}, {At: life, Kind: history.Resumed}}, 0},
		{"a kill, of a limit below 100", 99, []history.Event{{At: life, Kind: history.Killed}}, 12},
		{"a cut", 99, []history.Event{{At: 550 * ms, Kind: history.Cut}, {At: 560 * ms, Kind: history.Healed}}, 0},
		{"a cut, healed long before", 99, []history.Event{{At: -2 * healing, Kind: history.Cut}, {At: 10*ms - healing, Kind: history.Healed}}, 12},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newCase(class("fixed_window", tt.limit))
			c.Bounds.Extra.ByEvents = true
			for i := range tt.limit + 12 {
				c.History.Add(verdict(1, 500*ms+i*ms, true, history.Owner))
			}
			for _, e := range tt.events {
				c.History.Mark(e)
			}
			expect(t, find(t, Judge(c), "beyond what happened"), tt.want, tt.want > 0)
		})
	}
}
