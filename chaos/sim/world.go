package sim

import (
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"time"

	"github.com/ringlimit/ringlimit/membership"
	"github.com/ringlimit/ringlimit/owner/transfer"
	"github.com/ringlimit/ringlimit/ring"
)

const (
	ms = int64(time.Millisecond)
	s  = int64(time.Second)
	// epoch is virtual time 0 in Unix nanoseconds: a second after a boundary of
	// every window that is used here, or the first admissions would count in the
	// window before as well.
	epoch = int64(1_700_000_041) * s
)

// world is the cluster and its virtual time.
type world struct {
	cfg    Config
	rand   *rand.Rand
	now    int64
	events events
	serial uint64
	closed bool // no client asks any more

	nodes []*node // by order of first start; a restarted node keeps its place
	cut   map[link]bool
	rings map[string]*ring.Ring
	boots membership.BootID

	*oracle
	trace func(format string, args ...any)         // nil, or told what is noted
	spy   func(from, to *node, m transfer.Message) // nil, or told what nodes say to each other
	hash  interface {
		io.Writer
		Sum64() uint64
	}
}

func newWorld(cfg Config) *world {
	w := &world{
		cfg: cfg, rand: rand.New(rand.NewPCG(cfg.Seed, 0x51d)), cut: map[link]bool{},
		rings: map[string]*ring.Ring{}, hash: fnv.New64a(),
	}
	w.oracle = newOracle(w)
	return w
}

// event is something that happens at a time; of two, the one that was planned
// first comes first.
type event struct {
	at     int64
	serial uint64
	do     func()
}

// events is a heap. That of the standard library would allocate for each.
type events []event

func (e events) less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].serial < e[j].serial
}

func (e *events) push(v event) {
	*e = append(*e, v)
	h := *e
	for i := len(h) - 1; i > 0 && h.less(i, (i-1)/2); i = (i - 1) / 2 {
		h[i], h[(i-1)/2] = h[(i-1)/2], h[i]
	}
}

func (e *events) pop() event {
	h := *e
	first, last := h[0], len(h)-1
	h[0], h[last] = h[last], event{}
	h = h[:last]
	for i, next := 0, 1; next < last; i, next = next, 2*next+1 {
		if next+1 < last && h.less(next+1, next) {
			next++
		}
		if !h.less(next, i) {
			break
		}
		h[i], h[next] = h[next], h[i]
	}
	*e = h
	return first
}

// after plans something.
func (w *world) after(d int64, do func()) {
	w.serial++
	w.events.push(event{w.now + d, w.serial, do})
}

// every does something again and again.
func (w *world) every(d int64, do func()) {
	w.after(d, func() { do(); w.every(d, do) })
}

// runUntil lets time pass.
func (w *world) runUntil(at int64) {
	for len(w.events) > 0 && w.events[0].at <= at {
		e := w.events.pop()
		w.now = e.at
		e.do()
	}
	w.now = at
}

// between draws a length of time.
func (w *world) between(low, high int64) int64 { return low + w.rand.Int64N(high-low+1) }

// hesitation is how long a goroutine does not get on: mostly not at all.
func (w *world) hesitation() int64 {
	if w.calm() || !w.chance(20) {
		return 0
	}
	return w.between(0, 3*ms)
}

func (w *world) chance(percent float64) bool { return w.rand.Float64()*100 < percent }

// note adds to the run's hash, and to a transcript.
func (w *world) note(format string, args ...any) {
	fmt.Fprintf(w.hash, format, args...)
	if w.trace != nil {
		w.trace(format, args...)
	}
}

// ringOf remembers the rings it has made: all nodes make the same.
func (w *world) ringOf(ids []membership.NodeID) *ring.Ring {
	key := fmt.Sprint(ids)
	if r := w.rings[key]; r != nil {
		return r
	}
	r, err := ring.New(ring.Params{Partitions: w.cfg.Partitions, VirtualNodes: 20, Load: 1.25}, ids)
	if err != nil {
		panic(err)
	}
	w.rings[key] = r
	return r
}
