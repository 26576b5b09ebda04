package main

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
)

// format is how results are printed.
type format string

const (
	text       format = "text"
	jsonFormat format = "json"
)

func (f *format) String() string { return string(*f) }
func (f *format) Type() string   { return "format" }

func (f *format) Set(s string) error {
	if s != string(text) && s != string(jsonFormat) {
		return fmt.Errorf("must be text or json")
	}
	*f = format(s)
	return nil
}

// printer writes the results of a command.
type printer struct {
	w      io.Writer
	format format
}

// json writes v as one line.
func (p *printer) json(v any) error {
	e := json.NewEncoder(p.w)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// print writes v, as JSON or by the function that says it in text.
func (p *printer) print(v any, inText func(w io.Writer)) error {
	if p.format == jsonFormat {
		return p.json(v)
	}
	inText(p.w)
	return nil
}

// table prints aligned columns; the first row is the heading.
func table(w io.Writer, rows [][]string) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		for i, cell := range row {
			if i > 0 {
				fmt.Fprint(t, "\t")
			}
			fmt.Fprint(t, cell)
		}
		fmt.Fprintln(t)
	}
	_ = t.Flush() // an error of w, which the command could only tell w
}
