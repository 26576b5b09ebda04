package report

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ringlimit/ringlimit/bench/load"
	"github.com/ringlimit/ringlimit/bench/rival"
)

var cell = load.Cell{Callers: 64, Keys: "one"}

func place(rival string) Place { return Place{rival, cell} }

// at is a sample with a rate.
func at(rate float64) Sample {
	return Sample{Checks: int64(rate), Took: time.Second, P50: 1500 * time.Nanosecond, Client: time.Second, Server: 2 * time.Second, Objects: 10, ClientWrites: 100_000, ServerWrites: 60_000}
}

func TestFiguresOfASample(t *testing.T) {
	s := Sample{Checks: 4000, Took: 2 * time.Second, P50: 1500, P99: 2500, P999: 3500, Client: 8 * time.Millisecond, Server: 4 * time.Millisecond, Objects: 2000, ClientWrites: 1000, ServerWrites: 400}
	for name, tt := range map[string]struct {
		m    Metric
		want float64
	}{
		"rate": {Rate, 2000}, "p50": {P50, 1.5}, "p99": {P99, 2.5}, "p99.9": {P999, 3.5}, "client": {ClientCPU, 2},
		"server": {ServerCPU, 1}, "both": {CPU, 3}, "allocations": {Allocs, 0.5}, "client writes": {ClientWrites, 0.25}, "server writes": {ServerWrites, 0.1},
		"ns": {Nanos, 2000},
	} {
		if got := tt.m(s); math.Abs(got-tt.want) > 1e-9 {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}

func TestMedians(t *testing.T) {
	for _, tt := range []struct {
		values []float64
		want   Figure
	}{
		{[]float64{3}, Figure{3, 3, 3}},
		{[]float64{4, 2}, Figure{3, 2, 4}},
		{[]float64{9, 1, 2}, Figure{2, 1, 9}},
		{[]float64{1, 8, 2, 4}, Figure{3, 1, 8}},
	} {
		if got := figureOf(tt.values); got != tt.want {
			t.Errorf("%v: %+v, want %+v", tt.values, got, tt.want)
		}
	}
}

// A ratio is the median of the rounds' ratios, not the ratio of medians; a round that
// lacks one of the two does not count.
func TestRatio(t *testing.T) {
	r := NewResults(4)
	for round, rates := range [][2]float64{{100, 10}, {200, 100}, {900, 300}} {
		r.Add(round, place("ours"), at(rates[0]))
		r.Add(round, place("theirs"), at(rates[1]))
	}
	r.Add(3, place("ours"), at(1))
	got, ok := r.Ratio(place("ours"), []Place{place("theirs")}, Rate)
	if want := (Figure{3, 2, 10}); !ok || got != want {
		t.Errorf("%+v, %v; want %+v", got, ok, want)
	}
	if f, ok := r.Figure(place("ours"), Rate); !ok || f.Median != 150 {
		t.Errorf("rate %+v, %v", f, ok)
	}
	if _, ok := r.Ratio(place("ours"), []Place{place("nobody")}, Rate); ok {
		t.Error("a ratio to nobody")
	}
}

// Of several others the best of each round counts.
func TestRatioToTheBest(t *testing.T) {
	r := NewResults(2)
	for round := range 2 {
		r.Add(round, place("ours"), at(100))
		r.Add(round, place("a"), at([]float64{50, 10}[round]))
		r.Add(round, place("b"), at([]float64{10, 25}[round]))
	}
	got, ok := r.Ratio(place("ours"), []Place{place("a"), place("b"), place("absent")}, Rate)
	if want := (Figure{3, 2, 4}); !ok || got != want {
		t.Errorf("%+v, %v; want %+v", got, ok, want)
	}
}

// What failed once is not counted, whatever it did before or does afterwards.
func TestFailedIsNotCounted(t *testing.T) {
	r := NewResults(2)
	r.Add(0, place("x"), at(5))
	r.Fail(place("x"), "a wrong verdict")
	r.Add(1, place("x"), at(5))
	if _, ok := r.Figure(place("x"), Rate); ok {
		t.Error("counted")
	}
	var b bytes.Buffer
	if err := r.Cells(&b, []load.Cell{cell}, []Group{{"g", []string{"x"}}}); err != nil || !strings.Contains(b.String(), "x is not counted here: a wrong verdict") {
		t.Errorf("%q, %v", b.String(), err)
	}
}

// A ratio is the same in another unit, and turned round when its sides are.
func TestRatioLaw(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := NewResults(5)
		for round := range 5 {
			r.Add(round, place("a"), at(float64(rapid.IntRange(1, 1e6).Draw(t, "a"))))
			r.Add(round, place("b"), at(float64(rapid.IntRange(1, 1e6).Draw(t, "b"))))
		}
		ab, _ := r.Ratio(place("a"), []Place{place("b")}, Rate)
		ba, _ := r.Ratio(place("b"), []Place{place("a")}, Rate)
		thousands, _ := r.Ratio(place("a"), []Place{place("b")}, func(s Sample) float64 { return Rate(s) / 1000 })
		if math.Abs(ab.Median*ba.Median-1) > 1e-9 || math.Abs(ab.Min*ba.Max-1) > 1e-9 || math.Abs(thousands.Median/ab.Median-1) > 1e-9 {
			t.Fatalf("%+v, %+v, %+v", ab, ba, thousands)
		}
		if ab.Min > ab.Median || ab.Median > ab.Max {
			t.Fatalf("out of order: %+v", ab)
		}
	})
}

