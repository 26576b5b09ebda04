package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"

	"github.com/ringlimit/ringlimit/chaos/judge"
)

// show prints a verdict: promised, measured, margin.
func (s *settings) show(out io.Writer, r *result) error {
	if s.json {
		return json.NewEncoder(out).Encode(r)
	}
	if r.Skipped != "" {
		_, err := fmt.Fprintf(out, "\n%s: skipped: %s\n", r.Scenario, r.Skipped)
		return err
	}
	fmt.Fprintf(out, "\n%s: %s (seed %d, %.1f s)\n", r.Scenario, verdict(r.Held), r.Seed, r.Seconds)
	if r.Stuck != "" {
		fmt.Fprintf(out, "  BROKEN  %s\n", r.Stuck)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "  \t\tpromised\tmeasured\tmargin\t")
	for i := range r.Bounds {
		row(w, &r.Bounds[i])
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if r.Logs != "" {
		fmt.Fprintf(out, "  logs are kept in %s\n", r.Logs)
	}
	return nil
}

func verdict(held bool) string {
	if held {
		return "held"
	}
	return "BROKEN"
}

func row(w io.Writer, l *judge.Line) {
	state, promised, margin := "", "", ""
	if l.Promised != nil {
		state = "ok"
		if l.Broken() {
			state = "BROKEN"
		}
		promised, margin = amount(*l.Promised, l.Unit), amount(*l.Promised-l.Measured, l.Unit)
	}
	fmt.Fprintf(w, "  %s\t%s\t%s\t%s\t%s\t%s\n", state, l.Name, promised, amount(l.Measured, l.Unit), margin, l.Note)
}

func amount(x float64, unit string) string {
	text := strconv.FormatFloat(x, 'f', -1, 64)
	if unit != "" {
		text = strconv.FormatFloat(x, 'f', 1, 64) + " " + unit
	}
	return text
}
