// Package report draws a run: one HTML file that needs nothing else, with the
// verdict of each scenario and a time line of what clients and nodes saw.
package report

import (
	"fmt"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/ringlimit/ringlimit/chaos/history"
)

// Series is a history as a time line. Times are seconds since the run began; a
// nil figure is one that nobody measured.
type Series struct {
	At         []float64  `json:"at"`
	Checks     []float64  `json:"checks"` // a second
	Denied     []float64  `json:"denied"`
	Unanswered []float64  `json:"unanswered"`
	P50        []*float64 `json:"p50"` // ms, of single checks
	P99        []*float64 `json:"p99"`
	Nodes      []Node     `json:"nodes"`
	Events     []Event    `json:"events"`
	Bands      []Band     `json:"bands"`
}

// Node is how one node saw the cluster and fared itself.
type Node struct {
	Name       string    `json:"name"`
	At         []float64 `json:"at"`
	Members    []int     `json:"members"`
	Memory     []float64 `json:"memory"` // MiB
	Goroutines []int     `json:"goroutines"`
	Files      []int     `json:"files"`
}

// Event is a moment, Band a stretch of time in which something was wrong.
type (
	Event struct {
		At   float64 `json:"at"`
		Text string  `json:"text"`
	}
	Band struct {
		From float64 `json:"from"`
		To   float64 `json:"to"`
		Text string  `json:"text"`
	}
)

// maxPoints is how many points a line has at most.
const maxPoints = 600

// shortest is the least time that one point stands for.
const shortest = 250 * time.Millisecond

// NewSeries sums a history up.
func NewSeries(h *history.History) *Series {
	end := int64(0)
	for r := range h.Records() {
		end = max(end, r.Return)
	}
	events := h.Events()
	for _, e := range events {
		end = max(end, e.At)
	}
	s := &Series{Nodes: []Node{}, Events: []Event{}, Bands: []Band{}} // not null, for the page
	s.checks(h, end)
	s.nodes(h.Samples())
	s.happenings(events, end)
	return s
}

func seconds(ns int64) float64 { return float64(ns/1e6) / 1e3 }

// point is one point of the time line while it is summed up.
type point struct {
	checks, denied, unanswered float64
	took                       *hdrhistogram.Histogram
}

func (s *Series) checks(h *history.History, end int64) {
	step := max(int64(shortest), end/maxPoints+1)
	points := make([]point, end/step+1)
	for r := range h.Records() {
		points[r.Return/step].add(r)
	}
	each := time.Duration(step).Seconds()
	for i := range points {
		p := &points[i]
		s.At = append(s.At, seconds(int64(i)*step))
		s.Checks = append(s.Checks, p.checks/each)
		s.Denied = append(s.Denied, p.denied/each)
		s.Unanswered = append(s.Unanswered, p.unanswered/each)
		s.P50 = append(s.P50, p.quantile(50))
		s.P99 = append(s.P99, p.quantile(99))
	}
}

// longest is the longest latency that is told apart.
const longest = int64(2 * time.Minute)

func (p *point) add(r *history.Record) {
	p.checks++
	switch {
	case !r.ByOwner():
		p.unanswered++
	case !r.Allowed:
		p.denied++
	}
	if r.Batched {
		return
	}
	if p.took == nil {
		p.took = hdrhistogram.New(1_000, longest, 2)
	}
	_ = p.took.RecordValue(min(int64(r.Latency()), longest)) // in range by the min
}

func (p *point) quantile(q float64) *float64 {
	if p.took == nil {
		return nil
	}
	ms := float64(p.took.ValueAtQuantile(q)) / 1e6
	return &ms
}

func (s *Series) nodes(samples []history.Sample) {
	index := map[int]int{}
	for _, x := range samples {
		i, known := index[x.Node]
		if !known {
			i = len(s.Nodes)
			index[x.Node] = i
			s.Nodes = append(s.Nodes, Node{Name: fmt.Sprintf("node-%d", x.Node)})
		}
		n := &s.Nodes[i]
		n.At = append(n.At, seconds(x.At))
		n.Members = append(n.Members, x.Members)
		n.Memory = append(n.Memory, float64(x.Memory)/(1<<20))
		n.Goroutines = append(n.Goroutines, x.Goroutines)
		n.Files = append(n.Files, x.Files)
	}
}

// happenings draws what begins and ends as a band, the rest as moments. What does
// not end lasts to the end, except a process: one that never comes back is no
// fault any more once it is gone.
func (s *Series) happenings(events []history.Event, end int64) {
	open, gone := map[int]history.Event{}, map[int]int64{} // by node
	for _, e := range events {
		switch e.Kind {
		case history.Paused, history.Killed, history.Terminate, history.Cut:
			s.moment(e)
			if _, already := open[e.Node]; !already {
				open[e.Node] = e
			}
		case history.Resumed, history.Ready, history.Healed:
			if begun, ok := open[e.Node]; ok {
				s.band(begun, e.At)
				delete(open, e.Node)
			} else {
				s.moment(e)
			}
		case history.Exited:
			gone[e.Node] = e.At
		case history.Started, history.Note:
			s.moment(e)
		}
	}
	for _, e := range events { // in their order, whatever the map's
		begun, ok := open[e.Node]
		if !ok || begun.At != e.At {
			continue
		}
		delete(open, e.Node)
		to := end
		if at, ended := gone[e.Node]; ended && at >= e.At {
			to = at
		}
		s.band(begun, to)
	}
}

func (s *Series) moment(e history.Event) {
	s.Events = append(s.Events, Event{seconds(e.At), e.Kind.String() + " " + e.Text})
}

func (s *Series) band(e history.Event, to int64) {
	s.Bands = append(s.Bands, Band{seconds(e.At), seconds(to), e.Kind.String() + " " + e.Text})
}
