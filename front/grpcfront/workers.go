package grpcfront

import (
	"sync"

	"github.com/ringlimit/ringlimit/internal/wire"
)

// How many calls of one stream are asked at once, and how many goroutines are kept
// for them. A call waits for its owner for a hop, or for a whole deadline: only when
// so many wait do others wait behind them.
const (
	maxWorkers = 1024
	maxIdle    = 256
)

// workers ask the calls of one stream, each call on one of their goroutines. To start
// a goroutine for each call would cost more: its stack has to grow each time.
//
// One is woken at a time. It takes a call, wakes the next if there are more, and asks.
// So calls that are answered at once are asked one after the other, by few, and those
// that wait are soon waiting side by side.
type workers struct {
	ask  func(*task)
	more *sync.Cond

	mu      sync.Mutex
	queue   []task
	head    int // of the queue; what is before it has been taken
	n, idle int
	waking  bool // one is on its way
	ending  bool
	running sync.WaitGroup
}

func newWorkers(ask func(*task)) *workers {
	w := &workers{ask: ask}
	w.more = sync.NewCond(&w.mu)
	return w
}

// add queues calls. It does not wait: the caller bounds them.
func (w *workers) add(calls []wire.Call, message *asked) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.head == len(w.queue) {
		w.queue, w.head = w.queue[:0], 0
	}
	for i := range calls {
		w.queue = append(w.queue, task{calls[i], message})
	}
	w.wake()
}

// wake sees to it that someone comes for the next call, if there is one. w.mu is
// held.
func (w *workers) wake() {
	switch {
	case w.waking || w.head == len(w.queue):
	case w.idle > 0:
		w.idle--
		w.waking = true
		w.more.Signal()
	case w.n < maxWorkers:
		w.n++
		w.waking = true
		w.running.Go(w.run)
	}
}

func (w *workers) run() {
	var t task
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.waking = false; w.next(&t); w.mu.Lock() {
		w.wake()
		w.mu.Unlock()
		w.ask(&t)
	}
	w.n--
}

// next waits for a call. It says no to a worker that is not needed any more. w.mu is
// held.
func (w *workers) next(t *task) bool {
	for w.head == len(w.queue) {
		if w.ending || w.idle == maxIdle {
			return false
		}
		w.idle++
		w.more.Wait()
		w.waking = false
	}
	*t = w.queue[w.head]
	w.queue[w.head] = task{} // it keeps its message
	w.head++
	return true
}

// end returns when all workers have: with all calls asked, or without those that
// nobody has taken yet.
func (w *workers) end(all bool) {
	w.mu.Lock()
	w.ending = true
	if !all {
		w.head = len(w.queue)
	}
	w.more.Broadcast()
	w.mu.Unlock()
	w.running.Wait()
}
