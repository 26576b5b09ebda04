package report

import (
	"fmt"
	"io"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ringlimit/ringlimit/bench/load"
)

// Table is a table as Markdown, aligned so that it can be read as it is.
type Table struct {
	Head []string
	Rows [][]string
}

// Write writes it. All columns but the first are aligned to the right.
func (t *Table) Write(w io.Writer) error {
	widths := make([]int, len(t.Head))
	for _, row := range append([][]string{t.Head}, t.Rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	rule := make([]string, len(widths))
	for i, width := range widths {
		rule[i] = strings.Repeat("-", max(2, width-1)) + ":"
	}
	rule[0] = strings.Repeat("-", max(3, widths[0]))
	var b strings.Builder
	for _, row := range append([][]string{t.Head, rule}, t.Rows...) {
		for i, cell := range row {
			pad := strings.Repeat(" ", max(0, widths[i]-utf8.RuneCountInString(cell)))
			if i == 0 {
				cell, pad = cell+pad, ""
			}
			b.WriteString("| " + pad + cell + " ")
		}
		b.WriteString("|\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// Group is rivals that are compared with each other, the first of them with each of
// the others.
type Group struct {
	Name   string
	Rivals []string
}

// Cells writes a table for each cell: its groups, and in them the rivals.
func (r *Results) Cells(w io.Writer, cells []load.Cell, groups []Group) error {
	for _, c := range cells {
		t := Table{Head: []string{c.String(), "checks/s", "(min–max)", "p50 µs", "p99 µs", "p99.9 µs", "client CPU µs", "server CPU µs", "client writes", "server writes", "allocs", "ringlimit ×"}}
		for _, g := range groups {
			t.Rows = append(t.Rows, r.rows(c, g)...)
		}
		if len(t.Rows) > 0 {
			if err := t.Write(w); err != nil {
				return err
			}
		}
		if err := r.failures(w, c, groups); err != nil {
			return err
		}
	}
	return nil
}

// failures says below a table what is not in it.
func (r *Results) failures(w io.Writer, c load.Cell, groups []Group) error {
	var b strings.Builder
	for _, g := range groups {
		for _, name := range g.Rivals {
			if why, failed := r.Failed(Place{name, c}); failed {
				fmt.Fprintf(&b, "\n%s is not counted here: %s\n", name, brief(why))
			}
		}
	}
	_, err := io.WriteString(w, b.String()+"\n")
	return err
}

func (r *Results) rows(c load.Cell, g Group) (rows [][]string) {
	for _, name := range g.Rivals {
		p := Place{name, c}
		rate, ok := r.Figure(p, Rate)
		if !ok {
			continue
		}
		row := []string{name, number(rate.Median), number(rate.Min) + "–" + number(rate.Max)}
		for _, m := range []Metric{P50, P99, P999, ClientCPU, ServerCPU, ClientWrites, ServerWrites, Allocs} {
			f, _ := r.Figure(p, m)
			row = append(row, small(f.Median))
		}
		rows = append(rows, append(row, r.against(Place{g.Rivals[0], c}, p)))
	}
	if len(rows) > 0 {
		rows = append([][]string{append([]string{"*" + g.Name + "*"}, make([]string, len(rows[0])-1)...)}, rows...)
	}
	return rows
}

// against is how many times as much the first of a group does.
func (r *Results) against(first, p Place) string {
	f, ok := r.Ratio(first, []Place{p}, Rate)
	if first == p || !ok {
		return ""
	}
	return small(f.Median)
}

// number is a large one, with k or M.
func number(v float64) string {
	switch {
	case v >= 1e6:
		return digits(v/1e6) + " M"
	case v >= 1e4:
		return digits(v/1e3) + " k"
	}
	return fmt.Sprintf("%.0f", v)
}

// digits is three of them.
func digits(v float64) string {
	switch a := math.Abs(v); {
	case a >= 100:
		return fmt.Sprintf("%.0f", v)
	case a >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

// small is a ratio or a time.
func small(v float64) string {
	if v != 0 && math.Abs(v) < 0.1 {
		return fmt.Sprintf("%.2g", v)
	}
	return digits(v)
}

// Memory writes what a counter takes.
func (r *Results) Memory(w io.Writer, rivals []string, counters int) error {
	t := Table{Head: []string{fmt.Sprintf("bytes per counter, %s counters", number(float64(counters))), "bytes"}}
	for _, name := range rivals {
		if b, ok := r.Bytes(name); ok {
			t.Rows = append(t.Rows, []string{name, fmt.Sprintf("%.0f", b)})
		}
	}
	if len(t.Rows) == 0 {
		return nil
	}
	return t.Write(w)
}

// WriteReached writes the targets.
func WriteReached(w io.Writer, all []Reached) error {
	t := Table{Head: []string{"what", "shape", "ratio", "(min–max)", "prototype", "at least", "aim", "met"}}
	for _, r := range all {
		least, aim := small(r.Least), "–"
		if r.AtMost {
			least = "≤ " + least
		}
		if r.Aim != 0 {
			aim = small(r.Aim)
		}
		value, spread := "–", ""
		if r.Value != nil {
			value, spread = small(r.Value.Median), small(r.Value.Min)+"–"+small(r.Value.Max)
		}
		t.Rows = append(t.Rows, []string{r.What, r.Shape, value, spread, r.Prototype, least, aim, string(r.Met)})
	}
	if err := t.Write(w); err != nil {
		return err
	}
	return writeWhys(w, all)
}

// writeWhys says below the targets why some have no value.
func writeWhys(w io.Writer, all []Reached) error {
	var b strings.Builder
	skipped := 0
	for _, r := range all {
		switch r.Why {
		case "":
		case notRun:
			skipped++
		default:
			fmt.Fprintf(&b, "- %s (%s): %s\n", r.What, r.Shape, brief(r.Why))
		}
	}
	if skipped > 0 {
		fmt.Fprintf(&b, "- %d of them %s not run\n", skipped, map[bool]string{true: "was", false: "were"}[skipped == 1])
	}
	if b.Len() == 0 {
		return nil
	}
	_, err := io.WriteString(w, "\nNot measured:\n\n"+b.String())
	return err
}

// brief cuts a reason short: a server's answer may be long.
func brief(why string) string {
	const most = 240
	if len(why) <= most {
		return why
	}
	return strings.ToValidUTF8(why[:most], "") + "…"
}

// Duration is a time for people, to three digits.
func Duration(d time.Duration) string {
	for unit := time.Nanosecond; unit < time.Second; unit *= 10 {
		if d < 1000*unit {
			return d.Round(unit).String()
		}
	}
	return d.Round(10 * time.Millisecond).String()
}
