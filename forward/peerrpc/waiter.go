package peerrpc

import (
	"context"
	"sync"
	"sync/atomic"
)

// waiter is where a caller waits for the answer to one check.
//
// It is pooled, so a late answer to a caller who has left must not reach the
// next caller who uses it. Two parties refer to it: the caller, and the frame
// that its check travels in. Each lets go once. The state decides by one
// compare-and-swap which of them goes first; the other then has the waiter to
// itself and gives it back to the pool.
//
//	the frame first (answered)   it writes the answer and signals, and never
//	                             touches the waiter again; the caller recycles
//	the caller first (left)      the frame finds that out when it has an answer
//	                             to give, or gives up, and recycles
type waiter struct {
	state    atomic.Int32
	deadline int64 // Unix nanoseconds; written before the frame knows the waiter
	answer   answer
	done     chan struct{} // capacity 1: to signal never blocks
}

const (
	waiting int32 = iota
	answered
	left
)

// waiters is a pool of them.
type waiters struct{ pool sync.Pool }

func (p *waiters) get(deadline int64) *waiter {
	w, ok := p.pool.Get().(*waiter)
	if !ok {
		w = &waiter{done: make(chan struct{}, 1)}
	}
	w.deadline = deadline
	return w
}

// put recycles a waiter that nobody else refers to and whose signal, if any,
// was received.
func (p *waiters) put(w *waiter) {
	w.state.Store(waiting)
	w.answer = answer{}
	p.pool.Put(w)
}

// finish is how the frame lets go.
func (p *waiters) finish(w *waiter, a *answer) {
	if !w.state.CompareAndSwap(waiting, answered) {
		p.put(w)
		return
	}
	w.answer = *a
	w.done <- struct{}{}
}

// await is how the caller lets go.
func (p *waiters) await(ctx context.Context, w *waiter) answer {
	cancelled := ctx.Done()
	if cancelled == nil { // to wait for one thing costs half of waiting for two
		<-w.done
		return p.take(w)
	}
	select {
	case <-w.done:
	case <-cancelled:
		if w.state.CompareAndSwap(waiting, left) {
			return answer{err: ctx.Err()}
		}
		<-w.done // the answer is just being written
	}
	return p.take(w)
}

func (p *waiters) take(w *waiter) answer {
	a := w.answer
	p.put(w)
	return a
}