func TestMet(t *testing.T) {
	for _, tt := range []struct {
		bound Bound
		value float64
		want  Met
	}{
		{Bound{Least: 10, Aim: 14}, 14, Aim},
		{Bound{Least: 10, Aim: 14}, 10, Yes},
		{Bound{Least: 10, Aim: 14}, 9.99, No},
		{Bound{Least: 0.9}, 5, Yes},
		{Bound{Least: 0.6, Aim: 0.45, AtMost: true}, 0.45, Aim},
		{Bound{Least: 0.6, Aim: 0.45, AtMost: true}, 0.6, Yes},
		{Bound{Least: 0.6, Aim: 0.45, AtMost: true}, 0.61, No},
	} {
		if got := tt.bound.Met(tt.value); got != tt.want {
			t.Errorf("%v of %+v: %q, want %q", tt.value, tt.bound, got, tt.want)
		}
	}
}

// Every target names rivals that exist, in cells that a plan without flags has.
func TestTargetsCanBeMeasured(t *testing.T) {
	runs := map[string]rival.Entry{}
	for _, e := range rival.All() {
		runs[e.Name] = e
	}
	for _, target := range Targets() {
		if target.Elsewhere != "" {
			continue
		}
		for _, p := range append([]Place{target.Ours}, target.Theirs...) {
			e, ok := runs[p.Rival]
			if !ok {
				t.Errorf("%s: there is no %s", target.What, p.Rival)
			}
			if e.Only != nil && !contains(e.Only, p.Cell) {
				t.Errorf("%s: %s does not run with %v", target.What, p.Rival, p.Cell)
			}
		}
	}
}

// Each target says where it is measured, no two lines are the same, and what is
// measured in several shapes is held to one bound in all of them.
func TestTargetsSayTheirShape(t *testing.T) {
	shapes, bounds := map[string][]string{}, map[string]Bound{}
	for _, target := range Targets() {
		if target.Shape == "" || slices.Contains(shapes[target.What], target.Shape) {
			t.Errorf("%s: the shape %q, after %q", target.What, target.Shape, shapes[target.What])
		}
		shapes[target.What] = append(shapes[target.What], target.Shape)
		if b, seen := bounds[target.What]; seen && b != target.Bound {
			t.Errorf("%s: %+v in the shape %s, %+v in others", target.What, target.Bound, target.Shape, b)
		}
		bounds[target.What] = target.Bound
	}
	for _, what := range []string{
		"forwarded check against plain grpc-go unary, 64 callers", "forwarded check against bare TCP with the same batching, 256 callers",
		"forwarded check against plain grpc-go unary, one caller, p50",
	} {
		if want := []string{inside, oneOwner, twoOwners}; !slices.Equal(shapes[what], want) {
			t.Errorf("%s: in %q, want %q", what, shapes[what], want)
		}
	}
}

func contains(cells []load.Cell, c load.Cell) bool {
	for _, other := range cells {
		if other == c {
			return true
		}
	}
	return false
}

