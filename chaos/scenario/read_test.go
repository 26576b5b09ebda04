package scenario

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const good = `about: something happens
nodes: 3
needs: 2
start: together
network: namespaces
serve: [--deadline=200ms]
files: 256
patience: 3s
hot: 90
counters:
  - {name: log, algorithm: sliding_window_log, limit: 100, window: 10m, keys: 4}
  - {name: bucket, algorithm: token_bucket, limit: 50, window: 1h, burst: 7, keys: 2, on_failure: deny, durability: sync}
steps:
  - load: {steady: 400, bursty: 100}
  - load: {}
  - fill: 60s
  - wait: 200ms
  - fresh_keys: true
  - settle: 20s
  - join: {count: 2, clock: 24h}
  - join: {count: 1, ready: false}
  - kill: owner_and_standby
  - terminate: {nodes: 1, wait: 20s}
  - pause: {node: any, for: 8s}
  - start: down
  - restart: {nodes: all, signal: KILL, down: 50ms, settle: 20s}
  - resets: note
  - cut: {from: [0], to: [1, 2], one_way: true, only: udp, percent: 30}
  - heal: true
  - join: {count: 1, alien: true}
  - flood: 90s
  - attack: {kind: slow_headers, nodes: all, connections: 900, for: 5s}
  - random: {for: 30m, pause: 2s, kinds: [kill, cut]}
  - repeat: {times: 20, steps: [{wait: 1s}]}
  - join: {count: 1, build: planted_ring, refused: it says why}
  - limit: {node: 3, counter: bucket, to: 49}
bounds: {extra: 1%, slack: 2, unanswered: any, homeless: 5%, dark: 1s, exit: 2s, resets: 3s, ready: 4s, thawed: true, growth: 20%}
`

func TestRead(t *testing.T) {
	s, err := Read("folder/good.yaml", []byte(good))
	if err != nil {
		t.Fatal(err)
	}
	if s.Name != "good" || s.Nodes != 3 || s.Needs != 2 || s.Start != Together || s.Net != Namespaces {
		t.Errorf("head is %+v", s)
	}
	if s.Client != (Client{3 * time.Second, 90}) {
		t.Errorf("client is %+v", s.Client)
	}
	bucket := Class{"bucket", "token_bucket", 50, time.Hour, 7, "deny", "sync", 2, false}
	if len(s.Counts) != 2 || s.Counts[1] != bucket {
		t.Errorf("counters are %+v", s.Counts)
	}
	bounds := Bounds{Share{Percent: 1}, 2, Share{Unbounded: true}, Share{Percent: 5}, time.Second, 2 * time.Second, 3 * time.Second, 4 * time.Second, true, Share{Percent: 20}}
	if s.Bounds != bounds {
		t.Errorf("bounds are %+v", s.Bounds)
	}
	want := []string{
		"Load {400 100}", "Load {0 0}", "Fill {1m0s}", "Wait 200ms", "Fresh true", "Settle 20s",
		"Join {2 true 24h0m0s false  }", "Join {1 false 0s false  }", "Signal {true owner_and_standby 5s}", "Signal {false 1 20s}",
		"Pause {any 8s}", "Start down", "Restart {all true 50ms 20s}", "Resets note",
		"Cut {[0] [1 2] false udp 30 false 0s 0s}", "Heal true", "Join {1 true 0s true  }", "Flood {1m30s}", "Attack {slow_headers all 900 5s}", "Random {30m0s 2s [kill cut]}", "Repeat 20",
		"Join {1 false 0s false planted_ring it says why}", "Limit {3 bucket 49}",
	}
	for i, w := range want {
		if got := show(&s.Steps[i]); got != w {
			t.Errorf("step %d is %s, want %s", i, got, w)
		}
	}
	if first := s.Steps[0].Line; first != 14 {
		t.Errorf("the first step is in line %d, want 14", first)
	}
}

func show(s *Step) string {
	switch {
	case s.Load != nil:
		return fmt.Sprint("Load ", *s.Load)
	case s.Fill != nil:
		return fmt.Sprint("Fill ", *s.Fill)
	case s.Wait > 0:
		return fmt.Sprint("Wait ", s.Wait)
	case s.Fresh:
		return fmt.Sprint("Fresh ", s.Fresh)
	case s.Settle > 0:
		return fmt.Sprint("Settle ", s.Settle)
	case s.Join != nil:
		return fmt.Sprint("Join ", *s.Join)
	case s.Limit != nil:
		return fmt.Sprint("Limit ", *s.Limit)
	case s.Signal != nil:
		return fmt.Sprint("Signal ", *s.Signal)
	case s.Pause != nil:
		return fmt.Sprint("Pause ", *s.Pause)
	case s.Start != "":
		return fmt.Sprint("Start ", s.Start)
	case s.Restart != nil:
		return fmt.Sprint("Restart ", *s.Restart)
	case s.Resets != "":
		return fmt.Sprint("Resets ", s.Resets)
	case s.Cut != nil:
		return fmt.Sprint("Cut ", *s.Cut)
	case s.Heal:
		return fmt.Sprint("Heal ", s.Heal)
	case s.Flood != nil:
		return fmt.Sprint("Flood ", *s.Flood)
	case s.Attack != nil:
		return fmt.Sprint("Attack ", *s.Attack)
	case s.Random != nil:
		return fmt.Sprint("Random ", *s.Random)
	}
	return fmt.Sprint("Repeat ", s.Repeat.Times)
}

