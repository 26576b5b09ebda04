// Package wait is where callers wait for answers that come with those of others, in
// one message.
package wait

import (
	"context"
	"sync"
	"sync/atomic"
)

// Waiter is where a caller waits for the answer to one call.
//
// It is pooled, so a late answer to a caller who has left must not reach the
// next caller who uses it. Two parties refer to it: the caller, and the frame
// that its call travels in. Each lets go once. The state decides by one
// compare-and-swap which of them goes first; the other then has the waiter to
// itself and gives it back to the pool.
//
//	the frame first (answered)   it writes the answer and signals, and never
//	                             touches the waiter again; the caller recycles
//	the caller first (left)      the frame finds that out when it has an answer
//	                             to give, or gives up, and recycles
type Waiter[Answer any] struct {
	Deadline int64 // Unix nanoseconds; not to be changed once the frame knows the waiter

	state  atomic.Int32
	answer Answer
	done   chan struct{} // capacity 1: to signal never blocks
}

const (
	waiting int32 = iota
	answered
	left
)

// Pool is a pool of waiters. The zero Pool is empty.
type Pool[Answer any] struct{ pool sync.Pool }

// Get makes a waiter, or takes one that was used.
func (p *Pool[Answer]) Get(deadline int64) *Waiter[Answer] {
	w, ok := p.pool.Get().(*Waiter[Answer])
	if !ok {
		w = &Waiter[Answer]{done: make(chan struct{}, 1)}
	}
	w.Deadline = deadline
	return w
}

// Put recycles a waiter that nobody else refers to and whose signal, if any,
// was received.
func (p *Pool[Answer]) Put(w *Waiter[Answer]) {
	var none Answer
	w.state.Store(waiting)
	w.answer = none
	p.pool.Put(w)
}

// Finish is how the frame lets go. It copies the answer.
func (p *Pool[Answer]) Finish(w *Waiter[Answer], a *Answer) {
	if !w.state.CompareAndSwap(waiting, answered) {
		p.Put(w)
		return
	}
	w.answer = *a
	w.done <- struct{}{}
}

// Await is how the caller lets go, with the answer. The error is that of ctx.
func (p *Pool[Answer]) Await(ctx context.Context, w *Waiter[Answer]) (a Answer, err error) {
	cancelled := ctx.Done()
	if cancelled == nil { // to wait for one thing costs half of waiting for two
		<-w.done
		return p.take(w), nil
	}
	select {
	case <-w.done:
	case <-cancelled:
		if w.state.CompareAndSwap(waiting, left) {
			return a, ctx.Err()
		}
		<-w.done // the answer is just being written
	}
	return p.take(w), nil
}

// Poll is Await for who does not wait: not ok, and the caller has not let go, while
// there is no answer.
func (p *Pool[Answer]) Poll(w *Waiter[Answer]) (a Answer, ok bool) {
	select {
	case <-w.done:
		return p.take(w), true
	default:
		return a, false
	}
}

func (p *Pool[Answer]) take(w *Waiter[Answer]) Answer {
	a := w.answer
	p.Put(w)
	return a
}
