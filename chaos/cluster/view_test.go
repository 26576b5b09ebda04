package cluster

import (
	"strings"
	"testing"

	"github.com/ringlimit/ringlimit/chaos/history"
)

func TestReadMetrics(t *testing.T) {
	got, err := readMetrics(strings.NewReader(`# HELP go_goroutines Number of goroutines that currently exist.
go_goroutines 53
process_open_fds 17
process_resident_memory_bytes 3.1457280e+07
ringlimit_counters 1000
ringlimit_members 3
ringlimit_checks_total{rule="default/log",source="owner",verdict="allowed"} 7
`))
	want := history.Sample{Members: 3, Counters: 1000, Memory: 30 << 20, Goroutines: 53, Files: 17}
	if err != nil || got != want {
		t.Errorf("sample is %+v, %v; want %+v", got, err, want)
	}
}

func TestServing(t *testing.T) {
	got := serving([]Member{{ID: "node-1", State: "serving"}, {ID: "node-0", State: "draining"}})
	if strings.Join(got, " ") != "node-0 (draining) node-1" {
		t.Errorf("members are %v", got)
	}
}

func TestLoopbackPlaces(t *testing.T) {
	l, err := NewLoopback()
	if err != nil {
		t.Skip(err)
	}
	a, _ := l.Place(0)
	b, _ := l.Place(15)
	if a.Host == b.Host || !strings.HasPrefix(a.Host, "127.") || a.Doors != a.Host {
		t.Errorf("places are %+v and %+v", a, b)
	}
}
