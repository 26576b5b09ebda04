package grpcfront

import "sync"

// How many messages of one stream are asked at once, and how many goroutines are kept
// for them. A message waits for the owners of its calls for a hop, or for a whole
// deadline: only when so many wait do others wait behind them.
const (
	maxWorkers = 1024
	maxIdle    = 256
)

// task is what one worker does: all checks of a message, or one of its refunds.
type task struct {
	message *asked
	refund  int // which call it is; allChecks: none
}

const allChecks = -1

func (t task) run() {
	if t.refund == allChecks {
		t.message.check()
	} else {
		t.message.refund(t.refund)
	}
}

// workers ask the calls of one stream, each message on one of their goroutines. To
// start a goroutine for each would cost more: its stack has to grow each time.
//
// One is woken at a time. It takes a task, wakes the next if there are more, and runs
// it. So messages that are answered at once are asked one after the other, by few, and
// those that wait are soon waiting side by side.
type workers struct {
	more *sync.Cond

	mu      sync.Mutex
	queue   []task
	head    int // of the queue; what is before it has been taken
	n, idle int
	waking  bool // one is on its way
	ending  bool
	running sync.WaitGroup
}

func newWorkers() *workers {
	w := &workers{}
	w.more = sync.NewCond(&w.mu)
	return w
}

// add queues the calls of a message. It does not wait: the caller bounds them.
func (w *workers) add(message *asked) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.head == len(w.queue) {
		w.queue, w.head = w.queue[:0], 0
	}
	if message.refunds < len(message.calls) {
		w.queue = append(w.queue, task{message, allChecks})
	}
	if message.refunds > 0 {
		w.addRefunds(message)
	}
	w.wake()
}

// addRefunds must not read the message's room once its checks may have begun: w.mu is
// held.
func (w *workers) addRefunds(message *asked) {
	for i := range message.calls {
		if message.calls[i].Refund {
			w.queue = append(w.queue, task{message, i})
		}
	}
}

// wake sees to it that someone comes for the next task, if there is one. w.mu is
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
		t.run()
	}
	w.n--
}

// next waits for a task. It says no to a worker that is not needed any more. w.mu is
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
	w.queue[w.head] = task{} // it would keep the message
	w.head++
	return true
}

// end returns when all workers have: with all tasks done, or without those that
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
