package main

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"time"

	"github.com/ringlimit/ringlimit/bench/load"
	"github.com/ringlimit/ringlimit/bench/rival"
)

// plan is what a run does.
type plan struct {
	Entries  []rival.Entry
	Cells    []load.Cell // of the rivals that say nothing else
	Narrow   []load.Cell // of those that are narrow
	Rounds   int
	Slice    time.Duration
	Counters int // that memory is measured with; 0: it is not
}

// warm is how long a load runs before its slice begins.
func (p *plan) warm() time.Duration { return max(p.Slice/4, 100*time.Millisecond) }

// step is a piece of load on one rival.
type step struct {
	round int
	cell  load.Cell
	entry rival.Entry
}

// phases are parts of the run: rivals of another kind, or with cells of their own, are
// not compared with each other. Only the rivals of one phase run at a time, since even
// idle ones use a little of the processors.
func (p *plan) phases() (all []plan) {
	for _, e := range p.Entries {
		i := slices.IndexFunc(all, func(q plan) bool { return together(q.Entries[0], e) })
		if i < 0 {
			i, all = len(all), append(all, *p)
			all[i].Entries = nil
		}
		all[i].Entries = append(all[i].Entries, e)
	}
	return all
}

func together(a, b rival.Entry) bool { return a.Kind == b.Kind && slices.Equal(a.Only, b.Only) }

// steps is all of a phase: round by round, in each of them cell by cell, so that what
// is compared runs within seconds of each other, and in each cell the rivals in an
// order of its own, so that none always comes after the same.
func (p *plan) steps() (all []step) {
	for round := range p.Rounds {
		for i, cell := range p.allCells() {
			rng := rand.New(rand.NewPCG(uint64(round), uint64(i)))
			at := len(all)
			for _, e := range p.Entries {
				if slices.Contains(p.cellsOf(e), cell) {
					all = append(all, step{round, cell, e})
				}
			}
			rng.Shuffle(len(all)-at, func(a, b int) { all[at+a], all[at+b] = all[at+b], all[at+a] })
		}
	}
	return all
}

func (p *plan) cellsOf(e rival.Entry) []load.Cell {
	switch {
	case e.Only != nil:
		return e.Only
	case e.Narrow:
		return slices.Concat(p.Narrow, e.Also)
	}
	return slices.Concat(p.Cells, e.Also)
}

// allCells is the cells of any rival, those of the plan first.
func (p *plan) allCells() []load.Cell {
	all := slices.Clone(p.Cells)
	for _, e := range p.Entries {
		for _, c := range p.cellsOf(e) {
			if !slices.Contains(all, c) {
				all = append(all, c)
			}
		}
	}
	return all
}

// cross is the default: the callers with the first keys, and the keys with 64
// callers, not each with each.
func cross(callers []int, keys []string) (cells []load.Cell) {
	for _, c := range callers {
		cells = append(cells, load.Cell{Callers: c, Keys: keys[0]})
	}
	for _, k := range keys[1:] {
		cells = append(cells, load.Cell{Callers: 64, Keys: k})
	}
	return cells
}

// each is every number of callers with all keys.
func each(callers []int, keys []string) (cells []load.Cell) {
	for _, k := range keys {
		for _, c := range callers {
			cells = append(cells, load.Cell{Callers: c, Keys: k})
		}
	}
	return cells
}

// maxCallers bounds what a command line asks for.
const maxCallers = 10_000

func checkCells(cells []load.Cell) error {
	for _, c := range cells {
		if c.Callers < 1 || c.Callers > maxCallers {
			return fmt.Errorf("--callers: %d must be from 1 to %d", c.Callers, maxCallers)
		}
		if _, err := load.ParseSpread(c.Keys); err != nil {
			return fmt.Errorf("--%w", err)
		}
	}
	return nil
}

// matching is the rivals whose name the expression is found in.
func matching(all []rival.Entry, expression string) ([]rival.Entry, error) {
	re, err := regexp.Compile(expression)
	if err != nil {
		return nil, fmt.Errorf("--only: %w", err)
	}
	chosen := slices.DeleteFunc(slices.Clone(all), func(e rival.Entry) bool { return !re.MatchString(e.Name) })
	if len(chosen) == 0 {
		return nil, fmt.Errorf("--only: no rival's name matches %q; `go run . list` shows them", expression)
	}
	return chosen, nil
}
