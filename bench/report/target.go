package report

import "strings"

// Target is a line of what is to be reached.
type Target struct {
	What string
	// Shape is where the processes of Ours are, and so those of Theirs.
	Shape string
	// Prototype is what the plan says that the prototype reached, which had both ends of
	// a hop in one process. Empty: the plan says nothing.
	Prototype string
	// Ours is compared with the largest of Theirs; without any its own figure counts.
	Ours   Place
	Theirs []Place
	Metric Metric
	Bound  Bound
	// Name is that of a figure which is measured by itself, and Elsewhere the command
	// that does; then there is no Ours.
	Name, Elsewhere string
}

// Bound is what a figure must reach, and what it should.
type Bound struct {
	Least, Aim float64 // Aim 0: none
	AtMost     bool    // less is better, and Least is the most that will do
}

// Met says whether a figure reaches the bound.
func (b Bound) Met(value float64) Met {
	reaches := func(bound float64) bool { return value >= bound }
	if b.AtMost {
		reaches = func(bound float64) bool { return value <= bound }
	}
	switch {
	case b.Aim != 0 && reaches(b.Aim):
		return Aim
	case reaches(b.Least):
		return Yes
	}
	return No
}

// Met is how far a target was met.
type Met string

// How far.
const (
	No   Met = "no"
	Yes  Met = "yes"
	Aim  Met = "aim"
	None Met = "–" // not measured
)

// Reached is a target and what was measured.
type Reached struct {
	What  string `json:"what"`
	Shape string `json:"shape"`
	// Prototype is what the plan says that the prototype reached.
	Prototype string  `json:"prototype,omitempty"`
	Value     *Figure `json:"value"` // nil: not measured, and Why says why
	Least     float64 `json:"least"`
	Aim       float64 `json:"aim,omitempty"`
	// AtMost says that Least is the most that will do.
	AtMost bool   `json:"at_most,omitempty"`
	Met    Met    `json:"met"`
	Why    string `json:"why,omitempty"`
}

// Reach holds the targets against the results.
func (r *Results) Reach(targets []Target) []Reached {
	all := make([]Reached, len(targets))
	for i, t := range targets {
		all[i] = Reached{What: t.What, Shape: t.Shape, Prototype: t.Prototype, Least: t.Bound.Least, Aim: t.Bound.Aim, AtMost: t.Bound.AtMost, Met: None}
		if f, ok := r.value(t); ok {
			all[i].Value, all[i].Met = &f, t.Bound.Met(f.Median)
			continue
		}
		all[i].Why = r.why(t)
	}
	return all
}

func (r *Results) value(t Target) (Figure, bool) {
	switch {
	case t.Name != "":
		f, ok := r.figures[t.Name]
		return f, ok
	case len(t.Theirs) == 0:
		return r.Figure(t.Ours, t.Metric)
	}
	return r.Ratio(t.Ours, t.Theirs, t.Metric)
}

// notRun is said of a target for which nothing was tried.
const notRun = "not run"

// why is the reason that a target has no value.
func (r *Results) why(t Target) string {
	if t.Elsewhere != "" {
		return "`" + t.Elsewhere + "`"
	}
	var reasons []string
	for _, p := range append([]Place{t.Ours}, t.Theirs...) {
		if why, ok := r.absent[p.Rival]; ok {
			reasons = append(reasons, p.Rival+": "+why)
		} else if why, ok := r.failed[p]; ok {
			reasons = append(reasons, p.Rival+": "+why)
		}
	}
	if len(reasons) == 0 {
		return notRun
	}
	return strings.Join(reasons, "; ")
}
