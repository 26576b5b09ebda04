package main

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ringlimit/ringlimit/rules"
)

// applied collects what a file puts in force.
type applied struct {
	by  []string
	err error
}

func (a *applied) apply(_ *rules.Set, by string) error {
	a.by = append(a.by, by)
	return a.err
}

const (
	aRule  = "tiers:\n  default:\n    - {name: a, algorithm: fixed_window, limit: 1, window: 1s}\n"
	bRule  = "tiers:\n  default:\n    - {name: b, algorithm: fixed_window, limit: 1, window: 1s}\n"
	broken = "tiers:\n  default:\n    - {name: b, algorithm: fixed_window, limt: 1, window: 1s}\n"
)

// followed is a file with aRule in it, that has been read, and its log.
func followed(t *testing.T) (f *ruleFile, write func(string), log *strings.Builder) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "rules.yaml")
	write = func(text string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(aRule)
	log = &strings.Builder{}
	f, _, err := openRules(name, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	return f, write, log
}

// A file that is still being written may be valid: it is applied once it rests.
func TestChangedFileIsAppliedOnceItRests(t *testing.T) {
	f, write, log := followed(t)
	to := &applied{}
	for _, step := range []struct {
		text string
		want int // applied by then
	}{
		{aRule, 0}, {aRule, 0}, // not changed
		{bRule, 0}, {bRule[:20], 0}, {bRule, 0}, {bRule, 1}, {bRule, 1},
		{aRule, 1}, {bRule, 1}, {bRule, 1}, // there and back
		{broken, 1}, {broken, 1}, {broken, 1},
		{bRule, 1}, {bRule, 2}, // what was refused does not stay known as applied
	} {
		write(step.text)
		if f.look(to); len(to.by) != step.want {
			t.Fatalf("after %q: applied %q, want %d", step.text, to.by, step.want)
		}
	}
	if got := log.String(); strings.Count(got, "level=ERROR") != 2 || // once for each of the two problems
		!strings.Contains(got, "rules.yaml:3:42: tiers.default[0].limt: ") {
		t.Errorf("logged\n%s", got)
	}
}

// As Kubernetes does it: the name leads elsewhere, and times may be old.
func TestSwappedSymlink(t *testing.T) {
	f, write, _ := followed(t)
	write(aRule)
	dir := filepath.Dir(f.name)
	for name, text := range map[string]string{"one": aRule, "two": bRule} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	link := func(to string) {
		next := filepath.Join(dir, "next")
		if err := errors.Join(os.Symlink(to, next), os.Rename(next, f.name)); err != nil {
			t.Fatal(err)
		}
	}
	to := &applied{}
	link("one")
	f.look(to)
	f.look(to)
	link("two")
	f.look(to)
	f.look(to)
	if len(to.by) != 1 || !strings.HasPrefix(to.by[0], "changed file ") {
		t.Errorf("applied %q", to.by)
	}
}

// A signal applies at once, and again what is in the file already.
func TestReload(t *testing.T) {
	f, write, log := followed(t)
	to := &applied{}
	f.reload(to)
	write(bRule)
	f.reload(to)
	f.look(to)
	f.look(to)
	if len(to.by) != 2 || to.by[1] != "SIGHUP "+f.name {
		t.Errorf("applied %q", to.by)
	}
	to.err = errors.New("the disk is full")
	if f.reload(to); !strings.Contains(log.String(), "the disk is full") {
		t.Errorf("logged\n%s", log)
	}
	f.look(to)
	f.look(to)
	if n := strings.Count(log.String(), "the disk is full"); n != 1 {
		t.Errorf("told %d times", n)
	}
	if f.reload(to); strings.Count(log.String(), "the disk is full") != 2 {
		t.Error("who sends another signal is told nothing")
	}
	to.err = nil
	if f.look(to); len(to.by) == 2 || to.by[len(to.by)-1] != "changed file "+f.name {
		t.Errorf("it is not tried again: %q", to.by)
	}
	before := len(to.by)
	if f.look(to); len(to.by) != before {
		t.Error("what is in force is applied again")
	}
}

// A file that is gone changes nothing, and is complained of once; a signal asks anew.
func TestLostFile(t *testing.T) {
	f, write, log := followed(t)
	to := &applied{}
	if err := os.Remove(f.name); err != nil {
		t.Fatal(err)
	}
	f.look(to)
	f.look(to)
	if n := strings.Count(log.String(), "cannot be read"); n != 1 || len(to.by) != 0 {
		t.Errorf("%d lines, applied %q", n, to.by)
	}
	f.reload(to)
	write(bRule)
	f.look(to)
	f.look(to)
	if n := strings.Count(log.String(), "cannot be read"); n != 2 || len(to.by) != 1 {
		t.Errorf("%d lines, applied %q", n, to.by)
	}
}
