package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ringlimit/ringlimit/bench/load"
	"github.com/ringlimit/ringlimit/bench/report"
	"github.com/ringlimit/ringlimit/bench/rival"
)

func planOf(t *testing.T, args ...string) plan {
	t.Helper()
	var o options
	cmd := o.command()
	if err := cmd.ParseFlags(args); err != nil {
		t.Fatal(err)
	}
	p, err := o.plan(cmd)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Without flags the callers vary with one kind of keys, and the keys with 64 callers;
// with flags it is each with each.
func TestCells(t *testing.T) {
	if p := planOf(t); len(p.Cells) != 8 || len(p.Narrow) != 4 || p.Rounds != 3 || p.Slice < 500*time.Millisecond {
		t.Errorf("%v, %v", p.Cells, p.Narrow)
	}
	want := []load.Cell{{Callers: 2, Keys: "one"}, {Callers: 3, Keys: "one"}, {Callers: 2, Keys: "zipf-5"}, {Callers: 3, Keys: "zipf-5"}}
	if p := planOf(t, "--callers", "2,3", "--keys", "one,zipf-5"); !slices.Equal(p.Cells, want) || !slices.Equal(p.Narrow, want) {
		t.Errorf("%v, %v, want both %v", p.Cells, p.Narrow, want)
	}
	p := planOf(t, "--quick", "--rounds", "1")
	if want := []load.Cell{{Callers: 1, Keys: "uniform-10k"}, {Callers: 64, Keys: "uniform-10k"}}; !slices.Equal(p.Cells, want) || !slices.Equal(p.Narrow, want) || p.Rounds != 1 || p.Slice >= 500*time.Millisecond {
		t.Errorf("%v, %v, %d rounds of %v", p.Cells, p.Narrow, p.Rounds, p.Slice)
	}
}

// The default run is to take twelve minutes and a try two, of which the loads are not
// all: there are starts, and memory.
func TestRunIsShort(t *testing.T) {
	for _, tt := range []struct {
		args []string
		most time.Duration
	}{{nil, 10*time.Minute + 30*time.Second}, {[]string{"--quick"}, 75 * time.Second}} {
		p, steps := planOf(t, tt.args...), 0
		for _, phase := range p.phases() {
			for _, s := range phase.steps() {
				steps += s.entry.Slices()
			}
		}
		if took := time.Duration(steps) * (p.warm() + p.Slice); took > tt.most {
			t.Errorf("%v: the loads alone take %v", tt.args, took)
		}
	}
}

func TestBadFlags(t *testing.T) {
	for _, args := range [][]string{
		{"--callers", "0"}, {"--callers", "10001"}, {"--keys", "some"}, {"--keys", ""}, {"--rounds", "0"}, {"--slice", "1ms"},
		{"--counters", "-1"}, {"--only", "("}, {"--only", "nobody"},
	} {
		var o options
		cmd := o.command()
		if err := cmd.ParseFlags(args); err != nil {
			t.Fatal(err)
		}
		if _, err := o.plan(cmd); err == nil {
			t.Errorf("%v: no error", args)
		}
	}
}

// Each rival is in one phase, with all that a target compares it with, in the cells
// that the target is about.
func TestPhases(t *testing.T) {
	p, seen, in, cells := planOf(t), map[string]int{}, map[string]int{}, map[report.Place]bool{}
	for i, phase := range p.phases() {
		for _, e := range phase.Entries {
			seen[e.Name]++
			in[e.Name] = i
			for _, c := range p.cellsOf(e) {
				cells[report.Place{Rival: e.Name, Cell: c}] = true
			}
			if e.Kind != phase.Entries[0].Kind {
				t.Errorf("%s runs beside %s", e.Name, phase.Entries[0].Name)
			}
		}
	}
	for _, e := range rival.All() {
		if seen[e.Name] != 1 {
			t.Errorf("%s is in %d phases", e.Name, seen[e.Name])
		}
	}
	for _, target := range report.Targets() {
		for _, place := range append([]report.Place{target.Ours}, target.Theirs...) {
			if target.Elsewhere == "" && !cells[place] {
				t.Errorf("%s: %s does not run with %v", target.What, place.Rival, place.Cell)
			}
		}
		for _, other := range target.Theirs {
			if in[target.Ours.Rival] != in[other.Rival] {
				t.Errorf("%s: %s does not run beside %s", target.What, target.Ours.Rival, other.Rival)
			}
		}
	}
}

// Each rival has one turn a round in each of its cells, what is compared is done in a
// row, and not always in the same order.
func TestSteps(t *testing.T) {
	p := planOf(t, "--only", "^(ringlimit-forward-one|tcp-one|unary-one|redis|tcp|gubernator-1000)$")
	turns := map[string]int{}
	orders := map[string]bool{}
	var last step
	order := ""
	for i, s := range p.steps() {
		turns[s.entry.Name]++
		if i > 0 && (s.cell != last.cell || s.round != last.round) {
			orders[order], order = true, ""
		}
		order += s.entry.Name + " "
		last = s
	}
	for _, name := range []string{"ringlimit-forward-one", "tcp-one", "unary-one", "redis"} {
		if turns[name] != p.Rounds*len(p.Cells) {
			t.Errorf("%s has %d turns, want %d", name, turns[name], p.Rounds*len(p.Cells))
		}
	}
	if turns["tcp"] != p.Rounds*len(p.Narrow) {
		t.Errorf("tcp has %d turns, want %d", turns["tcp"], p.Rounds*len(p.Narrow))
	}
	if turns["gubernator-1000"] != p.Rounds {
		t.Errorf("the batch has %d turns, want %d", turns["gubernator-1000"], p.Rounds)
	}
	if blocks := p.Rounds * (len(p.Cells) + 1); len(orders) < 8 || len(orders) > blocks {
		t.Errorf("%d orders in %d blocks", len(orders), blocks)
	}
}

func TestMatching(t *testing.T) {
	got, err := matching(rival.All(), "^redis")
	if err != nil || len(got) != 2 || got[0].Name != "redis" {
		t.Errorf("%v, %v", got, err)
	}
}

// A table compares what is equally far away.
func TestGroups(t *testing.T) {
	for _, g := range groups(rival.All()) {
		if first := g.Rivals[0]; len(g.Rivals) < 2 || !strings.HasPrefix(first, "ringlimit-") {
			t.Errorf("%+v: ringlimit is not compared with anything", g)
		}
	}
}

func TestVersions(t *testing.T) {
	if v := redisVersion("Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc\n"); v != "7.0.15" {
		t.Errorf("%q", v)
	}
	got := listed(map[string]string{"github.com/redis/go-redis/v9": "v9.1", "redis-server": "7.0", "golang.org/x/time": "v0.16"})
	if want := "go-redis v9.1, time v0.16, redis-server 7.0"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if all := versions(t.Context(), ""); len(all) != len(compared()) {
		t.Errorf("%v: want all of %v", all, compared())
	}
}