// A target without a value says why.
func TestReach(t *testing.T) {
	r := NewResults(1)
	r.Add(0, place("ours"), at(100))
	r.Add(0, place("slow"), at(8))
	r.Absent("gone", "is not installed")
	r.Fail(place("wrong"), "errs")
	r.AddFigure("some", 9, 2.5, 1)
	ratio := func(theirs string) Target {
		return Target{What: theirs, Shape: "near", Ours: place("ours"), Theirs: []Place{place(theirs)}, Metric: Rate, Bound: Bound{Least: 10, Aim: 12}}
	}
	got := r.Reach([]Target{
		ratio("slow"), ratio("gone"), ratio("wrong"), ratio("other"),
		{What: "own", Ours: place("ours"), Metric: Allocs, Bound: Bound{Least: 1, AtMost: true}},
		{What: "table", Name: "none", Elsewhere: "another command"},
		{What: "figure", Name: "some", Elsewhere: "another command", Bound: Bound{Least: 3, Aim: 2, AtMost: true}},
	})
	for i, want := range []struct {
		met Met
		why string
	}{{Aim, ""}, {None, "gone: is not installed"}, {None, "wrong: errs"}, {None, "not run"}, {Yes, ""}, {None, "`another command`"}, {Yes, ""}} {
		if got[i].Met != want.met || got[i].Why != want.why {
			t.Errorf("%s: %q, %q; want %q, %q", got[i].What, got[i].Met, got[i].Why, want.met, want.why)
		}
	}
	var b bytes.Buffer
	if err := WriteReached(&b, got); err != nil {
		t.Error(err)
	}
	for _, want := range []string{"- gone (near): gone: is not installed\n", "1 of them was not run"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is not in\n%s", want, b.String())
		}
	}
}

func TestTable(t *testing.T) {
	r := NewResults(1)
	r.Add(0, place("ours"), at(2_000_000))
	r.Add(0, place("theirs"), at(12_345))
	var b bytes.Buffer
	if err := r.Cells(&b, []load.Cell{cell}, []Group{{"near", []string{"ours", "theirs", "absent"}}}); err != nil {
		t.Fatal(err)
	}
	want := `| 64 callers, one | checks/s |     (min–max) | p50 µs | p99 µs | p99.9 µs | client CPU µs | server CPU µs | client writes | server writes |  allocs | ringlimit × |
| --------------- | -------: | ------------: | -----: | -----: | -------: | ------------: | ------------: | ------------: | ------------: | ------: | ----------: |
| *near*          |          |               |        |        |          |               |               |               |               |         |             |
| ours            |   2.00 M | 2.00 M–2.00 M |   1.50 |   0.00 |     0.00 |          0.50 |          1.00 |          0.05 |          0.03 |   5e-06 |             |
| theirs          |   12.3 k | 12.3 k–12.3 k |   1.50 |   0.00 |     0.00 |          81.0 |           162 |          8.10 |          4.86 | 0.00081 |         162 |

`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

func TestNumbers(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 9999: "9999", 10_000: "10.0 k", 345_678: "346 k", 1_234_567: "1.23 M"} {
		if got := number(v); got != want {
			t.Errorf("%v: %q, want %q", v, got, want)
		}
	}
	for v, want := range map[float64]string{0: "0.00", 0.0123: "0.012", 0.5: "0.50", 12.34: "12.3", 123.4: "123"} {
		if got := small(v); got != want {
			t.Errorf("%v: %q, want %q", v, got, want)
		}
	}
	for d, want := range map[time.Duration]string{999: "999ns", 12_345: "12.345µs", 1_234_567: "1.23ms", 2_345_678_901: "2.35s"} {
		if got := Duration(d); len(got) > len(want)+2 {
			t.Errorf("%d: %q, want about %q", d, got, want)
		}
	}
}

// The file has every round, and figures that JSON can hold.
func TestJSON(t *testing.T) {
	r := NewResults(2)
	r.Add(1, place("ours"), at(100))
	r.Fail(place("wrong"), "errs")
	r.AddBytes("ours", 54)
	run := Run{Targets: r.Reach(Targets())}
	run.Fill(r)
	var b bytes.Buffer
	if err := WriteJSON(&b, run); err != nil {
		t.Fatal(err)
	}
	var got Run
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Cells) != 2 || got.Cells[0].Rounds[0] != nil || got.Cells[0].Rounds[1].Checks != 100 ||
		got.Cells[0].Figures["checks_per_s"].Median != 100 || got.Cells[1].Failed != "errs" || got.Bytes["ours"] != 54 {
		t.Errorf("%s", b.String())
	}
}
