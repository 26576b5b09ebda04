package report

import (
	"bytes"
	"strings"
	"testing"

	"github.com/ringlimit/ringlimit/chaos/history"
	"github.com/ringlimit/ringlimit/chaos/judge"
)

const second = int64(1e9)

func TestSeries(t *testing.T) {
	h := history.New()
	for i := range int64(100) { // ten a second
		h.Add(history.Record{Call: i * second / 10, Return: i*second/10 + second/100, Source: history.Owner, Allowed: true})
	}
	h.Add(history.Record{Call: 9 * second, Return: 9*second + second/2, Source: history.Fallback})
	h.Sample(history.Sample{At: second, Node: 3, Members: 2, Memory: 5 << 20})
	for _, e := range []history.Event{
		{At: 1, Kind: history.Started, Node: 3},
		{At: 2 * second, Kind: history.Paused, Node: 3},
		{At: 3 * second, Kind: history.Resumed, Node: 3},
		{At: 5 * second, Kind: history.Killed, Node: 3},
		{At: 6 * second, Kind: history.Cut, Node: history.NoNode},
		{At: 7 * second, Kind: history.Exited, Node: 3},
	} {
		h.Mark(e)
	}
	s := NewSeries(h)
	checks, unanswered := 0.0, 0.0
	for i := range s.At {
		checks += s.Checks[i] * shortest.Seconds()
		unanswered += s.Unanswered[i] * shortest.Seconds()
	}
	if checks < 100.9 || checks > 101.1 || unanswered < .9 || unanswered > 1.1 {
		t.Errorf("%v checks, %v of them unanswered; want 101, 1", checks, unanswered)
	}
	if p := s.P50[0]; p == nil || *p < 9 || *p > 11 {
		t.Errorf("p50 is %v, want 10 ms", p)
	}
	if len(s.Nodes) != 1 || s.Nodes[0].Name != "node-3" || s.Nodes[0].Members[0] != 2 || s.Nodes[0].Memory[0] != 5 {
		t.Errorf("nodes are %+v", s.Nodes)
	}
	want := []Band{{2, 3, "SIGSTOP "}, {5, 7, "SIGKILL "}, {6, 9.91, "cut "}}
	if len(s.Bands) != 3 || s.Bands[0] != want[0] || s.Bands[1] != want[1] || s.Bands[2] != want[2] {
		t.Errorf("bands are %+v, want %+v", s.Bands, want)
	}
	if len(s.Events) != 4 {
		t.Errorf("events are %+v", s.Events)
	}
}

func TestPage(t *testing.T) {
	promised := 10.0
	runs := []Run{
		{Name: "one", Held: false, Stuck: "</script><b>", Lines: []judge.Line{{Name: "extra", Promised: &promised, Measured: 12.5, Unit: "ms", Note: "<i>"}}, Series: NewSeries(history.New())},
		{Name: "two", Skipped: "no privileges"},
	}
	var page bytes.Buffer
	if err := Write(&page, "a title", runs); err != nil {
		t.Fatal(err)
	}
	text := page.String()
	for _, want := range []string{"<title>a title</title>", "1 broken", "1 skipped", "10.0 ms", "12.5 ms", "-2.5 ms", "&lt;i&gt;", "&lt;/script&gt;", "no privileges", `data-run="0"`} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if _, data, ok := strings.Cut(text, "const runs ="); !ok || strings.Contains(strings.SplitN(data, "\n", 2)[0], ":null") {
		t.Errorf("the page's script expects lists, also where nothing happened")
	}
	for _, bad := range []string{"src=", "https://cdn", "ZgotmplZ", "<i>"} {
		if before, _, ok := strings.Cut(text[:strings.Index(text, "<script>")], bad); ok {
			t.Errorf("the page has %q after %.80q", bad, before[max(0, len(before)-80):])
		}
	}
}
