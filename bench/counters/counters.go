package counters

import (
	"context"
	"runtime"
	"time"
)

// Result is everything that is measured.
type Result struct {
	Counters    int
	Bare, Named Memory // without the names' text, and with it
	Frame       Frame
	Collection  GC
	Stall       Stall
}

// Plan says how thoroughly.
type Plan struct {
	Counters int
	Rounds   int           // of comparing decisions
	Idle     time.Duration // how long callers ask while nothing else happens
}

// Measure does all of it, one after the other; say tells what is being done. Ten
// million counters need about 4 GB and a minute or two.
func Measure(ctx context.Context, p Plan, say func(string)) (r Result, err error) {
	r.Counters = p.Counters
	for _, part := range []struct {
		what string
		do   func(*Result) error
	}{
		{"counters without names", (*Result).bare},
		{"counters with names, frames and collections", func(r *Result) error { return r.named(p.Rounds) }},
		{"a map of as many", (*Result).mapped},
		{"stalls", func(r *Result) (err error) { r.Stall, err = stalls(ctx, p.Counters, p.Idle); return err }},
	} {
		if err := ctx.Err(); err != nil {
			return r, err
		}
		say(part.what)
		if err := part.do(&r); err != nil {
			return r, err
		}
		runtime.GC() // the next part begins with an empty heap
	}
	return r, nil
}

func (r *Result) bare() (err error) {
	_, r.Bare, err = memory(r.Counters, false)
	return err
}

func (r *Result) named(rounds int) error {
	t, m, err := memory(r.Counters, true)
	if err != nil {
		return err
	}
	r.Named = m
	r.Collection.Table = collect(t)
	r.Frame, err = frames(t, r.Counters, rounds)
	return err
}

func (r *Result) mapped() error {
	r.Collection.Map = collect(mapOf(r.Counters))
	return nil
}
