package report

import (
	"bytes"
	_ "embed" // for what the page is made of
	"encoding/json"
	"html/template"
	"io"
	"strconv"

	"github.com/ringlimit/ringlimit/chaos/judge"
)

// What the page is made of. echarts.min.js is the "common" build of Apache
// ECharts 6.1.0, as published.
var (
	//go:embed page.html
	page string
	//go:embed page.css
	style string
	//go:embed page.js
	script string
	//go:embed echarts.min.js
	echarts string
)

// Run is one scenario in the report.
type Run struct {
	Name    string
	About   string
	Seed    uint64
	Seconds float64
	Held    bool
	Stuck   string
	Skipped string
	Lines   []judge.Line
	Series  *Series // nil: it was skipped
}

// Verdict is the run's verdict in a word.
func (r *Run) Verdict() string {
	switch {
	case r.Skipped != "":
		return "skipped"
	case r.Held:
		return "held"
	}
	return "broken"
}

// Write writes the page. title says what was tried.
func Write(w io.Writer, title string, runs []Run) error {
	t, err := template.New("page").Funcs(template.FuncMap{"amount": amount, "promise": promise, "margin": margin}).Parse(page)
	if err != nil {
		return err
	}
	var series []*Series
	counts := map[string]int{}
	for i := range runs {
		series = append(series, runs[i].Series)
		counts[runs[i].Verdict()]++
	}
	data, err := json.Marshal(series) // escapes <, so that no text can end the script
	if err != nil {
		return err
	}
	var out bytes.Buffer
	err = t.Execute(&out, map[string]any{
		"Title": title, "Runs": runs, "Counts": counts,
		"Style": template.CSS(style), "Script": template.JS(script), "Echarts": template.JS(echarts), "Data": template.JS(data),
	})
	if err != nil {
		return err
	}
	_, err = w.Write(out.Bytes())
	return err
}

// amount is a figure for people.
func amount(x float64, unit string) string {
	if unit != "" {
		return strconv.FormatFloat(x, 'f', 1, 64) + " " + unit
	}
	return strconv.FormatFloat(x, 'f', -1, 64)
}

func promise(l judge.Line) string { return amount(*l.Promised, l.Unit) }

func margin(l judge.Line) string { return amount(*l.Promised-l.Measured, l.Unit) }
