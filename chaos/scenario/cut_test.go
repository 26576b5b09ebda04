package scenario

import (
	"fmt"
	"strings"
	"testing"
)

const slow = `about: links are slow
nodes: 3
network: switch
counters:
  - {name: log, algorithm: sliding_window_log, limit: 100, window: 10m, keys: 4}
steps:
  - cut: {from: [0], to: [1, 2], delay: 20ms, jitter: 10ms}
  - heal: true
`

func TestReadDelay(t *testing.T) {
	s, err := Read("x.yaml", []byte(slow))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(*s.Steps[0].Cut), "{[0] [1 2] true  0 false 20ms 10ms}"; s.Net != Switched || got != want {
		t.Errorf("network %s, cut %s; want switch, %s", s.Net, got, want)
	}
}

func TestReadDelayErrors(t *testing.T) {
	for _, tt := range []struct{ old, new, want string }{
		{"switch", "namespaces", "x.yaml:7:41: steps[0].cut.delay: needs network: switch, the only one that can delay"},
		{"switch", "loopback", "steps[0].cut.delay: needs network: switch"},
		{"jitter: 10ms", "percent: 0", "x.yaml:7:56: steps[0].cut.percent: does not go with delay"},
		{"jitter: 10ms", "only: udp", "steps[0].cut.only: does not go with delay"},
		{"jitter: 10ms", "reject: true", "steps[0].cut.reject: does not go with delay"},
		{"jitter: 10ms", "jitter: 21ms", "x.yaml:7:55: steps[0].cut.jitter: is 21ms, more than the delay (20ms)"},
		{"jitter: 10ms", "jitter: -1ms", `steps[0].cut.jitter: is "-1ms"; it must be a duration up to 2s`},
		{"delay: 20ms, ", "", `steps[0].cut.delay: is ""; it must be a duration`},
		{"delay: 20ms", "delay: 3s", `steps[0].cut.delay: is "3s"; it must be a duration up to 2s`},
		{"[1, 2]", "[1, 16]", "x.yaml:7:30: steps[0].cut.to[1]: must be from 0 to 15, is 16"},
		{"[0]", "[-1]", "steps[0].cut.from[0]: must be from 0 to 15, is -1"},
	} {
		t.Run(tt.new, func(t *testing.T) {
			_, err := Read("x.yaml", []byte(strings.Replace(slow, tt.old, tt.new, 1)))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error is %v, want %q in it", err, tt.want)
			}
		})
	}
}
