package main

import (
	"slices"
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
	if p := planOf(t); len(p.Cells) != 8 || p.Rounds != 3 || p.Slice != time.Second {
		t.Errorf("%+v", p)
	}
	want := []load.Cell{{Callers: 2, Keys: "one"}, {Callers: 3, Keys: "one"}, {Callers: 2, Keys: "zipf-5"}, {Callers: 3, Keys: "zipf-5"}}
	if p := planOf(t, "--callers", "2,3", "--keys", "one,zipf-5"); !slices.Equal(p.Cells, want) {
		t.Errorf("%+v, want %+v", p.Cells, want)
	}
	p := planOf(t, "--quick", "--rounds", "1")
	if want := []load.Cell{{Callers: 1, Keys: "uniform-10k"}, {Callers: 64, Keys: "uniform-10k"}}; !slices.Equal(p.Cells, want) || p.Rounds != 1 || p.Slice >= time.Second {
		t.Errorf("%+v", p)
	}
}

// The default run is to take less than 15 minutes, 3 of them for starts and memory.
func TestRunIsShort(t *testing.T) {
	p := planOf(t)
	steps := 0
	for _, phase := range p.phases() {
		for _, s := range phase.steps() {
			steps += s.entry.Slices()
		}
	}
	if took := time.Duration(steps) * (p.warm() + p.Slice); took > 12*time.Minute {
		t.Errorf("the loads alone take %v", took)
	}
}

func TestBadFlags(t *testing.T) {
	for _, args := range [][]string{
		{"--callers", "0"}, {"--callers", "10001"}, {"--keys", "some"}, {"--rounds", "0"}, {"--slice", "1ms"},
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

// Each rival is in one phase, with all that a target compares it with.
func TestPhases(t *testing.T) {
	p, seen, in := planOf(t), map[string]int{}, map[string]int{}
	for i, phase := range p.phases() {
		for _, e := range phase.Entries {
			seen[e.Name]++
			in[e.Name] = i
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
	p := planOf(t, "--only", "^(ringlimit-forward|tcp|unary|redis|gubernator-1000)$")
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
	for _, name := range []string{"ringlimit-forward", "tcp", "unary", "redis"} {
		if turns[name] != p.Rounds*len(p.Cells) {
			t.Errorf("%s has %d turns, want %d", name, turns[name], p.Rounds*len(p.Cells))
		}
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
		if first := g.Rivals[0]; len(g.Rivals) < 2 || first[:10] != "ringlimit-" {
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