func TestReadErrors(t *testing.T) {
	for _, tt := range []struct{ old, new, want string }{
		{"nodes: 3", "nodes: 17", "x.yaml:2:8: nodes: must be from 1 to 16, is 17"},
		{"nodes: 3", "nodes: 1", "x.yaml:3:8: needs: is 2, more than nodes (1)"},
		{"--deadline=200ms", "-deadline", `serve[0]: is "-deadline"; write it like --deadline=200ms`},
		{"--deadline=200ms", "--name=x", "serve[0]: --name is the harness's to set"},
		{"kind: slow_headers", "kind: shouting", `attack.kind: is "shouting"`},
		{"connections: 900", "connections: 90000", "attack.connections: must be from 0 to 20000"},
		{"kinds: [kill, cut]", "kinds: [kill, maim]", `random.kinds[1]: is "maim"; it must be one of kill, terminate, pause, join, cut`},
		{"kinds: [kill, cut]", "kinds: []", "random.kinds: is missing"},
		{"nodes: 3", "nods: 3", `x.yaml:2:1: unknown field "nods"`},
		{"about: something happens", "about: ''", "about: is missing"},
		{"start: together", "start: twice", `x.yaml:4:8: start: is "twice"; it must be one of one_by_one, together, by_steps`},
		{"network: namespaces", "network: loopback", "network: must be namespaces or switch: on loopback nothing can be cut"},
		{"patience: 3s", "patience: 3", `patience: is "3"; it must be a duration up to 1m0s`},
		{"hot: 90", "hot: 101", "hot: must be from 0 to 100"},
		{"name: log", "name: Log", `x.yaml:11:12: counters[0].name: "Log" is not a name`},
		{"name: bucket", "name: log", "counters[1].name: log is there twice"},
		{"limit: 100", "limit: 0", "counters[0].limit: must be from 1"},
		{"window: 10m, ", "", "counters[0].window: is \"\"; it must be a duration"},
		{"sliding_window_log", "sliding", `counters[0].algorithm: is "sliding"`},
		{"keys: 4", "keys: 0", "counters[0].keys: must be from 1"},
		{"- wait: 200ms", "- wait: 200ms\n    kill: any", "x.yaml:17:9: steps[3]: must do one thing, but has 2 (wait, kill)"},
		{"- wait: 200ms", "- wayt: 200ms", `x.yaml:17:5: unknown field "wayt"`},
		{"- wait: 200ms", "- wait: 31m", `steps[3].wait: is "31m"; it must be a duration up to 30m0s`},
		{"build: planted_ring", "build: planted ring", `steps[21].join.build: "planted ring" is no build tag`},
		{"build: planted_ring", "ready: true", "steps[21].join.ready: and refused exclude each other"},
		{"counter: bucket", "counter: pail", `steps[22].limit.counter: "pail" is none of the counters`},
		{"to: 49", "to: 51", "steps[22].limit.to: must be from 1 to the limit that the counter begins with (50)"},
		{"counter: bucket, to: 49", "counter: bucket", "steps[22].limit.to: must be from 1"},
		{"steady: 400", "steady: -1", "x.yaml:14:20: steps[0].load.steady: must be from 0"},
		{"kill: owner_and_standby", "kill: nobody", `steps[8].kill: is "nobody"; it must be one of any, all,`},
		{"nodes: 1, wait", "wait", "steps[9].terminate.nodes: is missing"},
		{"from: [0]", "from: []", "steps[14].cut: needs from and to"},
		{"only: udp", "only: ip", `steps[14].cut.only: is "ip"; it must be one of udp, tcp, gossip, peer`},
		{"percent: 30", "percent: 0", "steps[14].cut.percent: must be from 1 to 100"},
		{"[{wait: 1s}]", "[{wait: 0s}]", `steps[20].repeat.steps[0].wait: is "0s"`},
		{"times: 20, steps: [{wait: 1s}]", "times: 1000, steps: [{repeat: {times: 11, steps: [{wait: 1s}]}}]", "steps: are 11022 with all repetitions; at most 10000"},
		{"times: 20", "times: 0", "repeat.times: must be from 1"},
		{"extra: 1%", "extra: -1", `bounds.extra: is "-1"; it must be a count, a percentage such as 1%, or any`},
		{"extra: 1%", "extra: 1.5", `bounds.extra: is "1.5"`},
		{"about: something", "about: [something", "x.yaml:"},
	} {
		t.Run(tt.new, func(t *testing.T) {
			text := strings.Replace(good, tt.old, tt.new, 1)
			if text == good {
				t.Fatalf("%q is not in the file", tt.old)
			}
			_, err := Read("x.yaml", []byte(text))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error is %v, want %q in it", err, tt.want)
			}
		})
	}
}

func TestReadAllErrorsAtOnce(t *testing.T) {
	text := strings.NewReplacer("nodes: 3", "nodes: 0", "hot: 90", "hot: -1").Replace(good)
	_, err := Read("x.yaml", []byte(text))
	if err == nil || strings.Count(err.Error(), "\n") < 1 {
		t.Errorf("error is %v, want both problems", err)
	}
}

// The scenarios that come with the command are read, and promise something.
func TestShipped(t *testing.T) {
	files, err := filepath.Glob("../scenarios/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("found %v, %v", files, err)
	}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		s, err := Read(f, data)
		if err != nil {
			t.Error(err)
		} else if s.Bounds.Extra.Unbounded && s.Bounds.Unanswered.Unbounded {
			t.Errorf("%s promises nothing", f)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(good)
	f.Add("")
	f.Add("steps:\n- repeat: {times: 1, steps: [{repeat: {times: 1}}]}")
	f.Add("a: &a [*a]\n")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Read("x.yaml", []byte(text))
		if err == nil && (s.Nodes < s.Needs || len(s.Steps) == 0 || len(s.Counts) == 0) {
			t.Errorf("read %+v without an error", s)
		}
	})
}
