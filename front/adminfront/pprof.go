package adminfront

import (
	"fmt"
	"net/http"
	"runtime/pprof"
	"strconv"
	"time"

	"github.com/ringlimit/ringlimit/front"
	"github.com/ringlimit/ringlimit/limit"
)

// Profiles are written with runtime/pprof: merely importing net/http/pprof puts
// them on http.DefaultServeMux, which the program around us may be serving to
// the world.

const maxProfileSeconds = 300

func listProfiles(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	fmt.Fprintln(w, "profile?seconds=30")
	for _, p := range pprof.Profiles() {
		fmt.Fprintf(w, "%s?debug=1\t%d\n", p.Name(), p.Count())
	}
}

// profile writes a named profile, as text with ?debug=1 or 2.
func profile(w http.ResponseWriter, r *http.Request) {
	p := pprof.Lookup(r.PathValue("name"))
	if p == nil {
		front.NewProblem(http.StatusNotFound, "", "there is no such profile; /debug/pprof/ lists all").Write(w)
		return
	}
	debug, err := number(r, "debug", 0, 0, 2)
	if err != nil {
		front.ProblemOf(err).Write(w)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	if debug > 0 {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	}
	p.WriteTo(w, debug)
}

// cpuProfile watches the process for ?seconds=30, or until the client leaves.
func cpuProfile(w http.ResponseWriter, r *http.Request) {
	seconds, err := number(r, "seconds", 30, 1, maxProfileSeconds)
	if err != nil {
		front.ProblemOf(err).Write(w)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream") // before the profiler, which writes by itself
	if err := pprof.StartCPUProfile(w); err != nil {
		front.NewProblem(http.StatusConflict, "", "another profile is being taken; try again after it").Write(w)
		return
	}
	defer pprof.StopCPUProfile()
	timer := time.NewTimer(time.Duration(seconds) * time.Second)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.Context().Done():
	}
}

func number(r *http.Request, name string, otherwise, low, high int) (int, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < low || n > high {
		return 0, &limit.InputError{Field: name, Problem: fmt.Sprintf("must be from %d to %d", low, high)}
	}
	return n, nil
}
